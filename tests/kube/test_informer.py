"""Informer: local copy and handlers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from tests.kube.objects import pod
from trainer.kube.client import Selection
from trainer.kube.errors import TransportError
from trainer.kube.informer import Informer
from trainer.kube.objects import Object, ObjectKey, labels_of, name_of
from trainer.kube.resource import PODS
from trainer.kube.testing import FakeClient, ManualClock, settle

if TYPE_CHECKING:
    from tests.kube.conftest import Background


class RecordingHandler:
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def on_add(self, obj: Object, *, initial: bool) -> None:
        self.calls.append(f"{'initial ' if initial else ''}add {name_of(obj)}")

    def on_update(self, old: Object, new: Object) -> None:
        self.calls.append(f"update {name_of(new)} {labels_of(old)} {labels_of(new)}")

    def on_delete(self, obj: Object) -> None:
        self.calls.append(f"delete {name_of(obj)}")

    def take(self) -> list[str]:
        calls, self.calls = self.calls, []
        return calls


class FailingHandler(RecordingHandler):
    """Raises on every add."""

    def on_add(self, obj: Object, *, initial: bool) -> None:
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
    assert sorted(handler.take()) == ["add d", "delete b", "update a {'app': 'x'} {'app': 'y'}"]


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
    assert handler.take() == ["delete b", "add b"]


async def test_late_handler_is_told_what_is_known(informer: Informer) -> None:
    """A handler added after the sync gets initial adds at once."""
    late = RecordingHandler()
    informer.add_handler(late)
    assert sorted(late.calls) == ["initial add a", "initial add b", "initial add c"]


async def test_failing_handler_harms_nobody(informer: Informer, handler: RecordingHandler, client: FakeClient) -> None:
    """An exception in one handler is logged; others and later changes are delivered."""
    failing = FailingHandler()
    with capture_logs() as logs:
        informer.add_handler(failing)
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
    informer.add_index("app", lambda obj: labels_of(obj).values())
    background(informer.run())
    await informer.wait_for_sync()
    assert [name_of(obj) for obj in informer.lister.by_index("app", "x")] == ["a"]
    assert informer.lister.get(ObjectKey("ns", "a")) is informer.lister.by_index("app", "x")[0]
