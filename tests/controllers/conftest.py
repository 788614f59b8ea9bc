"""A manager on a fake API server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from tests.configurations import bare
from tests.framework.samples import runtime_object
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.framework.startup.discovery import EnabledPlugin
from trainer.kube.metrics import Metrics
from trainer.kube.objects import Object, find_condition, resource_version_of
from trainer.kube.resource import EVENTS
from trainer.manager import build_manager
from trainer.v1alpha1.client import SERVED
from trainer.v1alpha1.discovery import V2ALPHA1, Served
from trainer.v1alpha1.status import decode_status
from trainer.workloads import JOBSETS
from trainer_kube_testing import FakeClient, ManualClock, RecordedRequest, settle

RESOURCES = (TRAIN_JOBS, TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES, JOBSETS)


class Cluster:
    """A fake API server with the runtime `blueprint`; tests play the user and the JobSet controller.

    It serves the version of TrainJobs that it is made with.
    """

    def __init__(self, served: Served = V2ALPHA1) -> None:
        self.clock = ManualClock()
        self.served = served
        self.train_jobs = TRAIN_JOBS if served is V2ALPHA1 else SERVED[TRAIN_JOBS]
        resources = RESOURCES if served is V2ALPHA1 else (*SERVED.values(), JOBSETS)
        runtimes = [runtime_object()] if served is V2ALPHA1 else []
        self.client = FakeClient(*runtimes, resources=resources, clock=self.clock)
        self.metrics = Metrics()

    @asynccontextmanager
    async def managed(
        self, plugins: Iterable[EnabledPlugin] | None = None, *, namespace: str = "", **sections: Any
    ) -> AsyncIterator[None]:
        """Run the manager with further settings; it has done all it can when the body starts."""
        settings = bare(controller={"namespace": namespace}, **sections)
        client = self.served.client(self.client)
        manager = build_manager(client, settings, served=self.served, plugins=plugins, clock=self.clock)
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
        await self.client.update(self.train_jobs, obj | {"spec": obj["spec"] | spec})
        await settle()

    async def resync(self) -> None:
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
        (obj,) = self.client.objects(self.train_jobs)
        return obj

    @property
    def status(self) -> Object:
        """Its status in the form of the model."""
        return decode_status(self.train_job) or {}

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
        """The manager's requests that change something; `update` is the user's."""
        reads = {"get", "list", "watch", "update"}
        return [each for each in self.client.requests if each.verb not in reads and not each.dry_run]

    def condition(self, condition_type: str) -> tuple[str, str, str] | None:
        """Status, reason and message of a condition of the TrainJob."""
        found = find_condition(self.train_job, condition_type)
        return (found["status"], found["reason"], found["message"]) if found else None

    def counted(self) -> dict[str, float]:
        """The counters of TrainJobs, over all groups."""
        samples = [sample for metric in self.metrics.registry.collect() for sample in metric.samples]
        return {
            name: sum(each.value for each in samples if each.name == f"trainer_trainjobs_{name}_total")
            for name in ("created", "completed", "failed")
        }

    def timed(self) -> float:
        """How many durations of TrainJobs have been observed."""
        samples = [sample for metric in self.metrics.registry.collect() for sample in metric.samples]
        return sum(
            each.value for each in samples if each.name.startswith("trainer_trainjob_") and each.name.endswith("_count")
        )

    def forget_requests(self) -> None:
        """Start recording anew."""
        self.client.requests.clear()


@pytest.fixture
def cluster() -> Cluster:
    """An API server without a manager."""
    return Cluster()
