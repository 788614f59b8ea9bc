"""Warnings of queues that are not there, by the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from tests.cli.conftest import ConnectedClient
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.cli.app import app
from trainer.cli.manifests import runtimes
from trainer.cli.run.queue import LOCAL_QUEUES
from trainer.kube.errors import ForbiddenError
from trainer.kube.objects import Object
from trainer.kube.resource import Resource
from trainer_kube_testing import FakeClient

pytestmark = pytest.mark.usefixtures("cluster")
WITHOUT = "warning: the cluster has no Kueue: nothing keeps the TrainJob waiting in queue {}, it starts at once\n"
UNKNOWN = "warning: namespace default has no LocalQueue {}, and the TrainJob waits until it has one"


@pytest.fixture
def kueue() -> tuple[Resource, ...]:
    """What the cluster serves of Kueue."""
    return LOCAL_QUEUES


@pytest.fixture
def served(kueue: tuple[Resource, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeClient:
    """A cluster with a queue, and a script."""
    client = ConnectedClient(resources=[TRAIN_JOBS, TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES, *kueue])
    for runtime in runtimes():
        client.add(runtime)
    for resource in kueue:
        client.add(queue("team-a", resource))
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("import torch")
    return client


def queue(name: str, resource: Resource) -> Object:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": resource.api_version, "kind": "LocalQueue", "metadata": metadata}


def warning(arguments: str) -> str:
    """What `trainer run` says on standard error."""
    result = CliRunner().invoke(app, f"run --no-follow {arguments}")
    assert result.exit_code == 0, result.stderr
    return result.stderr


@pytest.mark.parametrize(
    ("kueue", "arguments", "said"),
    [
        pytest.param(LOCAL_QUEUES, "--queue team-a", "", id="there"),
        pytest.param(LOCAL_QUEUES[1:], "--queue team-a", "", id="there, of the older version"),
        pytest.param(LOCAL_QUEUES, "--queue team-b", f"{UNKNOWN}: did you mean team-a? There are: team-a\n", id="not"),
        pytest.param(LOCAL_QUEUES, "--queue x -n default", f"{UNKNOWN}: there are: team-a\n", id="nothing like it"),
        pytest.param((), "--queue team-a", WITHOUT, id="no Kueue"),
        pytest.param((), "", "", id="no queue"),
    ],
)
def test_queue(arguments: str, said: str) -> None:
    """One line says that a queue is not there, and what follows from that; else nothing is said."""
    assert warning(f"train.py {arguments}") == said.format(*arguments.split()[1:2])


def test_without_rights(served: FakeClient) -> None:
    """A user who may not look learns nothing."""
    served.faults.fail(ForbiddenError(403, "localqueues is forbidden"), verb="get", resource=LOCAL_QUEUES[0], times=1)
    assert warning("train.py --queue team-b") == ""


@pytest.mark.parametrize("kueue", [()])
def test_file() -> None:
    """The TrainJobs of a file are looked at as well; a label that Kueue does not read is none."""
    job: Object = {"apiVersion": TRAIN_JOBS.api_version, "kind": "TrainJob", "spec": {"runtimeRef": {"name": "plain"}}}
    label = {"kueue.x-k8s.io/queue-name": "team-a"}
    queued = job | {"metadata": {"name": "a"}, "spec": job["spec"] | {"labels": label}}
    other = job | {"metadata": {"name": "b", "labels": label}}
    Path("jobs.yaml").write_text(yaml.safe_dump_all([queued, other]))
    assert warning("-f jobs.yaml") == WITHOUT.format("team-a")
