from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from packages.devcluster.tests.controllers.cached_server import TERMINATING, CachedServer, cached_server
from packages.devcluster.tests.controllers.job.samples import NOW, ago, make_job
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.errors import ForbiddenError, KubeError, NamespaceTerminatingError
from trainer.kube.events.recorder import EventRecorder
from trainer.kube.objects import Object, ObjectKey, has_finished, is_being_deleted, is_condition_true, name_of
from trainer.kube.resource import JOBS, PODS
from trainer_devcluster.controllers.job import controller
from trainer_devcluster.controllers.job.controller import JobReconciler
from trainer_devcluster.controllers.job.pods import (
    build_pod,
    completion_index,
    is_active,
    is_tracked,
    without_containers,
)
from trainer_devcluster.controllers.options import ControllerOptions
from trainer_kube_testing import WRITES
from trainer_kube_testing.recorded import RecordedEvents

KEY = ObjectKey("n", "j")


class World:
    """One Job; the test plays user, kubelet and network."""

    def __init__(self, cluster: CachedServer) -> None:
        self.cluster = cluster
        self.server = cluster.server
        self.recorded = RecordedEvents()
        self.ended_badly = 0
        """How many failures the test has caused."""

    def reconciler(self) -> JobReconciler:
        """One that has just started."""
        jobs, pods = self.cluster.lister(JOBS), self.cluster.lister(PODS)
        recorder, options = EventRecorder(self.recorded, "job-controller"), ControllerOptions(pod_backoff_base=0)
        client, clock = self.cluster.client, self.cluster.clock
        return JobReconciler(client, jobs, pods, recorder, clock=clock, options=options)

    async def reconcile(self) -> None:
        await self.reconciler().reconcile(KEY)

    async def settle(self) -> None:
        """Reconcile until nothing changes any more."""
        with anyio.fail_after(10):
            while True:
                before = len(self.cluster.writes)
                await self.cluster.deliver()
                await self.reconcile()
                if len(self.cluster.writes) == before:
                    return

    @property
    def job(self) -> Object:
        [found] = self.server.objects(JOBS)
        return found

    @property
    def pods(self) -> list[Object]:
        return self.server.objects(PODS)

    def set_suspended(self, suspended: bool) -> None:
        self.server.add({**self.job, "spec": {**self.job["spec"], "suspend": suspended}})

    def set_phase(self, pod: Object, phase: str) -> None:
        """What the kubelet does; an ended pod that is being deleted stays until it is released."""
        code = {"Succeeded": 0, "Failed": 1}.get(phase)
        status: Object = {"phase": phase}
        if code is not None:
            ended = {"terminated": {"exitCode": code, "finishedAt": ago(60)}}
            status["containerStatuses"] = [{"name": "c", "state": ended}]
        self.server.add({**pod, "status": status})

    def events(self) -> list[tuple[str, str]]:
        return [(event.reason, event.message) for event in self.recorded.occurrences]


@asynccontextmanager
async def one_job(job: Object) -> AsyncIterator[World]:
    """A cluster with this Job, which the cache of its controller has seen."""
    async with cached_server(NOW, (JOBS, PODS), job) as cluster:
        yield World(cluster)


async def test_job_that_is_gone_is_left_alone() -> None:
    """A reconcile whose Job is deleted before the watch tells ends without a retry."""
    async with one_job(make_job()) as world:
        await world.server.delete(JOBS, "j", "n")
        await world.reconcile()
        assert world.server.objects(JOBS) == []


async def test_pods_are_made_once_although_the_cache_is_empty() -> None:
    """Without a single watch event the second reconcile still makes nothing twice."""
    async with one_job(make_job()) as world:
        await world.reconcile()
        await world.reconcile()
        assert sorted(completion_index(pod) or 0 for pod in world.pods) == [0, 1]
        assert world.job["status"]["active"] == 2
        assert [reason for reason, _ in world.events()] == ["SuccessfulCreate", "SuccessfulCreate"]


