from __future__ import annotations

import pytest

from tests.devcluster.controllers.fake_server import FakeServer
from tests.devcluster.controllers.job.samples import make_job, make_pod
from trainer.devcluster.controllers.job.orphans import OrphanReconciler
from trainer.devcluster.controllers.job.pods import is_tracked
from trainer.kube.objects import ObjectKey
from trainer.kube.resource import JOBS, PODS

KEY = ObjectKey("n", "p")


@pytest.fixture
def server() -> FakeServer:
    server = FakeServer()
    server.put(PODS, make_pod("p", "Running"))
    return server


async def is_released(server: FakeServer) -> bool:
    reconciler = OrphanReconciler(server.client, server.informer(JOBS).lister, server.informer(PODS).lister)
    await reconciler.reconcile(KEY)
    pod = server.find(PODS, "p")
    return pod is not None and not is_tracked(pod)


async def test_pod_without_its_job_is_released(server: FakeServer) -> None:
    """Otherwise the pods of a Job that was deleted in the background would stay for ever."""
    assert await is_released(server)


async def test_pod_of_a_job_is_left_to_it(server: FakeServer) -> None:
    """The Job still has to count it."""
    server.put(JOBS, make_job())
    assert not await is_released(server)


async def test_job_that_the_cache_has_not_seen_is_looked_up(server: FakeServer) -> None:
    """A lagging cache must not cost a Job the count of its pod."""
    server.informer(JOBS)
    server.put(JOBS, make_job())
    assert not await is_released(server)


async def test_pod_of_a_predecessor_of_the_job_is_released(server: FakeServer) -> None:
    """A Job of the same name with another uid is another Job."""
    job = make_job()
    job["metadata"]["uid"] = "another"
    server.put(JOBS, job)
    assert await is_released(server)


async def test_pod_that_was_orphaned_on_purpose_is_released(server: FakeServer) -> None:
    """Without a controller reference nobody counts the pod."""
    pod = make_pod("p", "Running")
    del pod["metadata"]["ownerReferences"]
    server.put(PODS, pod)
    assert await is_released(server)
