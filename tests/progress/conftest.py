"""A manager that follows trainings on a fake API server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from tests.progress.pods import jobset, pod, running, terminated
from trainer.api.progress_tags import TAG
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.manager.manager import Manager
from trainer.kube.objects import Object, ObjectKey, find_condition, resource_version_of
from trainer.kube.podlogs.instant import Instant
from trainer.kube.resource import EVENTS
from trainer.progress.controller import ProgressController, ProgressOptions
from trainer.workloads import JOBSETS
from trainer_kube_testing import FakeClient, ManualClock, settle
from trainer_kube_testing.container_logs import FakeLog

KEY = ObjectKey("team-a", "digits")
FIRST_POD = "digits-node-0-0-abcde"


class Training:
    """The TrainJob `digits`, its JobSet and first pod; tests play the user, the kubelet and the container."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.client = FakeClient(resources=[TRAIN_JOBS, JOBSETS], clock=self.clock)
        self.client.add(self.train_job_object())
        self.client.add(jobset())
        self.controller: ProgressController

    @asynccontextmanager
    async def managed(self, **options: Any) -> AsyncIterator[None]:
        """Run a manager; it has done all it can when the body starts."""
        manager = self.manager = Manager(self.client, clock=self.clock)
        self.controller = ProgressController(manager, ProgressOptions(**options))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(manager.run)
            await manager.wait_for_start()
            await settle()
            yield
            tasks.cancel_scope.cancel()

    def train_job_object(self, uid: str = "train-job-uid", **metadata: Any) -> Object:
        """The TrainJob as its user wrote it."""
        return {
            "apiVersion": TRAIN_JOBS.api_version,
            "kind": "TrainJob",
            "metadata": {"name": KEY.name, "namespace": KEY.namespace, "uid": uid, "generation": 1} | metadata,
            "spec": {"runtimeRef": {"name": "torch"}},
        }

    @property
    def since(self) -> str:
        """Now, as the kubelet writes it."""
        return Instant.of(self.clock.now()).second

    async def start(self, name: str = FIRST_POD, **more: Any) -> FakeLog:
        """The primary container runs; what it writes goes to the log that this returns."""
        log = self.log(name)
        await self.put(pod(name, **{"state": running(self.since)} | more))
        return log

    async def end(self, name: str = FIRST_POD, code: int = 0, **more: Any) -> None:
        """The container ends, and its pod."""
        self.log(name).end()
        state = terminated(code, since=self.since)
        await self.put(pod(name, **{"state": state, "phase": "Failed" if code else "Succeeded"} | more))

    def log(self, name: str = FIRST_POD, container: str | None = None) -> FakeLog:
        """The log of a pod's containers, or of one of them."""
        return self.client.log(name, KEY.namespace, container)

    async def report(self, text: str, name: str = FIRST_POD) -> None:
        """The training prints a message."""
        self.log(name).write(f"{TAG} {text}\n".encode())
        await self.read()

    async def push(self, percentage: int) -> None:
        """Another replica has written what the training has posted to it."""
        obj = self.train_job
        status: Object = obj.get("status") or {}
        progress = {"progressPercentage": percentage, "lastUpdatedTime": self.since}
        await self.put(obj | {"status": status | {"trainerStatus": progress}})

    async def read(self) -> None:
        """All that was written has been read."""
        await settle()
        await self.clock.advance(0.5)

    async def put(self, obj: Object) -> None:
        """Somebody writes an object, and the manager does all that follows at once."""
        self.client.add(obj)
        await settle()

    async def finish(self, condition: str = "Complete") -> None:
        """The controller of TrainJobs writes how it has ended."""
        obj = self.train_job
        status = obj.get("status") or {}
        conditions = [*status.get("conditions", []), {"type": condition, "status": "True", "reason": "Done"}]
        await self.put(obj | {"status": status | {"conditions": conditions}})

    @property
    def train_job(self) -> Object:
        """The TrainJob as it is stored."""
        (obj,) = self.client.objects(TRAIN_JOBS)
        return obj

    @property
    def shown(self) -> Object:
        """The progress that the TrainJob shows, without its time."""
        shown = dict((self.train_job.get("status") or {}).get("trainerStatus") or {})
        shown.pop("lastUpdatedTime", None)
        return shown

    @property
    def stall(self) -> tuple[str, str, str] | None:
        """Status, reason and message of the condition Stalled."""
        found = find_condition(self.train_job, "Stalled")
        return (found["status"], found["reason"], found["message"]) if found else None

    @property
    def percentage(self) -> int | None:
        """The percentage that the TrainJob shows."""
        return self.shown.get("progressPercentage")

    @property
    def warnings(self) -> list[tuple[str, str]]:
        """Reason and message of all Warning events, oldest first."""
        events = sorted(self.client.objects(EVENTS), key=lambda event: int(resource_version_of(event)))
        return [(event["reason"], event["message"]) for event in events if event["type"] == "Warning"]

    @property
    def writes(self) -> int:
        """How often the progress was written."""
        return len(self.client.requests_of("apply"))

    @property
    def log_requests(self) -> list[tuple[str, str | None]]:
        """Pod and `sinceTime` of all requests for logs."""
        return [(request.name, request.body.since_time) for request in self.client.requests_of("log")]

    def series(self, name: str, **labels: str) -> float:
        """A metric of the manager."""
        return self.manager.metrics.registry.get_sample_value(f"trainer_progress_{name}", labels) or 0


@pytest.fixture
def training() -> Training:
    """A TrainJob whose pod does not exist yet."""
    return Training()
