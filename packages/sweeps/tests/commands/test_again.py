"""The command that trains the best trial again."""

from __future__ import annotations

from typing import Any

import pytest

from packages.sweeps.tests.commands.samples import BEGAN, ended, sweep
from trainer.api.checkpoints import CHECKPOINTS
from trainer.kube.clock import parse_timestamp
from trainer.kube.objects import Object
from trainer_sweeps.commands.again import again
from trainer_sweeps.commands.view import SweepView

START = ["python3", "/mnt/trainer/source/start.py", "--", "torchrun"]
LR, BS = "KUBEFLOW_TRAINER_OPT_LR", "KUBEFLOW_TRAINER_OPT_BS"
RUN = "trainer run train.py -n default --runtime torch-distributed"


def command(template: Object, script: str = "", trials: list[Object] | None = None) -> str:
    """What it is for a sweep with this template, whose second trial is the best."""
    given = template["spec"] | {"runtimeRef": {"name": "torch-distributed"}}
    status = {"trials": [ended(1), ended(2, value="0.25")] if trials is None else trials}
    obj = sweep(status=status, trainJobTemplate=template | {"spec": given})
    return again(SweepView.of(obj, [], parse_timestamp(BEGAN)), script)


def template(metadata: Object | None = None, trainer: Object | None = None, **spec: Any) -> Object:
    own: Object = {"command": [*START, "train.py"]}
    return {"metadata": metadata or {}, "spec": spec | {"trainer": own | (trainer or {})}}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(template(), f"{RUN} --env {LR}=0.002 --env {BS}=16", id="environment"),
        pytest.param(
            template(trainer={"args": ["--lr", f"$({LR})", f"--bs=$({BS})", "$$(HOME)"]}),
            f"{RUN} -- --lr 0.002 --bs=16 '$(HOME)'",
            id="arguments",
        ),
        pytest.param(
            template(trainer={"args": [f"$({LR})"], "numNodes": 2, "numProcPerNode": 4, "image": "mine:1"}),
            f"{RUN} --nodes 2 --procs 4 --image mine:1 --env {BS}=16 -- 0.002",
            id="shape",
        ),
        pytest.param(
            template(
                trainer={
                    "command": [*START[:2], "--git", "https://git.test/p", "0123abc", *START[2:], "src/train.py"],
                    "args": [f"$({LR}) $({BS})"],
                }
            ),
            "trainer run src/train.py -n default --code-from git+https://git.test/p@0123abc --runtime "
            "torch-distributed -- '0.002 16'",
            id="repository",
        ),
        pytest.param(
            template(
                {"annotations": {CHECKPOINTS: "claim"}},
                {
                    "args": [f"$({LR}) $({BS})"],
                    "resourcesPerNode": {"limits": {"nvidia.com/gpu": "8"}},
                    "env": [
                        {"name": "A", "value": "1 2"},
                        {"name": "T", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}},
                    ],
                },
                labels={"kueue.x-k8s.io/queue-name": "team"},
                maxRestarts=2,
            ),
            f"{RUN} --resource nvidia.com/gpu=8 --env 'A=1 2' --secret-env T=hub:token --queue team --max-restarts 2 "
            "--checkpoints claim -- '0.002 16'",
            id="all of it",
        ),
    ],
)
def test_command(given: Object, expected: str) -> None:
    """It is what `trainer run` takes, with the values of the best trial."""
    assert command(given) == expected


def test_none() -> None:
    """A function, an image that has its own program, and a sweep without a value have none."""
    assert command(template(trainer={"command": [*START, "fit_function.py"]})) == ""
    assert command({"spec": {}}) == ""
    assert command(template(), trials=[ended(1, "Failed", None)]) == ""
    assert command(template(), script="src/train.py").startswith("trainer run src/train.py ")
