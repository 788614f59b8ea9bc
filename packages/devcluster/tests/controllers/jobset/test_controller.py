from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from packages.devcluster.tests.controllers.cached_server import CachedServer, cached_server
from packages.devcluster.tests.controllers.jobset.samples import (
    NOW,
    RUNNING,
    complete,
    conditions_of,
    make_job,
    make_jobset,
    make_replicated_job,
)
from trainer.kube.errors import AlreadyExistsError, ForbiddenError
from trainer.kube.events.recorder import EventRecorder
from trainer.kube.objects import Object, ObjectKey, name_of
from trainer.kube.resource import JOBS, PERSISTENT_VOLUME_CLAIMS, SERVICES
from trainer.workloads import JOBSETS
from trainer_devcluster.controllers.jobset.controller import JobSetReconciler
from trainer_devcluster.feature_gates import DEFAULT_FEATURE_GATES, FeatureGates
from trainer_kube_testing.recorded import RecordedEvents

KEY = ObjectKey("n", "js")
POLICY = {"templates": [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}]}
RESOURCES = (JOBSETS, JOBS, SERVICES, PERSISTENT_VOLUME_CLAIMS)


class World:
    """One JobSet; the test plays user and Job controller."""

    def __init__(self, cluster: CachedServer, gates: FeatureGates) -> None:
        self.cluster = cluster
        self.server = cluster.server
        self.recorded = RecordedEvents()
        jobsets, jobs, services, claims = (cluster.lister(resource) for resource in RESOURCES)
        recorder = EventRecorder(self.recorded, "jobset-controller")
        self._reconciler = JobSetReconciler(
            cluster.client, jobsets, jobs, services, claims, recorder=recorder, clock=cluster.clock, gates=gates
        )

    async def reconcile(self, times: int = 1, *, deliver: bool = True) -> None:
        for _ in range(times):
            if deliver:
                await self.cluster.deliver()
            await self._reconciler.reconcile(KEY)

    @property
    def jobset(self) -> Object:
        [found] = self.server.objects(JOBSETS)
        return found

    def job(self, name: str = "js-node-0") -> Object:
        found = self.server.find(JOBS, name, "n")
        assert found is not None
        return found

    def set_job_status(self, status: Object, name: str = "js-node-0") -> None:
        self.server.add({**self.job(name), "status": status})

    def events(self) -> list[str]:
        return self.recorded.reasons


@asynccontextmanager
async def one_jobset(jobset: Object, gates: FeatureGates = DEFAULT_FEATURE_GATES) -> AsyncIterator[World]:
    """A cluster with this JobSet, which the cache of its controller has seen."""
    async with cached_server(NOW, RESOURCES, jobset) as cluster:
        yield World(cluster, gates)


async def test_jobset_that_is_gone_is_left_alone() -> None:
    """A reconcile whose JobSet is deleted before the watch tells ends without a retry."""
    async with one_jobset(make_jobset(make_replicated_job())) as world:
        await world.server.delete(JOBSETS, "js", "n")
        await world.reconcile(deliver=False)
        await world.reconcile()
        assert world.cluster.writes[-1] == ("update", "jobsets", "js")


async def test_suspended_job_loses_its_start_time_before_it_is_resumed() -> None:
    """The Job API lets its template change only without one."""
    async with one_jobset(make_jobset(suspend=True)) as world:
        await world.reconcile(2)
        assert world.job()["spec"]["suspend"] is True
        world.set_job_status({"startTime": "2026-11-21T11:00:00Z"})
        world.server.add({**world.jobset, "spec": {**world.jobset["spec"], "suspend": False}})
        world.server.requests.clear()
        await world.reconcile(2)
        assert world.job()["spec"]["suspend"] is False
        assert "startTime" not in world.job()["status"]
        assert world.cluster.writes[:2] == [("update", "jobs", "js-node-0")] * 2
        assert conditions_of(world.jobset["status"]) == {"Suspended": ("False", "ResumeJobs")}


async def test_name_taken_by_a_strange_job_is_reported() -> None:
    """The user sees why nothing happens; the work queue tries again."""
    async with one_jobset(make_jobset()) as world:
        stranger = make_job(make_jobset())
        stranger["metadata"] |= {"uid": "s", "ownerReferences": []}
        world.server.add(stranger)
        with pytest.raises(AlreadyExistsError):
            await world.reconcile()
        assert world.events() == ["JobCreationFailed"]


async def test_claim_that_is_there_is_used() -> None:
    """An existing claim is used, whichever client created it."""
    async with one_jobset(make_jobset(volumeClaimPolicies=[POLICY])) as world:
        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data-js", "namespace": "n"}}
        world.server.add(claim)
        await world.reconcile(deliver=False)
        assert [name_of(job) for job in world.server.objects(JOBS)] == ["js-node-0"]
        assert world.events() == []


async def test_refused_claim_is_reported_and_no_job_is_made() -> None:
    """Its pods could not start; the work queue tries again."""
    async with one_jobset(make_jobset(volumeClaimPolicies=[POLICY])) as world:
        refusal = ForbiddenError(403, "exceeded quota")
        world.server.faults.fail(refusal, verb="create", resource=PERSISTENT_VOLUME_CLAIMS)
        with pytest.raises(ForbiddenError):
            await world.reconcile()
        assert world.server.objects(JOBS) == []
        assert world.events() == ["PVCCreationFailed"]


async def test_expired_jobset_deletes_itself() -> None:
    """ttlSecondsAfterFinished of 0 deletes at once, in the foreground."""
    async with one_jobset(make_jobset(ttlSecondsAfterFinished=0)) as world:
        await world.reconcile()
        world.set_job_status(complete())
        await world.reconcile(2)
        assert world.jobset["metadata"]["finalizers"] == ["foregroundDeletion"]


async def test_running_job_is_resized_by_a_patch() -> None:
    """The Job's status may change meanwhile; when the Job has its size nothing more is sent."""
    async with one_jobset(make_jobset(), FeatureGates(elastic_job_set=True)) as world:
        await world.reconcile(2)
        world.set_job_status(RUNNING)
        await world.reconcile(2)
        world.server.add({**world.jobset, "spec": make_jobset(make_replicated_job(pods=3))["spec"]})
        world.server.requests.clear()
        await world.reconcile(3)
        assert world.cluster.writes[0] == ("patch", "jobs", "js-node-0")
        assert [write for write in world.cluster.writes if write[1] == "jobs"] == world.cluster.writes[:1]
        assert (world.job()["spec"]["parallelism"], world.job()["spec"]["completions"]) == (3, 3)
        assert world.job()["status"] == RUNNING
