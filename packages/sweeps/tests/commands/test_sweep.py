"""`trainer sweep`: what is submitted, and what is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from packages.sweeps.tests.commands.samples import condition, ended, sweep
from trainer.api.optimization import OPTIMIZATION_JOBS
from trainer.api.trainjob import GIT_REVISION
from trainer.cli.app import app
from trainer.cli.manifests import runtimes
from trainer.kube.client import ObjectRequest, Verb
from trainer.kube.errors import ForbiddenError
from trainer.kube.objects import Object, name_of, owner_references_of
from trainer.kube.resource import CONFIG_MAPS
from trainer_kube_testing import FakeClient

pytestmark = pytest.mark.usefixtures("cluster")
SEARCHED = "--param lr=log(1e-5,1e-1) --param bs=choice(16,32) --minimize val_loss --name digits"


@pytest.fixture(autouse=True)
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, served: FakeClient) -> None:
    """A script, and a cluster with the runtimes that we ship."""
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("import torch\nnames = 'KUBEFLOW_TRAINER_OPT_LR', 'KUBEFLOW_TRAINER_OPT_BS'\n")
    for runtime in runtimes():
        served.add(runtime)


def run(arguments: str, *words: str) -> Result:
    return CliRunner().invoke(app, ["sweep", *arguments.split(), *words])


def dry(arguments: str, *words: str) -> Object:
    """The OptimizationJob that would be submitted."""
    result = run(f"train.py {arguments} --dry-run", *words)
    assert result.exit_code == 0, result.stderr
    _, made = yaml.safe_load_all(result.stdout)
    assert isinstance(made, dict)
    return made


def test_the_whole(served: FakeClient) -> None:
    """The OptimizationJob has the TrainJob of `trainer run` as its template; the code stands before it."""
    result = run(f"train.py {SEARCHED} --trials 20 --parallel 4 --nodes 2 --queue team --dry-run", "--", "--lr", "{lr}")

    code, made = yaml.safe_load_all(result.stdout)
    name = name_of(code)
    assert result.stderr.startswith("note: packed train.py (")
    assert result.stderr.endswith("OptimizationJob digits with runtime torch-distributed: 20 trials, 4 at once\n")
    assert made == {
        "apiVersion": "trainer.kubeflow.org/v2alpha1",
        "kind": "OptimizationJob",
        "metadata": {"name": "digits", "namespace": "default"},
        "spec": {
            "objectives": [{"metric": "val_loss", "direction": "Minimize"}],
            "searchAlgorithm": {"tpe": {}},
            "parameters": [
                {"name": "lr", "searchSpace": {"logUniform": {"min": "1e-5", "max": "1e-1"}}},
                {"name": "bs", "searchSpace": {"categorical": {"choices": ["16", "32"]}}},
            ],
            "numTrials": 20,
            "parallelTrials": 4,
            "trainJobTemplate": {
                "spec": {
                    "runtimeRef": {"name": "torch-distributed", "kind": "ClusterTrainingRuntime"},
                    "labels": {"kueue.x-k8s.io/queue-name": "team"},
                    "trainer": {
                        "numNodes": 2,
                        "command": ["python3", "/mnt/trainer/source/start.py", "--", "torchrun", "train.py"],
                        "args": ["--lr", "$(KUBEFLOW_TRAINER_OPT_LR)"],
                    },
                    "podSpecOverrides": [
                        {
                            "manager": "trainer.kubeflow.org/run",
                            "targetJobs": [{"name": "node"}],
                            "containers": [
                                {
                                    "name": "trainer",
                                    "volumeMounts": [
                                        {
                                            "name": "trainer-source",
                                            "mountPath": "/mnt/trainer/source",
                                            "readOnly": True,
                                        },
                                        {"name": "trainer-work", "mountPath": "/mnt/trainer/work"},
                                    ],
                                }
                            ],
                            "volumes": [
                                {"name": "trainer-source", "configMap": {"name": name}},
                                {"name": "trainer-work", "emptyDir": {}},
                            ],
                        }
                    ],
                }
            },
        },
    }
    assert not served.requests_of("create", "apply", "patch")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param(
            "--seed 7 --startup-trials 5", {"searchAlgorithm": {"tpe": {"seed": 7, "startupTrials": 5}}}, id="tpe"
        ),
        pytest.param("--algorithm random", {"searchAlgorithm": {"random": {}}}, id="random"),
        pytest.param("--algorithm cmaes", {"searchAlgorithm": {"cmaEs": {}}}, id="cmaes"),
        pytest.param(
            "--prune asha --warmup 3 --interval 2 --reduction 4",
            {"pruneAlgorithm": {"asha": {"warmupSteps": 3, "intervalSteps": 2, "reductionFactor": 4}}},
            id="asha",
        ),
        pytest.param("--prune median --warmup 0", {"pruneAlgorithm": {"median": {"warmupSteps": 0}}}, id="median"),
        pytest.param("--max-failed 0 --suspend", {"maxFailedTrials": 0, "suspend": True}, id="limits"),
        pytest.param(
            "--aggregate min",
            {"objectives": [{"metric": "val_loss", "direction": "Minimize", "aggregate": "Min"}]},
            id="aggregate",
        ),
        pytest.param("", {"numTrials": 20}, id="defaults"),
    ],
)
def test_search(options: str, expected: Object) -> None:
    """Options become fields of the spec."""
    spec = dry(f"{SEARCHED} {options}")["spec"]

    assert {field: spec.get(field) for field in expected} == expected


def test_grid() -> None:
    """A grid has as many trials as combinations, or fewer."""
    grid = "--param a=choice(1,2,3) --param b=choice(1,2) --maximize acc --algorithm grid"

    assert dry(grid)["spec"]["numTrials"] == 6
    assert dry(f"{grid} --trials 4")["spec"]["numTrials"] == 4
    assert dry(f"{grid} --trials 50")["spec"]["numTrials"] == 6


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param(
            ["--lr={lr}", "{bs}"], ["--lr=$(KUBEFLOW_TRAINER_OPT_LR)", "$(KUBEFLOW_TRAINER_OPT_BS)"], id="values"
        ),
        pytest.param(["{lr}-{bs}"], ["$(KUBEFLOW_TRAINER_OPT_LR)-$(KUBEFLOW_TRAINER_OPT_BS)"], id="two in one"),
        pytest.param(["{{lr}}"], ["{lr}"], id="the text itself"),
        pytest.param(['{"lr": 1}', "{}", "$(HOME)"], ['{"lr": 1}', "{}", "$$(HOME)"], id="other braces"),
    ],
)
def test_arguments(words: list[str], expected: list[str]) -> None:
    """A name in braces is the value of a parameter; everything else reaches the script as it is."""
    assert dry(SEARCHED, "--", *words)["spec"]["trainJobTemplate"]["spec"]["trainer"]["args"] == expected


def test_mpi() -> None:
    """The variables of parameters reach all ranks of Open MPI."""
    spec = dry(f"{SEARCHED} --runtime mpi-openmpi")["spec"]["trainJobTemplate"]["spec"]

    command = " ".join(spec["trainer"]["command"])
    assert "-x KUBEFLOW_TRAINER_OPT_LR -x KUBEFLOW_TRAINER_OPT_BS" in command


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        pytest.param("", "name a script to train with, such as: trainer sweep train.py", id="nothing"),
        pytest.param("train.py --minimize loss", "--param: name what to search", id="no parameters"),
        pytest.param(
            "train.py --param a=int(1,2)", "name the metric: --minimize val_loss, or --maximize", id="no metric"
        ),
        pytest.param("train.py --param a=int(1,2) --minimize a --maximize b", "name one metric", id="two metrics"),
        pytest.param(
            "train.py --param a=int(1,2) --minimize l --algorithm grid",
            "--algorithm grid: a is an interval, and a grid has choices: write a=choice(...)",
            id="grid",
        ),
        pytest.param(
            "train.py --param a=choice(1,2) --minimize l --algorithm grid --seed 1",
            "--seed: grid draws nothing: leave it out",
            id="seed of a grid",
        ),
        pytest.param(
            f"train.py {SEARCHED} --algorithm random --startup-trials 3",
            "--startup-trials: random has none: leave it out, or take one of tpe, gp and cmaes",
            id="startup",
        ),
        pytest.param(f"train.py {SEARCHED} --warmup 3", "--warmup: belongs to --prune: add --prune asha", id="warmup"),
        pytest.param(f"train.py {SEARCHED} --prune median --reduction 3", "--reduction: belongs to", id="reduction"),
        pytest.param(f"train.py {SEARCHED} --prune asha --warmup 0", "--warmup: must be at least 1", id="rung"),
        pytest.param(f"train.py {SEARCHED}x{'y' * 50}", "--name: digitsx", id="long name"),
        pytest.param(
            f"train.py {SEARCHED} --trials 101", "'--trials': Input should be less than or equal to 100", id="trials"
        ),
        pytest.param(
            f"train.py {SEARCHED} --trials 4 --parallel 5", "--parallel: 5: there are 4 trials", id="parallel"
        ),
        pytest.param(f"train.py {SEARCHED} --algorithm bayes", "'bayes' is not one of 'tpe'", id="algorithm"),
        pytest.param(f"train.py {SEARCHED} --epochs 3", "options of the script follow after --", id="option of it"),
        pytest.param(f"train.py {SEARCHED} -- --lr {{lrr}}", "there is no parameter lrr", id="placeholder"),
        pytest.param(f"nope.py {SEARCHED}", "there is no script nope.py", id="script"),
    ],
)
def test_mistakes(served: FakeClient, arguments: str, problem: str) -> None:
    """What is wrong is one line, before anything is sent."""
    result = run(arguments)

    assert (result.exit_code, result.stdout) == (2, ""), result.output
    assert problem in result.stderr
    assert not served.requests_of("create", "apply", "patch")


@pytest.mark.parametrize(
    ("source", "arguments", "unread"),
    [
        pytest.param("import torch\nparameters()", "", ["lr", "bs"], id="none"),
        pytest.param("import sys", "-- --lr {lr}", ["bs"], id="one is an argument"),
        pytest.param("import sys", "-- --lr {lr} --bs={bs}", [], id="arguments"),
        pytest.param("from report import parameters\nparameters(lr=1)", "", ["bs"], id="another name"),
        pytest.param("import report\nreport.parameters(LR=1).bs", "", [], id="module"),
        pytest.param("from trainer.progress.report import (\n parameters as p)\np().lr + p().bs", "", [], id="alias"),
        pytest.param("import os\nos.environ['KUBEFLOW_TRAINER_OPT_LR']", "", ["bs"], id="variable"),
        pytest.param("import own", "", [], id="module beside it"),
        pytest.param("from report import (", "", [], id="no Python that is known here"),
    ],
)
def test_unread_parameters(source: str, arguments: str, unread: list[str]) -> None:
    """A warning names the parameters that neither the arguments nor the code names."""
    Path("train.py").write_text(source)
    Path("report.py").write_text("LR, BS, PREFIX = 1, 2, 'KUBEFLOW_TRAINER_OPT_'")
    Path("own.py").write_text("from report import parameters\nlr, bs = parameters()")

    result = run(f"train.py {SEARCHED} --runtime plain --dry-run {arguments}")

    assert result.exit_code == 0, result.output
    said = [line for line in result.stderr.splitlines() if "nothing in train.py reads" in line]
    expected = f"warning: nothing in train.py reads {', '.join(unread)}, and trials would not differ by it: "
    assert [line.startswith(expected) for line in said] == ([True] if unread else []), result.stderr


def test_submission(served: FakeClient) -> None:
    """The sweep owns the code; what it is called is printed."""
    result = run(f"train.py {SEARCHED} --no-follow")

    (made,), (code,) = served.objects(OPTIMIZATION_JOBS), served.objects(CONFIG_MAPS)
    assert [(each["kind"], each["name"]) for each in owner_references_of(code)] == [("OptimizationJob", "digits")]
    assert GIT_REVISION not in str(made)
    assert result.stdout.splitlines()[1:] == ["optimizationjob.trainer.kubeflow.org/digits created"]
    again = run(f"train.py {SEARCHED} --no-follow")
    assert again.exit_code == 2
    assert "OptimizationJob digits exists already in namespace default: delete it (trainer delete opt" in again.stderr


def test_refused(served: FakeClient) -> None:
    """Without a sweep no code stays behind."""
    served.faults.fail(ForbiddenError(403, "you may not"), verb="create", resource=OPTIMIZATION_JOBS)

    result = run(f"train.py {SEARCHED} --no-follow")

    assert (result.exit_code, served.objects(CONFIG_MAPS)) == (1, [])
    assert "you may not" in result.stderr


def answering(served: FakeClient, monkeypatch: pytest.MonkeyPatch, status: Object) -> None:
    """A cluster whose sweeps have this status as soon as they are created."""
    send = FakeClient.send

    async def sent(self: FakeClient, request: ObjectRequest) -> Any:
        answer = await send(self, request)
        if request.verb is Verb.CREATE and request.resource == OPTIMIZATION_JOBS and answer is not None:
            answer = self.add(answer | {"status": status})
        return answer

    monkeypatch.setattr(FakeClient, "send", sent)


COMPLETE: Object = {
    "state": "Complete",
    "conditions": [condition("Complete", "MaxTrialsReached")],
    "trials": [ended(1, value="0.5"), ended(2, value="0.25"), ended(3, "Failed", None, "node-0: ValueError: no")],
}
FAILED: Object = {
    "state": "Failed",
    "conditions": [condition("Failed", "NoTrialSucceeded", "None of 1 trials has succeeded")],
    "trials": [ended(1, "Failed", None, "it is complete and has not reported the metric val_loss")],
}


@pytest.mark.parametrize(
    ("status", "code", "lines"),
    [
        pytest.param(
            COMPLETE,
            0,
            [
                "digits  Complete  3 of 20 trials: 2 succeeded, 1 failed",
                "best: trial 2  val_loss 0.25",
                "  lr  0.002",
                "  bs  16",
                "train it again, with more steps:",
                "  trainer run train.py -n default --runtime torch-distributed --env KUBEFLOW_TRAINER_OPT_BS=16 -- --",
            ],
            id="complete",
        ),
        pytest.param(FAILED, 1, ["digits  Failed  1 of 20 trials: 1 failed", "None of 1 trials"], id="failed"),
    ],
)
def test_end(served: FakeClient, monkeypatch: pytest.MonkeyPatch, status: Object, code: int, lines: list[str]) -> None:
    """A sweep is followed to its end, which says the best trial and how to train it again."""
    answering(served, monkeypatch, status)

    result = run(f"train.py {SEARCHED}", "--", "--lr", "{lr}")

    assert result.exit_code == code, result.output
    for line in lines:
        assert line in result.stdout
    assert ("trainer explain sweep digits -n default says what to do" in result.stderr) == bool(code)


def test_timeout(served: FakeClient) -> None:
    """A sweep that takes too long goes on, and the last line says how to follow it again."""
    result = run(f"train.py {SEARCHED} --timeout 0.05")

    assert result.exit_code == 124
    again = "not finished after 0.05 s: the cluster goes on with digits (trainer get sweep digits --watch -n default"
    assert result.stdout.splitlines()[-1].startswith(again)


def test_suspended(served: FakeClient) -> None:
    """One that is created suspended is not followed."""
    result = run(f"train.py {SEARCHED} --suspend")

    assert result.stdout.splitlines()[-1] == ("digits is suspended: trainer resume sweep digits -n default starts it")
    assert served.objects(OPTIMIZATION_JOBS)[0]["spec"]["suspend"] is True


def test_watch(served: FakeClient) -> None:
    """`trainer get sweep NAME --watch` follows one that exists, with the exit code of its end."""
    served.add(sweep(status=COMPLETE))

    result = CliRunner().invoke(app, "get sweep digits --watch")

    assert (result.exit_code, "best: trial 2  loss 0.25" in result.stdout) == (0, True)
