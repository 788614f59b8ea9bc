from __future__ import annotations

import random
from typing import TYPE_CHECKING

import anyio
import pytest

from tests.devcluster.controllers.fake_server import TERMINATING, FakeServer
from tests.devcluster.controllers.job.samples import NOW, ago, make_job
from trainer.devcluster.controllers.job.controller import JobReconciler
from trainer.devcluster.controllers.job.pods import completion_index, is_active, is_finished, is_tracked
from trainer.devcluster.controllers.options import ControllerOptions
from trainer.devcluster.controllers.own_writes import OwnWrites
from trainer.kube.errors import ForbiddenError, KubeError
from trainer.kube.objects import ObjectKey, is_being_deleted, is_condition_true
from trainer.kube.resource import EVENTS, JOBS, PODS
from trainer.kube.testing import ManualClock

if TYPE_CHECKING:
    from trainer.kube.objects import Object

KEY = ObjectKey("n", "j")


class World:
    """One Job on a fake server; the test plays user, kubelet and network."""

    def __init__(self, job: Object) -> None:
        self.server = FakeServer()
        self.server.put(JOBS, job)
        self.clock = ManualClock(NOW)
        self.restart_controller()

    def restart_controller(self) -> None:
        """Lose everything that the controller keeps in memory, as a crash does."""
        self.server.restart_informers()
        jobs = OwnWrites(self.server.informer(JOBS), clock=self.clock)
        pods = OwnWrites(self.server.informer(PODS), clock=self.clock)
        options = ControllerOptions(pod_backoff_base=0)
        self._reconciler = JobReconciler(self.server.client, jobs, pods, clock=self.clock, options=options)

    async def reconcile(self) -> None:
        await self._reconciler.reconcile(KEY)

    async def settle(self) -> None:
        """Reconcile until nothing changes any more."""
        with anyio.fail_after(10):
            while True:
                before = len(self.server.requests)
                self.server.deliver()
                await self.reconcile()
                if len(self.server.requests) == before:
                    return

    @property
    def job(self) -> Object:
        found = self.server.find(JOBS, "j")
        assert found is not None
        return found

    @property
    def pods(self) -> list[Object]:
        return self.server.all(PODS)

    def set_phase(self, pod: Object, phase: str) -> None:
        """What the kubelet does; an ended pod that is being deleted stays until it is released."""
        code = {"Succeeded": 0, "Failed": 1}.get(phase)
        status: Object = {"phase": phase}
        if code is not None:
            ended = {"terminated": {"exitCode": code, "finishedAt": ago(60)}}
            status["containerStatuses"] = [{"name": "c", "state": ended}]
        self.server.put(PODS, {**pod, "status": status})

    def events(self) -> list[tuple[str, str]]:
        return [(event["reason"], event["message"]) for event in self.server.all(EVENTS)]


async def test_job_that_is_gone_is_left_alone() -> None:
    """A reconcile whose Job is deleted before the watch tells ends without a retry."""
    world = World(make_job())
    world.server.deliver()
    await world.server.client.delete(JOBS, "j", "n")
    await world.reconcile()
    assert world.server.find(JOBS, "j") is None


async def test_pods_are_made_once_although_the_cache_is_empty() -> None:
    """Without a single watch event the second reconcile still makes nothing twice."""
    world = World(make_job())
    await world.reconcile()
    await world.reconcile()
    assert sorted(completion_index(pod) or 0 for pod in world.pods) == [0, 1]
    assert world.job["status"]["active"] == 2
    assert [reason for reason, _ in world.events()] == ["SuccessfulCreate", "SuccessfulCreate"]


async def test_job_completes_and_tells_so() -> None:
    """From the last success to Complete nothing but watch events is needed."""
    world = World(make_job())
    await world.settle()
    for pod in world.pods:
        world.set_phase(pod, "Succeeded")
    await world.settle()
    assert is_condition_true(world.job, "Complete")
    assert world.job["status"]["succeeded"] == 2
    assert world.job["status"]["completedIndexes"] == "0,1"
    assert not any(is_tracked(pod) for pod in world.pods)
    assert ("Completed", "Job completed") in world.events()


