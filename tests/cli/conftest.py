"""What several tests of the command need."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pytest
from anyio.from_thread import start_blocking_portal
from rich.console import Console

from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.testing import FakeClient, FakeServer, ManualClock
from trainer.workloads import JOBSETS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from trainer.cli.jobs.state import JobState
    from trainer.kube.objects import Object, ObjectKey


class RecordingDisplay:
    """Records what it has to show."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.warnings: list[str] = []
        self.states: list[JobState] = []

    def log(self, job: ObjectKey, node: str, text: str) -> None:
        self.lines.append(f"{job.name} {node}: {text}")

    def warning(self, job: ObjectKey, text: str) -> None:
        self.warnings.append(f"{job.name}: {text}")

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


@pytest.fixture
def served() -> FakeClient:
    """The cluster of `cluster`, by the clock of the machine."""
    return FakeClient(resources=[TRAIN_JOBS, TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES, JOBSETS])


@pytest.fixture
def cluster(served: FakeClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeServer]:
    """A cluster for real command lines: $KUBECONFIG names it, and it is served from another thread."""
    server = FakeServer(served)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(server):
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(KUBECONFIG.format(server=server.endpoint.server))
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
        yield server


KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: c
contexts: [{{name: c, context: {{cluster: c, user: u}}}}]
clusters: [{{name: c, cluster: {{server: "{server}"}}}}]
users: [{{name: u, user: {{}}}}]
"""


def screen(*, terminal: bool = False, width: int = 80) -> Console:
    """A console as commands have it, without colours."""
    return Console(
        file=io.StringIO(),
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
