"""What a shell and kubectl offer where a name is typed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.cli.conftest import train_job
from trainer.api.kubeflow_v1 import PYTORCH_JOBS
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.cli.app import app
from trainer.cli.main import complete_for_kubectl
from trainer.cli.processes.contexts import Contexts
from trainer.cli.processes.state_directory import StateDirectory
from trainer.kube.errors import ForbiddenError
from trainer.kube.objects import Object
from trainer.kube.resource import NAMESPACES, PERSISTENT_VOLUME_CLAIMS, Resource
from trainer_devcluster.apiserver.server import kubeconfig
from trainer_kube_testing import FakeClient


def named(resource: Resource, name: str, namespace: str | None = None) -> Object:
    """An object with nothing but a name."""
    where = {"namespace": namespace} if namespace else {}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name, **where}}


@pytest.fixture
def filled(served: FakeClient) -> FakeClient:
    """A cluster with TrainJobs and runtimes in two namespaces."""
    served.add(train_job("bert"))
    served.add(train_job("bert-large"))
    served.add(train_job("gpt"))
    elsewhere = train_job("bert-of-others")
    elsewhere["metadata"]["namespace"] = "team"
    served.add(elsewhere)
    served.add(named(CLUSTER_TRAINING_RUNTIMES, "torch-distributed"))
    served.add(named(TRAINING_RUNTIMES, "torch-mine", "default"))
    served.add(named(PYTORCH_JOBS, "mnist", "default"))
    served.add(named(PERSISTENT_VOLUME_CLAIMS, "shared", "default"))
    for namespace in ("default", "team"):
        served.add(named(NAMESPACES, namespace))
    return served


def complete(line: str) -> list[str]:
    """What the shell offers for the last word of a line."""
    environment = {
        "_TRAINER_COMPLETE": "complete_fish",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        "_TYPER_COMPLETE_ARGS": line,
    }
    result = CliRunner().invoke(app, [], prog_name="trainer", env=environment)
    return [each.partition("\t")[0] for each in result.stdout.split()]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("trainer get ", ["bert", "bert-large", "gpt"]),
        ("trainer logs be", ["bert", "bert-large"]),
        ("trainer metrics gpt-", []),
        ("trainer get --namespace team ", ["bert-of-others"]),
        ("trainer get -n te", ["team"]),
        ("trainer delete bert g", ["gpt"]),
        ("trainer run --runtime tor", ["torch-distributed", "torch-mine"]),
        ("trainer run -n team --runtime ", ["torch-distributed"]),
        ("trainer run --checkpoints sh", ["shared"]),
        ("trainer convert p", ["paddlejob/", "pytorchjob/"]),
        ("trainer convert pytorchjob/", ["pytorchjob/mnist"]),
        ("trainer convert -n team pytorchjob/m", []),
        ("trainer convert nothing/", []),
    ],
)
@pytest.mark.usefixtures("cluster", "filled")
def test_names(line: str, offered: list[str]) -> None:
    """Names come from the namespace that the line names."""
    assert complete(line) == offered


@pytest.mark.usefixtures("cluster")
def test_what_may_not_be_listed(filled: FakeClient) -> None:
    """Who may not list the runtimes of the cluster gets those of the namespace."""
    filled.faults.fail(ForbiddenError(403, "forbidden"), verb="list", resource=CLUSTER_TRAINING_RUNTIMES)
    assert complete("trainer run --runtime ") == ["torch-mine"]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("trainer down --name ", ["b", "dev"]),
        ("trainer up --name b", ["b"]),
        ("trainer get --context trainer-", ["trainer-b", "trainer-dev"]),
        ("trainer get --kubeconfig {given} --context ", ["production"]),
    ],
)
def test_clusters(line: str, offered: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clusters of `trainer up`, and the contexts of the kubeconfig, need no cluster that answers."""
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for name in ("dev", "b"):
        state = StateDirectory.of_user(name)
        state.data.mkdir(parents=True)
        state.kubeconfig.write_text(kubeconfig("https://127.0.0.1:1", "secret", "authority"))
        Contexts.of_user().add(state)
    given = tmp_path / "given"
    given.write_text("contexts: [{name: production, context: {cluster: c, user: u}}]")
    assert sorted(complete(line.format(given=given))) == offered


def test_no_cluster(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """Nothing is offered, and nothing is written into the line that is being typed."""
    monkeypatch.setenv("KUBECONFIG", "/does/not/exist")
    assert complete("trainer get ") == []
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["get", "bert-"], "bert-large\n:4\n"),
        (["get", ""], "bert\nbert-large\ngpt\n:4\n"),
        (["run", "-f", ""], ":0\n"),
    ],
)
@pytest.mark.usefixtures("cluster", "filled")
def test_kubectl(
    words: list[str], answer: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """kubectl gets a line for each value and a directive; names of files are the shell's matter."""
    monkeypatch.setattr(sys, "argv", ["kubectl_complete-trainer", *words])
    monkeypatch.setattr(os, "environ", dict(os.environ))
    with pytest.raises(SystemExit):
        complete_for_kubectl()
    assert capsys.readouterr().out == answer
