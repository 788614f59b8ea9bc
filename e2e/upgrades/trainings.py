"""Trainings of a namespace that go on while the control plane is another version."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from e2e.cluster import Cluster, training_runtime
from e2e.progress_training import training

Object = dict[str, Any]
KINDS = "trainjobs,jobsets,jobs,pods,services,configmaps,secrets,horizontalpodautoscalers,podgroups.scheduling.x-k8s.io"
GANG, MPI, RETRIED, SCALED, STUBBORN = "gang", "mpi", "retried", "scaled", "stubborn"
"""Runtimes of the namespace; in the last one nodes have ten minutes to end."""
TORCH, ELASTIC = "torch-distributed", "torch-distributed-elastic"
RUNNING = ("plain", "torch", "elastic", GANG, MPI, RETRIED, SCALED)
"""Trainings that run until `finish`."""
ENDED = {"done": "Complete", "broken": "Failed"}
SUSPENDED = ("waiting", "waiting-mpi", "waiting-still", "paused", "paused-gang", "paused-still")
"""Trainings that have never run, and those that were suspended while they ran."""
_METRIC: Object = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
}


@dataclass(frozen=True, slots=True)
class Trainings:
    """A namespace with trainings, and a folder in which they wait for files."""

    cluster: Cluster
    folder: Path

    def train_job(self, name: str, *, runtime: str = "plain", nodes: int | None = 1, **spec: Any) -> Object:
        """A TrainJob that reports 40 %, waits for `finish`, and reports 100 %; it has no number of nodes for None."""
        return self._of(name, self._waiting(name), runtime, nodes, spec)

    def short(self, name: str, *, runtime: str = "plain") -> Object:
        """A TrainJob that ends at once."""
        return self._of(name, "say(progressPercentage=100)", runtime, 1, {})

    def stubborn(self, name: str) -> Object:
        """The same of a training that goes on until `finish` also when it has been suspended."""
        body = f"""
            import signal
            told = []
            signal.signal(signal.SIGTERM, lambda *_: told.append(True))
            {self._waiting(name).strip()}
            sys.exit(143 if told else 0)
        """
        return self._of(name, body, STUBBORN, 1, {})

    def retried(self) -> Object:
        """The same of a training that fails first, and is started again."""
        return self._of(RETRIED, self._failing_once() + self._waiting(RETRIED), RETRIED, 1, {})

    def begin(self) -> None:
        """Make all of the tables above and `pending`, `ending` and `doomed`, and wait until each is as it stays."""
        self.cluster.apply(*_runtimes())
        pending = self.train_job("pending")
        pending["spec"]["trainer"]["resourcesPerNode"] = {"requests": {"cpu": "1000"}}
        self.cluster.apply(
            pending,
            self._of("done", "say(progressPercentage=100)", "plain", 1, {"ttlSecondsAfterFinished": 7200}),
            self._of("broken", "say(progressPercentage=10); sys.exit('out of luck')", "plain", 1, {}),
            self.train_job("plain", activeDeadlineSeconds=7200),
            self.train_job("torch", runtime=TORCH, nodes=2),
            self.train_job("elastic", runtime=ELASTIC, nodes=None),
            self.train_job(SCALED, runtime=SCALED, nodes=None),
            self.train_job(GANG, runtime=GANG, nodes=2),
            self.train_job(MPI, runtime=MPI, nodes=2),
            self.retried(),
            self.train_job("ending", runtime=GANG),
            self.train_job("doomed", runtime=GANG),
            self.train_job("waiting", runtime=TORCH, nodes=2, suspend=True),
            self.train_job("waiting-mpi", runtime=MPI, suspend=True),
            self.train_job("waiting-still", suspend=True),
            self.train_job("paused", runtime=TORCH, nodes=2),
            self.train_job("paused-gang", runtime=GANG),
            self.train_job("paused-still", runtime=TORCH),
        )
        for name in SUSPENDED:
            if name.startswith("paused"):
                self.wait_for_progress(name)
                self.cluster.suspend(name)
        for name in (*RUNNING, "ending", "doomed"):
            self.wait_for_progress(name)
        for name in SUSPENDED:
            self.cluster.wait_for_state(name, "Suspended")
        for name, state in {**ENDED, "pending": "Pending"}.items():
            self.cluster.wait_for_state(name, state)

    def begin_few(self) -> None:
        """Make `done`, `plain`, `retried`, `waiting` and `paused` alone, and wait until each is as it stays."""
        self.cluster.apply(_retried())
        self.cluster.apply(
            self.short("done", runtime=RETRIED),
            self.train_job("plain", runtime=RETRIED),
            self.retried(),
            self.train_job("waiting", runtime=RETRIED, suspend=True),
            self.train_job("paused", runtime=RETRIED),
        )
        for name in ("paused", "plain", RETRIED):
            self.wait_for_progress(name)
        self.cluster.suspend("paused")
        for name, state in {"done": "Complete", "waiting": "Suspended", "paused": "Suspended"}.items():
            self.cluster.wait_for_state(name, state)

    def resume(self, *names: str) -> None:
        """Resume TrainJobs, and wait until they run."""
        for name in names:
            self.cluster.suspend(name, False)
        for name in names:
            self.wait_for_progress(name)

    def finish(self, *names: str) -> None:
        """Let TrainJobs end, which must succeed."""
        for name in names:
            (self.folder / name).touch()
        for name in names:
            self.cluster.complete(name)

    def wait_for_progress(self, name: str) -> None:
        """Wait until the status says that a TrainJob runs, and how far it is."""
        progress = "jsonpath={.status.trainerStatus.progressPercentage}=40"
        self.cluster.kubectl("wait", f"trainjob/{name}", f"--for={progress}", "--timeout=80s")
        self.cluster.wait_for_state(name, "Running")

    def stored(self) -> dict[str, Object]:
        """All TrainJobs and what came of them, by kind and name."""
        shown = self.cluster.kubectl("get", KINDS, "-o", "json", "--show-managed-fields").stdout
        return {f"{obj['kind']}/{obj['metadata']['name']}": obj for obj in json.loads(shown)["items"]}

    def own(self, name: str) -> set[str]:
        """What is there of one TrainJob."""
        return {
            f"{obj['kind']}/{obj['metadata']['name']}"
            for obj in self.stored().values()
            if any(_is_of(name, owner["name"]) for owner in obj["metadata"].get("ownerReferences") or ())
        }

    def _of(self, name: str, body: str, runtime: str, nodes: int | None, spec: Object) -> Object:
        job = training(name, body, runtime=runtime, nodes=nodes or 1, **spec)
        if runtime in {GANG, MPI, RETRIED, SCALED, STUBBORN}:
            job["spec"]["runtimeRef"]["kind"] = "TrainingRuntime"
        if nodes is None:
            del job["spec"]["trainer"]["numNodes"]
        return job

    def _waiting(self, name: str) -> str:
        return f"""
            say(currentStep=4, totalSteps=10, progressPercentage=40, trainMetrics={{"loss": 0.5}})
            while not os.path.exists({str(self.folder / name)!r}):
                time.sleep(0.5)
            say(currentStep=10, totalSteps=10, progressPercentage=100, trainMetrics={{"loss": 0.1}})
        """

    def _failing_once(self) -> str:
        return f"""
            first = {str(self.folder / ".failed")!r}
            if not os.path.exists(first):
                open(first, "w").close()
                sys.exit(1)
        """


def _is_of(name: str, owner: str) -> bool:
    return owner in {name, f"{name}-node-0", f"{name}-launcher-0"}


def _runtimes() -> list[Object]:
    gang, scaled = training_runtime(GANG), training_runtime(SCALED)
    gang["spec"]["podGroupPolicy"] = {"coscheduling": {}}
    scaled["spec"]["mlPolicy"] = {"torch": {"elasticPolicy": {"minNodes": 1, "maxNodes": 3, "metrics": [_METRIC]}}}
    stubborn = training_runtime(STUBBORN, pod={"terminationGracePeriodSeconds": 600})
    return [gang, _retried(), scaled, stubborn, _mpi()]


def _retried() -> Object:
    retried = training_runtime(RETRIED)
    retried["spec"]["template"]["spec"]["failurePolicy"] = {"maxRestarts": 3}
    return retried


def _mpi() -> Object:
    """Its nodes wait for a launcher, which is no mpirun."""
    mpi = training_runtime(MPI)
    mpi["spec"]["mlPolicy"] = {"numNodes": 1, "mpi": {"mpiImplementation": "OpenMPI"}}
    template = mpi["spec"]["template"]["spec"]
    template["successPolicy"] = {"operator": "All", "targetReplicatedJobs": ["launcher"]}
    (node,) = template["replicatedJobs"]
    launcher = {"name": "launcher", "template": {"spec": copy.deepcopy(node["template"]["spec"])}}
    (container,) = node["template"]["spec"]["template"]["spec"]["containers"]
    container["command"] = ["sleep", "3600"]
    template["replicatedJobs"].append(launcher)
    return mpi
