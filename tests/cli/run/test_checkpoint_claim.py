"""Warnings of claims that keep no checkpoints, by the command line."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from trainer.cli.app import app
from trainer.cli.manifests import runtimes
from trainer.kube.errors import ForbiddenError
from trainer.kube.objects import Object
from trainer.kube.resource import PERSISTENT_VOLUME_CLAIMS
from trainer_kube_testing import FakeClient

MISSING = "warning: namespace default has no PersistentVolumeClaim {}, and the pods wait until it has one"


@pytest.fixture(autouse=True)
def claims(served: FakeClient, cluster: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster with claims, and a script."""
    for runtime in runtimes():
        served.add(runtime)
    for name, mode in (("shared", "ReadWriteMany"), ("single", "ReadWriteOnce"), ("models", "ReadOnlyMany")):
        served.add(claim(name, mode))
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("import torch")


def claim(name: str, mode: str) -> Object:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": {"accessModes": [mode]}}


def warning(arguments: str) -> str:
    """What `trainer run` says on standard error before it submits."""
    result = CliRunner().invoke(app, f"run --no-follow train.py {arguments}")
    assert result.exit_code == 0, result.stderr
    return result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param("", "", id="none"),
        pytest.param("--checkpoints shared/team-a --nodes 4", "", id="for-many"),
        pytest.param("--checkpoints single", "", id="one-node"),
        pytest.param(
            "--checkpoints single --nodes 2",
            "warning: PersistentVolumeClaim single is ReadWriteOnce, and the TrainJob has 2 nodes: unless all pods run "
            "on one machine, some of them never start; take a claim that is ReadWriteMany\n",
            id="several-nodes",
        ),
        pytest.param(
            "--checkpoints models",
            "warning: PersistentVolumeClaim models is ReadOnlyMany, which is for reading: take one that can be written "
            "to\n",
            id="read-only",
        ),
    ],
)
def test_claims(arguments: str, said: str) -> None:
    """A claim that cannot keep the checkpoints of all nodes is named with the remedy; else nothing is said."""
    assert warning(arguments) == said


@pytest.mark.parametrize(
    ("arguments", "start", "mode"),
    [
        pytest.param(
            "--checkpoints share", f"{MISSING.format('share')}: did you mean shared? This", "Once", id="alike"
        ),
        pytest.param("--checkpoints x --nodes 2", f"{MISSING.format('x')}; this", "Many", id="none-alike"),
    ],
)
def test_missing(arguments: str, start: str, mode: str) -> None:
    """The warning has the command that makes the claim, which the command itself does not."""
    said, _, command = warning(arguments).partition(" makes it: ")
    assert said == start
    _, text, *rest = shlex.split(command)
    assert rest == ["|", "kubectl", "create", "-n", "default", "-f", "-"]
    made = json.loads(text)
    assert made["metadata"] == {"name": arguments.split()[1]}
    assert made["spec"]["accessModes"] == [f"ReadWrite{mode}"]


def test_without_rights(served: FakeClient) -> None:
    """A user who may not look learns nothing."""
    forbidden = ForbiddenError(403, "persistentvolumeclaims is forbidden")
    served.faults.fail(forbidden, verb="get", resource=PERSISTENT_VOLUME_CLAIMS, times=1)
    assert warning("--checkpoints x") == ""
