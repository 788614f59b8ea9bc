"""What several tests of the command need."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from rich.console import Console

from trainer.api.kubeflow_v1 import PYTORCH_JOBS
from trainer.api.optimization import OPTIMIZATION_JOBS
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.cli import current_cluster
from trainer.cli.jobs.state import JobState
from trainer.cli.run.display import JobDisplay
from trainer.explain.suspension import WORKLOADS
from trainer.kube.objects import Object, ObjectKey
from trainer.kube.rest.connection import ConnectionOptions
from trainer.workloads import JOBSETS
from trainer_kube_testing import FakeClient, ManualClock, statuses


class RecordingDisplay(JobDisplay):
    """Records what it has to show."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.log_states: list[str] = []
        self.warnings: list[str] = []
        self.hints: list[str] = []
        self.states: list[JobState] = []

    def log(self, job: ObjectKey, node: str, text: str) -> None:
        self.lines.append(f"{job.name} {node}: {text}")

    def log_state(self, job: ObjectKey, node: str, text: str) -> None:
        self.log_states.append(f"{job.name} {node}: {text}")

    def warning(self, job: ObjectKey, text: str) -> None:
        self.warnings.append(f"{job.name}: {text}")

    def hint(self, job: ObjectKey, text: str) -> None:
        self.hints.append(f"{job.name}: {text}")

    def advice(self, job: ObjectKey, remedy: str) -> None:
        self.hints.append(f"{job.name}: {remedy}")

    def state(self, job: ObjectKey, state: JobState) -> None:
        if state not in self.states:
            self.states.append(state)

    async def keep_fresh(self) -> None:
        pass


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def client(clock: ManualClock) -> FakeClient:
    return FakeClient(resources=[TRAIN_JOBS, TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES, JOBSETS], clock=clock)


@pytest.fixture
def display() -> RecordingDisplay:
    return RecordingDisplay()


class ConnectedClient(FakeClient):
    """A client as `connect` makes it, which knows the namespace of its context and what the cluster serves."""

    namespace = "default"
    server = "https://cluster.test"
    context = "of-the-test"
    version = "v2alpha1"

    async def request(self, method: str, path: str) -> Object:
        """Discovery of a group, or of a version of one."""
        _, root, *names = path.split("/")
        if root != "apis":
            return {}
        if len(names) == 1:
            return {"versions": [{"version": self.version}]}
        found = [each.plural for each in self.fake_server.resources.values() if each.api_version == "/".join(names)]
        if not found:
            raise statuses.no_such_resource()
        return {"resources": [{"name": plural} for plural in found]}


@pytest.fixture
def served() -> FakeClient:
    """The cluster of `cluster`, by the clock of the machine."""
    runtimes = [TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES]
    further = [JOBSETS, PYTORCH_JOBS, WORKLOADS[0], OPTIMIZATION_JOBS]
    return ConnectedClient(resources=[TRAIN_JOBS, *runtimes, *further])


@pytest.fixture
def cluster(served: FakeClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cluster that command lines connect to."""

    @asynccontextmanager
    async def connect(options: ConnectionOptions) -> AsyncIterator[FakeClient]:
        yield served

    monkeypatch.setenv("KUBECONFIG", "of-the-test")
    monkeypatch.setattr(current_cluster, "connect", connect)


class Terminal(io.StringIO):
    """What is written to a terminal."""

    def isatty(self) -> bool:
        return True


def screen(*, terminal: bool = False, width: int = 80) -> Console:
    """A console as commands have it, without colours."""
    return Console(
        file=Terminal() if terminal else io.StringIO(),
        force_terminal=terminal,
        color_system=None,
        width=width,
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=True,
    )


def text_of(console: Console) -> str:
    """What was printed on a `screen`."""
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def train_job(name: str = "demo", **status: Any) -> Object:
    """A TrainJob as a server returns it."""
    return {
        "apiVersion": TRAIN_JOBS.api_version,
        "kind": TRAIN_JOBS.kind,
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-of-{name}"},
        "spec": {"runtimeRef": {"name": "plain"}},
        "status": status,
    }


def node_pod(job: str, index: int, *, phase: str = "Running") -> Object:
    """A pod of the training nodes of a job, with one container."""
    states: dict[str, dict[str, Any]] = {"Running": {"running": {}}, "Pending": {"waiting": {}}}
    state = states.get(phase, {"terminated": {"exitCode": 0}})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{job}-node-0-{index}-abcde",
            "namespace": "default",
            "labels": {
                "jobset.sigs.k8s.io/jobset-name": job,
                "jobset.sigs.k8s.io/replicatedjob-name": "node",
                "batch.kubernetes.io/job-completion-index": str(index),
            },
        },
        "spec": {"restartPolicy": "Never", "containers": [{"name": "trainer"}]},
        "status": {"phase": phase, "containerStatuses": [{"name": "trainer", "restartCount": 0, "state": state}]},
    }


def finished(kind: str, reason: str, message: str) -> dict[str, Any]:
    """The status of a job that has ended."""
    return {"state": kind, "conditions": [{"type": kind, "status": "True", "reason": reason, "message": message}]}