async def test_pods_that_vanish_unseen_are_not_asked_for_again() -> None:
    """A pod that the server does not find is gone for the controller, whatever the cache still shows."""
    async with one_job(make_job()) as world:
        await world.settle()
        world.set_suspended(True)
        for pod in world.pods:
            world.server.remove(PODS, name_of(pod), "n")
        await world.cluster.deliver(1)
        world.server.requests.clear()
        await world.reconcile()
        assert [verb for verb, resource, _ in world.cluster.writes if resource == "pods"] == [
            "patch",
            "patch",
            "delete",
            "delete",
        ]
        assert world.job["status"].get("active", 0) == 0


async def test_large_pods_do_not_stop_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pod is built when its turn comes, and read once for each of its versions: it may have a megabyte."""
    built: list[int | None] = []
    read: list[ObjectKey] = []

    def building(job: Object, new: int | None) -> Object:
        built.append(new)
        return build_pod(job, new)

    def reading(pod: CachedObject) -> Object:
        read.append(pod.key)
        return without_containers(pod)

    monkeypatch.setattr(controller, "build_pod", building)
    monkeypatch.setattr(controller, "without_containers", reading)
    async with one_job(make_job(parallelism=20, completions=20)) as world:
        world.server.faults.fail(ForbiddenError(403, "exceeded quota"), verb="create", resource=PODS, skip=2)
        with pytest.raises(ForbiddenError):
            await world.reconcile()
        assert len(built) == 3
        await world.settle()
        read.clear()
        reconciler = world.reconciler()
        for _ in range(5):
            await reconciler.reconcile(KEY)
        assert len(read) == 20


async def test_pod_refused_by_a_terminating_namespace_is_no_failure() -> None:
    """The Job is about to go as well: no event, and the worker retries nothing."""
    async with one_job(make_job()) as world:
        world.server.faults.fail(TERMINATING, verb="create", resource=PODS)
        with pytest.raises(NamespaceTerminatingError):
            await world.reconcile()
        assert world.events() == []


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("indexed", [True, False], ids=["indexed", "non-indexed"])
async def test_every_end_is_counted_once_whatever_lags_or_crashes(seed: int, indexed: bool) -> None:
    """Late events, lost answers, crashes and deletions in any order leave exact counters and no finalizer behind."""
    chance = random.Random(seed)
    mode = "Indexed" if indexed else "NonIndexed"
    async with one_job(make_job(completionMode=mode, completions=4, backoffLimit=1000)) as world:
        for _ in range(120):
            await _random_step(world, chance)
            indexes = [completion_index(pod) for pod in world.pods if is_active(pod)]
            assert len(indexes) <= 2
            assert not indexed or len(set(indexes)) == len(indexes)
        await _finish(world)
        status = world.job["status"]
        assert is_condition_true(world.job, "Complete")
        assert status["succeeded"] == 4
        assert status.get("failed", 0) == world.ended_badly
        assert status["uncountedTerminatedPods"] == {}
        assert not any(is_tracked(pod) for pod in world.pods)


async def _random_step(world: World, chance: random.Random) -> None:
    running = [pod for pod in world.pods if not has_finished(pod) and not is_being_deleted(pod)]
    match chance.choice(["reconcile", "reconcile", "deliver", "crash", "flaky", "succeed", "fail", "delete"]):
        case "reconcile":
            await world.reconcile()
        case "deliver":
            await world.cluster.deliver(chance.randint(1, 3))
        case "crash":
            await world.cluster.restart()
        case "flaky":
            lost = world.server.faults.lose_answer(times=None, skip=chance.randint(0, 2), verb=WRITES)
            try:
                await world.reconcile()
            except KubeError:
                # The write may have been carried out although its answer is lost; the cache tells in time.
                await world.cluster.deliver()
            lost.end()
        case "succeed" if running and chance.random() < 0.3:
            world.set_phase(chance.choice(running), "Succeeded")
        case "fail" if running and chance.random() < 0.5:
            world.ended_badly += 1
            world.set_phase(chance.choice(running), "Failed")
        case "delete" if running and chance.random() < 0.3:
            world.ended_badly += 1
            await world.server.delete(PODS, name_of(chance.choice(running)), "n")


async def _finish(world: World) -> None:
    with anyio.fail_after(10):
        while not is_condition_true(world.job, "Complete"):
            await world.settle()
            for pod in world.pods:
                if is_active(pod):
                    world.set_phase(pod, "Succeeded")
        await world.settle()
