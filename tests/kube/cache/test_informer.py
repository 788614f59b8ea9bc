"""Informer: local copy and handlers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from tests.kube.objects import pod
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.cache.informer import Informer
from trainer.kube.errors import ForbiddenError, KubeError, NotFoundError, TransportError
from trainer.kube.objects import Object, ObjectKey, name_of
from trainer.kube.resource import PODS
from trainer.kube.selection import Selection
from trainer.kube.testing import FakeClient, ManualClock, settle

if TYPE_CHECKING:
    from tests.kube.conftest import Background


class RecordingHandler:
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def on_add(self, obj: CachedObject, *, initial: bool) -> None:
        self.calls.append(f"{'initial ' if initial else ''}add {obj.key.name}")

    def on_update(self, old: CachedObject, new: CachedObject) -> None:
        self.calls.append(f"update {new.key.name} {old.labels} {new.labels}" if old is not new else f"resync {new.key}")

    def on_delete(self, obj: CachedObject, *, stale: bool) -> None:
        self.calls.append(f"{'stale ' if stale else ''}delete {obj.key.name}")

    def take(self) -> list[str]:
        calls, self.calls = self.calls, []
        return calls


class FailingHandler(RecordingHandler):
    """Raises on every add."""

    def on_add(self, obj: CachedObject, *, initial: bool) -> None:
        super().on_add(obj, initial=initial)
        raise RuntimeError("broken handler")


@pytest.fixture
def client(clock: ManualClock) -> FakeClient:
    return FakeClient(pod("a", labels={"app": "x"}), pod("b"), pod("c", "other"), clock=clock)


@pytest.fixture
def handler() -> RecordingHandler:
    return RecordingHandler()


@pytest.fixture
async def informer(
    client: FakeClient, clock: ManualClock, handler: RecordingHandler, background: Background
) -> Informer:
    """A running informer that has synced."""
    informer = Informer(client, PODS, clock=clock)
    informer.add_handler(handler)
    assert not informer.has_synced
    background(informer.run())
    await informer.wait_for_sync()
    return informer


async def test_first_list_is_delivered_as_initial_adds(informer: Informer, handler: RecordingHandler) -> None:
    """When the informer has synced, store and handlers know all objects."""
    assert informer.has_synced
    assert handler.take() == ["initial add a", "initial add b", "initial add c"]
    assert len(informer.lister.list()) == 3


async def test_changes_are_delivered(informer: Informer, handler: RecordingHandler, client: FakeClient) -> None:
    """Adds, updates and deletes reach the handler after the store."""
    handler.take()
    await client.create(PODS, pod("d"))
    await client.patch(PODS, "a", {"metadata": {"labels": {"app": "y"}}}, "ns")
    await client.delete(PODS, "b", "ns")
    await settle()
    assert handler.take() == ["add d", "update a {'app': 'x'} {'app': 'y'}", "delete b"]
    assert sorted(name_of(obj) for obj in informer.lister.list()) == ["a", "c", "d"]


async def test_gap_in_the_watch_is_made_good(
    informer: Informer, handler: RecordingHandler, client: FakeClient, clock: ManualClock
) -> None:
    """A relist yields the deletes, adds and updates that were missed, and nothing for what is as it was."""
    handler.take()
    client.end_watches(TransportError("connection lost"))
    await client.delete(PODS, "b", "ns")
    await client.create(PODS, pod("d"))
    await client.patch(PODS, "a", {"metadata": {"labels": {"app": "y"}}}, "ns")
    client.compact()
    await clock.advance(60)
    assert sorted(handler.take()) == ["add d", "stale delete b", "update a {'app': 'x'} {'app': 'y'}"]


async def test_recreated_object_is_a_delete_and_an_add(
    informer: Informer, handler: RecordingHandler, client: FakeClient, clock: ManualClock
) -> None:
    """Another object under a known name is not taken for an update."""
    handler.take()
    client.end_watches(TransportError("connection lost"))
    await client.delete(PODS, "b", "ns")
    await client.create(PODS, pod("b"))
    client.compact()
    await clock.advance(60)
    assert handler.take() == ["stale delete b", "add b"]


async def test_late_handler_is_told_what_is_known(
    informer: Informer, handler: RecordingHandler, client: FakeClient
) -> None:
    """A handler added after the sync gets all objects as initial adds, then changes; others notice nothing."""
    handler.take()
    late = RecordingHandler()
    registration = informer.add_handler(late)
    assert not registration.has_synced
    await registration.wait_for_sync()
    client.add(pod("d"))
    await settle()
    assert sorted(late.calls[:3]) == ["initial add a", "initial add b", "initial add c"]
    assert late.calls[3:] == ["add d"]
    assert handler.take() == ["add d"]


async def test_changes_while_a_late_handler_is_told_come_after(informer: Informer) -> None:
    """A late handler never sees a change before the add of its object."""

    class Changing(RecordingHandler):
        def on_add(self, obj: CachedObject, *, initial: bool) -> None:
            super().on_add(obj, initial=initial)
            if obj.key.name == "a":
                informer.remove(CachedObject.of(pod("c", "other", resourceVersion="9")))

    late = Changing()
    await informer.add_handler(late).wait_for_sync()
    assert late.calls == ["initial add a", "initial add b", "initial add c", "delete c"]


async def test_removed_handler_is_told_nothing_more(informer: Informer, client: FakeClient) -> None:
    """A handler that is gone costs nothing."""
    leaving = RecordingHandler()
    registration = informer.add_handler(leaving)
    await registration.wait_for_sync()
    informer.remove_handler(registration)
    leaving.take()
    client.add(pod("d"))
    await settle()
    assert leaving.take() == []


async def test_resync_tells_of_every_object_again(
    informer: Informer, handler: RecordingHandler, client: FakeClient, clock: ManualClock
) -> None:
    """About every ten hours handlers see each object as an update to itself, without a request."""
    handler.take()
    before = len(client.requests)
    await clock.advance(11 * 3600)
    assert sorted(handler.take())[:3] == ["resync ns/a", "resync ns/b", "resync other/c"]
    assert {request.verb for request in client.requests[before:]} <= {"watch"}


async def test_repeated_and_overtaken_states_are_ignored(informer: Informer, handler: RecordingHandler) -> None:
    """A watch that is opened anew at an earlier version may repeat itself; the copy never goes back."""
    handler.take()
    informer.put(CachedObject.of(pod("a", resourceVersion="9")))
    informer.put(CachedObject.of(pod("a", resourceVersion="9")))
    informer.put(CachedObject.of(pod("a", resourceVersion="8", labels={"old": "state"})))
    informer.remove(CachedObject.of(pod("a", resourceVersion="7")))
    assert len(handler.take()) == 2
    cached = informer.lister.peek(ObjectKey("ns", "a"))
    assert cached is not None
    assert cached.resource_version == "9"


async def test_transform_sees_objects_before_they_are_stored(
    client: FakeClient, clock: ManualClock, background: Background
) -> None:
    """What a transform drops is in no list, no watch event and no answer to a write of ours."""

    def drop_labels(obj: Object) -> Object:
        obj["metadata"].pop("labels", None)
        return obj

    informer = Informer(client, PODS, clock=clock, transform=drop_labels)
    background(informer.run())
    await informer.wait_for_sync()
    client.add(pod("watched", labels={"x": "y"}))
    await settle()
    informer.wrote(pod("written", labels={"x": "y"}, resourceVersion="99", uid="u"))
    assert len(informer.lister.list()) == 5
    assert not any("labels" in obj["metadata"] for obj in informer.lister.list())


async def test_metadata_only_copy(client: FakeClient, clock: ManualClock, background: Background) -> None:
    """Only metadata is asked for and kept, under the kind of the resource; the same of our own writes."""
    client.add(pod("d") | {"spec": {"nodeName": "n"}})
    informer = Informer(client, PODS, Selection(metadata_only=True), clock=clock)
    background(informer.run())
    await informer.wait_for_sync()
    obj = informer.lister.get(ObjectKey("ns", "d"))
    assert obj is not None
    assert set(obj) == {"apiVersion", "kind", "metadata"}
    assert (obj["apiVersion"], obj["kind"]) == ("v1", "Pod")
    informer.wrote(pod("e", resourceVersion="99", uid="u") | {"spec": {"nodeName": "n"}})
    written = informer.lister.get(ObjectKey("ns", "e"))
    assert written is not None
    assert "spec" not in written


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        pytest.param(
            NotFoundError(404, "the server could not find the requested resource"),
            "pods is not served by the API server: install the Pod CRD",
            id="not-served",
        ),
        pytest.param(
            ForbiddenError(403, "pods is forbidden: User cannot list"),
            "pods: pods is forbidden: User cannot list: grant list and watch on pods in a Role or ClusterRole",
            id="forbidden",
        ),
    ],
)
async def test_problem_says_why_there_is_no_copy(
    client: FakeClient, clock: ManualClock, background: Background, error: KubeError, problem: str
) -> None:
    """Until the first list has come, and while the server is silent, the informer says what is wrong; then it heals."""
    client.fail_next(error)
    informer = Informer(client, PODS, clock=clock)
    background(informer.run())
    await settle()
    assert informer.problem == problem
    await clock.advance(2)
    assert informer.problem is None


async def test_dead_server_is_a_problem_after_a_while(
    informer: Informer, client: FakeClient, clock: ManualClock
) -> None:
    """A copy stays usable through a short outage and is reported as out of date after a longer one."""
    client.end_watches(TransportError("connection lost"))
    for _ in range(40):
        client.fail_next(TransportError("connection refused"))
    await clock.advance(60)
    assert informer.problem is None
    await clock.advance(200)
    assert informer.problem == "pods could not be listed or watched: connection refused"


async def test_failing_handler_harms_nobody(informer: Informer, handler: RecordingHandler, client: FakeClient) -> None:
    """An exception in one handler is logged; others and later changes are delivered."""
    failing = FailingHandler()
    with capture_logs() as logs:
        await informer.add_handler(failing).wait_for_sync()
        handler.take()
        await client.create(PODS, pod("d"))
        await client.delete(PODS, "d", "ns")
        await settle()
    assert handler.take() == ["add d", "delete d"]
    assert failing.calls[-2:] == ["add d", "delete d"]
    assert {entry["event"] for entry in logs} == {"handler failed"}
    assert logs[0]["handler"] == "FailingHandler"


async def test_managed_fields_are_not_kept(client: FakeClient, clock: ManualClock, background: Background) -> None:
    """The largest and least useful part of objects is dropped, in lists and in watches."""
    client.add(pod("listed", managedFields=[{"manager": "m"}]))
    informer = Informer(client, PODS, clock=clock)
    background(informer.run())
    await informer.wait_for_sync()
    client.add(pod("watched", managedFields=[{"manager": "m"}]))
    await settle()
    objects = informer.lister.list()
    assert len(objects) == 5
    assert not any("managedFields" in obj["metadata"] for obj in objects)


async def test_selection_limits_the_copy(client: FakeClient, clock: ManualClock, background: Background) -> None:
    """Only selected objects are kept; one that leaves the selection is gone."""
    informer = Informer(client, PODS, Selection("ns", label_selector="app=x"), clock=clock)
    background(informer.run())
    await informer.wait_for_sync()
    assert [name_of(obj) for obj in informer.lister.list()] == ["a"]
    await client.patch(PODS, "b", {"metadata": {"labels": {"app": "x"}}}, "ns")
    await client.patch(PODS, "a", {"metadata": {"labels": {"app": "y"}}}, "ns")
    await settle()
    assert [name_of(obj) for obj in informer.lister.list()] == ["b"]


async def test_index_is_added_before_the_start(informer: Informer) -> None:
    """A late index is refused: others may already rely on what exists."""
    with pytest.raises(RuntimeError, match="index 'node' must be added before the informer of pods starts"):
        informer.add_index("node", lambda _: [])


async def test_informer_runs_once(informer: Informer) -> None:
    """A second run would write to the same store."""
    with pytest.raises(RuntimeError, match="started before"):
        await informer.run()


async def test_index_finds_objects(client: FakeClient, clock: ManualClock, background: Background) -> None:
    """`by_index` finds objects by the values of the index function."""
    informer = Informer(client, PODS, clock=clock)
    informer.add_index("app", lambda obj: obj.labels.values())
    background(informer.run())
    await informer.wait_for_sync()
    assert [name_of(obj) for obj in informer.lister.by_index("app", "x")] == ["a"]
    assert informer.lister.by_index("app", "y") == []


async def test_what_a_reader_changes_reaches_nobody(informer: Informer) -> None:
    """Each read is a copy of its own."""
    first = informer.lister.get(ObjectKey("ns", "a"))
    assert first is not None
    first["metadata"]["labels"]["app"] = "changed"
    second = informer.lister.get(ObjectKey("ns", "a"))
    assert second is not None
    assert second["metadata"]["labels"]["app"] == "x"
