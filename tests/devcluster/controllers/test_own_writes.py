from __future__ import annotations

import pytest

from tests.devcluster.controllers.fake_server import FakeServer
from trainer.devcluster.controllers.own_writes import OwnWrites
from trainer.kube.objects import Object, ObjectKey, is_being_deleted
from trainer.kube.resource import PODS
from trainer.kube.testing import ManualClock

OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "owner", "controller": True}
KEY = ObjectKey("n", "p")


@pytest.fixture
def server() -> FakeServer:
    return FakeServer()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def writes(server: FakeServer, clock: ManualClock) -> OwnWrites:
    return OwnWrites(server.informer(PODS), clock=clock, expiry=300)


def pod(**metadata: object) -> Object:
    base = {"name": "p", "namespace": "n", "ownerReferences": [OWNER]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {**base, **metadata}}


async def test_created_object_is_seen_before_the_cache_has_it(server: FakeServer, writes: OwnWrites) -> None:
    """A reconcile right after the creation does not create again."""
    created = await server.create(PODS, pod())
    writes.remember(created)
    assert writes.get(KEY) == created
    assert writes.owned_by("owner") == [created]


async def test_cache_that_has_caught_up_wins(server: FakeServer, writes: OwnWrites) -> None:
    """Later changes by others are seen."""
    created = await server.create(PODS, pod())
    writes.remember(created)
    server.put(PODS, {**created, "status": {"phase": "Running"}})
    server.deliver()
    [seen] = writes.owned_by("owner")
    assert seen["status"] == {"phase": "Running"}


async def test_older_state_in_the_cache_does_not_win(server: FakeServer, writes: OwnWrites) -> None:
    """Events from before the own write do not hide it."""
    first = await server.create(PODS, pod())
    writes.remember(server.put(PODS, {**first, "status": {"phase": "Running"}}))
    server.deliver(1)
    found = writes.get(KEY)
    assert found is not None
    assert found["status"] == {"phase": "Running"}


async def test_deleted_object_is_seen_as_terminating(server: FakeServer, writes: OwnWrites) -> None:
    """Until the cache shows the deletion, the object counts as being deleted; then it is gone."""
    created = await server.create(PODS, pod())
    server.deliver()
    await server.delete(PODS, "p", "n")
    writes.remember_deletion(created)
    [seen] = writes.owned_by("owner")
    assert is_being_deleted(seen)
    server.deliver()
    assert writes.owned_by("owner") == []


async def test_answer_that_comes_after_the_end_is_ignored(server: FakeServer, writes: OwnWrites) -> None:
    """When the watch has shown the deletion before the creation was answered, the object stays gone."""
    created = await server.create(PODS, pod())
    await server.delete(PODS, "p", "n")
    server.deliver()
    writes.remember(created)
    assert writes.get(KEY) is None


async def test_successor_of_the_same_name_is_seen(server: FakeServer, writes: OwnWrites) -> None:
    """A late delete event of the predecessor does not hide the new object."""
    await server.create(PODS, pod())
    server.deliver()
    await server.delete(PODS, "p", "n")
    successor = await server.create(PODS, pod())
    writes.remember(successor)
    server.deliver(1)
    assert writes.get(KEY) == successor


async def test_write_that_never_shows_up_expires(server: FakeServer, writes: OwnWrites, clock: ManualClock) -> None:
    """An object that vanished unseen does not stay for ever."""
    writes.remember(await server.create(PODS, pod()))
    await clock.advance(299)
    assert writes.get(KEY) is not None
    await clock.advance(2)
    assert writes.get(KEY) is None
    assert writes.owned_by("owner") == []


async def test_deletion_keeps_what_was_written_before(server: FakeServer, writes: OwnWrites) -> None:
    """A finalizer that was taken off just before the deletion does not come back."""
    created = await server.create(PODS, pod(finalizers=["a"]))
    server.deliver()
    [cached] = writes.owned_by("owner")
    writes.remember(await server.patch(PODS, "p", {"metadata": {"finalizers": ["b"]}}, "n"))
    writes.remember_deletion(cached)
    found = writes.get(KEY)
    assert found is not None
    assert found["metadata"]["finalizers"] == ["b"] != created["metadata"]["finalizers"]