async def test_refused_pod_is_told_and_retried() -> None:
    """The event has the server's message; the error goes to the work queue, which repeats the reconcile."""
    world = World(make_job())
    world.server.refuse(PODS, ForbiddenError(403, "exceeded quota"))
    with pytest.raises(ForbiddenError):
        await world.reconcile()
    assert world.events() == [("FailedCreate", "Error creating: exceeded quota")]


async def test_pod_refused_by_a_terminating_namespace_is_no_failure() -> None:
    """The Job is about to go as well: no event, no retry."""
    world = World(make_job())
    world.server.refuse(PODS, TERMINATING)
    await world.reconcile()
    assert world.events() == []


async def test_suspension_removes_the_pods_and_resumption_brings_new_ones() -> None:
    """Suspended pods do not count as failed."""
    world = World(make_job())
    await world.settle()
    world.server.put(JOBS, {**world.job, "spec": {**world.job["spec"], "suspend": True}})
    await world.settle()
    assert world.pods == []
    assert "failed" not in world.job["status"]
    world.server.put(JOBS, {**world.job, "spec": {**world.job["spec"], "suspend": False}})
    await world.settle()
    assert len(world.pods) == 2
    assert [reason for reason, _ in world.events()][-3:] == ["SuccessfulCreate", "SuccessfulCreate", "Resumed"]


async def test_job_of_another_controller_is_left_alone() -> None:
    """`spec.managedBy` hands the Job to somebody else."""
    world = World(make_job(managedBy="example.com/other"))
    await world.settle()
    assert world.pods == []


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("indexed", [True, False], ids=["indexed", "non-indexed"])
async def test_every_end_is_counted_once_whatever_lags_or_crashes(seed: int, indexed: bool) -> None:
    """Late events, lost answers, crashes and deletions in any order leave exact counters and no finalizer behind."""
    chance = random.Random(seed)
    world = World(make_job(completionMode="Indexed" if indexed else "NonIndexed", completions=4, backoffLimit=1000))
    for _ in range(120):
        await _random_step(world, chance)
        indexes = [completion_index(pod) for pod in world.pods if is_active(pod)]
        assert len(indexes) <= 2
        assert not indexed or len(set(indexes)) == len(indexes)
    await _finish(world)
    status = world.job["status"]
    assert is_condition_true(world.job, "Complete")
    assert status["succeeded"] == 4
    assert status.get("failed", 0) == world.server.ended_badly
    assert status["uncountedTerminatedPods"] == {}
    assert not any(is_tracked(pod) for pod in world.pods)


async def _random_step(world: World, chance: random.Random) -> None:
    running = [pod for pod in world.pods if not is_finished(pod) and not is_being_deleted(pod)]
    match chance.choice(["reconcile", "reconcile", "deliver", "crash", "flaky", "succeed", "fail", "delete"]):
        case "reconcile":
            await world.reconcile()
        case "deliver":
            world.server.deliver(chance.randint(1, 3))
        case "crash":
            world.restart_controller()
        case "flaky":
            world.server.fail_after(chance.randint(0, 2))
            try:
                await world.reconcile()
            except KubeError:
                # The write may have been carried out although its answer is lost; the cache tells in time.
                world.server.deliver()
            world.server.fail_after(None)
        case "succeed" if running and chance.random() < 0.3:
            world.set_phase(chance.choice(running), "Succeeded")
        case "fail" if running and chance.random() < 0.5:
            world.server.ended_badly += 1
            world.set_phase(chance.choice(running), "Failed")
        case "delete" if running and chance.random() < 0.3:
            world.server.ended_badly += 1
            await world.server.delete(PODS, chance.choice(running)["metadata"]["name"], "n")


async def _finish(world: World) -> None:
    with anyio.fail_after(10):
        while not is_condition_true(world.job, "Complete"):
            await world.settle()
            for pod in world.pods:
                if is_active(pod):
                    world.set_phase(pod, "Succeeded")
        await world.settle()
