"""A manager on a fake API server."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from tests.configurations import bare
from tests.framework.samples import runtime_object
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.metrics import Metrics
from trainer.kube.objects import Object, find_condition, resource_version_of
from trainer.kube.resource import EVENTS
from trainer.kube.testing import FakeClient, ManualClock, RecordedRequest, settle
from trainer.manager import build_manager
from trainer.workloads import JOBSETS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from trainer.framework.startup.discovery import EnabledPlugin

RESOURCES = (TRAIN_JOBS, TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES, JOBSETS)


class Cluster:
    """A fake API server with the runtime `blueprint`; tests play the user and the JobSet controller."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.client = FakeClient(runtime_object(), resources=RESOURCES, clock=self.clock)
        self.metrics = Metrics()

    @asynccontextmanager
    async def managed(
        self, plugins: Iterable[EnabledPlugin] | None = None, *, namespace: str = ""
    ) -> AsyncIterator[None]:
        """Run the manager; it has done all it can when the body starts."""
        settings = bare(controller={"namespace": namespace})
        manager = build_manager(self.client, settings, plugins=plugins, clock=self.clock)
        self.metrics = manager.metrics
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(manager.run)
            await manager.wait_for_start()
            await settle()
            yield
            tasks.cancel_scope.cancel()

    async def put(self, obj: Object) -> None:
        """Somebody else writes an object, and the manager does all that follows at once."""
        self.client.add(obj)
        await settle()

    async def change(self, obj: Object, **spec: Any) -> None:
        """The user changes the spec of a stored object."""
        await self.client.update(TRAIN_JOBS, obj | {"spec": obj["spec"] | spec})
        await settle()

    async def look_again(self) -> None:
        """Make the manager reconcile the TrainJob although nothing has changed."""
        obj = self.train_job
        generation = obj["metadata"]["generation"] + 1
        status = obj.get("status") or {}
        # As if this generation had been seen already.
        if status.get("observedGeneration"):
            status["observedGeneration"] = generation
        for condition in status.get("conditions") or []:
            condition["observedGeneration"] = generation
        await self.put(obj | {"metadata": obj["metadata"] | {"generation": generation}})

    async def run_jobset(self, terminal: str = "", *conditions: Object, **counts: int) -> None:
        """The JobSet controller writes the status of the JobSet."""
        zeros = {"ready": 0, "succeeded": 0, "failed": 0, "active": 0, "suspended": 0}
        status = {
            "restarts": 0,
            "replicatedJobsStatus": [{"name": "node"} | zeros | counts],
            "conditions": list(conditions),
            "terminalState": terminal,
        }
        await self.put(self.jobset | {"status": status})

    async def collect(self) -> None:
        """The garbage collector has deleted what JobSets owned that wait for it."""
        for jobset in self.jobsets:
            if "foregroundDeletion" in jobset["metadata"].get("finalizers", ()):
                self.client.remove(JOBSETS, jobset["metadata"]["name"], jobset["metadata"]["namespace"])
        await settle()

    @property
    def train_job(self) -> Object:
        """The only TrainJob."""
        (obj,) = self.client.objects(TRAIN_JOBS)
        return obj

    @property
    def jobset(self) -> Object:
        """The only JobSet."""
        (obj,) = self.client.objects(JOBSETS)
        return obj

    @property
    def jobsets(self) -> list[Object]:
        """All JobSets."""
        return self.client.objects(JOBSETS)

    @property
    def events(self) -> list[tuple[str, str, str]]:
        """Type, reason and message of all events, oldest first."""
        events = sorted(self.client.objects(EVENTS), key=lambda event: int(resource_version_of(event)))
        return [(event["type"], event["reason"], event["message"]) for event in events]

    @property
    def writes(self) -> list[RecordedRequest]:
        """The manager's requests that are not reads; `update` is the user's."""
        return [request for request in self.client.requests if request.verb not in {"get", "list", "watch", "update"}]

    def condition(self, condition_type: str) -> tuple[str, str, str] | None:
        """Status, reason and message of a condition of the TrainJob."""
        found = find_condition(self.train_job, condition_type)
        return (found["status"], found["reason"], found["message"]) if found else None

    def forget_requests(self) -> None:
        """Start recording anew."""
        self.client.requests.clear()


@pytest.fixture
def cluster() -> Cluster:
    """An API server without a manager."""
    return Cluster()
