"""How events reach the API server."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from tests.kube.conftest import Background
from tests.kube.objects import job
from trainer.kube.errors import (
    ForbiddenError,
    InternalError,
    NamespaceTerminatingError,
    NotFoundError,
    ServiceUnavailableError,
    TransportError,
)
from trainer.kube.events.recorder import EventRecorder
from trainer.kube.events.sender import QUEUE_SIZE, EventSender
from trainer.kube.metrics import Metrics
from trainer.kube.objects import Object
from trainer.kube.resource import EVENTS, Resource
from trainer_kube_testing import FakeClient, ManualClock, eventually, settle

OUTAGE = TransportError("connection refused")
TERMINATING = NamespaceTerminatingError(403, "no")
RETRY = 12.5
"""Longest pause between two attempts, in seconds."""


class World:
    """A sender with a recorder on an API server in memory."""

    def __init__(self, clock: ManualClock) -> None:
        self.client = FakeClient(clock=clock)
        self.metrics = Metrics()
        self.sender = EventSender(self.client, clock=clock, metrics=self.metrics)
        self._recorder = EventRecorder(self.sender, "trainer")

    def record(self, message: str = "m", name: str = "a", namespace: str = "ns") -> None:
        self._recorder.record(job(name, namespace, uid=name), type="Warning", reason="Failed", message=message)

    def fail(self, error: Exception, times: int) -> None:
        for _ in range(times):
            self.client.faults.fail(error)

    @property
    def events(self) -> list[tuple[str, int]]:
        """Message and count of the stored events, oldest first."""
        events = sorted(self.client.objects(EVENTS), key=lambda event: int(event["metadata"]["resourceVersion"]))
        return sorted((event["message"], event["count"]) for event in events)

    def sample(self, name: str, **labels: str) -> float:
        value = self.metrics.registry.get_sample_value(f"trainer_kube_events_{name}", labels)
        assert value is not None
        return value


@pytest.fixture
def world(clock: ManualClock) -> World:
    return World(clock)


async def test_repeats_raise_the_count(world: World, clock: ManualClock, background: Background) -> None:
    """The same event again changes count and last time of the first one, by a patch."""
    background(world.sender.run())
    world.record()
    await clock.advance(60)
    world.record()
    await settle()
    [event] = world.client.objects(EVENTS)
    assert event["count"] == 2
    assert event["firstTimestamp"] == "2026-01-01T00:00:00Z"
    assert event["lastTimestamp"] == "2026-01-01T00:01:00Z"
    assert [request.verb for request in world.client.requests] == ["create", "patch"]


async def test_repeats_that_wait_are_written_at_once(world: World, background: Background) -> None:
    """However often an event repeats while it waits, it is one request; events keep their order."""
    for _ in range(100):
        world.record("m")
        world.record("n")
    background(world.sender.run())
    await settle()
    assert world.events == [("m", 100), ("n", 100)]
    assert [request.body["message"] for request in world.client.requests] == ["m", "n"]


async def test_combined_events_show_the_latest_message(world: World, background: Background) -> None:
    """Similar events become one whose message changes along with its count."""
    background(world.sender.run())
    for number in range(12):
        world.record(f"m{number}")
        await settle()
    assert len(world.events) == 10
    assert ("(combined from similar events): m11", 3) in world.events


async def test_bursts_are_limited(world: World, clock: ManualClock, background: Background) -> None:
    """25 requests about one object, then one in 300 s, which makes up the count; all others are counted as dropped."""
    background(world.sender.run())
    for _ in range(40):
        world.record()
        await settle()
    assert world.events == [("m", 25)]
    assert world.sample("dropped_total", reason="limited") == 15
    await clock.advance(300)
    world.record()
    await settle()
    assert world.events == [("m", 41)]


async def test_expired_event_is_written_anew(world: World, background: Background) -> None:
    """The API server deletes events after an hour; the next repeat creates it again with all that was counted."""
    background(world.sender.run())
    world.record()
    await settle()
    [event] = world.client.objects(EVENTS)
    await world.client.delete(EVENTS, event["metadata"]["name"], "ns")
    world.record()
    await settle()
    assert world.events == [("m", 2)]


@pytest.mark.parametrize(
    "error", [OUTAGE, ServiceUnavailableError(503, "starting")], ids=["unreachable", "unavailable"]
)
async def test_outage_is_waited_out(world: World, clock: ManualClock, background: Background, error: Exception) -> None:
    """An event is tried twelve times, ten seconds apart, with its latest count."""
    background(world.sender.run())
    world.fail(error, 11)
    world.record()
    await settle()
    world.record()
    assert 10 <= clock.sleeping[0] <= RETRY
    await clock.advance(11 * RETRY)
    assert world.events == [("m", 2)]
    assert len(world.client.requests) == 12


async def test_outage_that_lasts_costs_the_event(world: World, clock: ManualClock, background: Background) -> None:
    """After twelve attempts the event is dropped with a warning, and the next one has its turn."""
    background(world.sender.run())
    world.fail(OUTAGE, 12)
    world.record("lost")
    world.record("next")
    with capture_logs() as logs:
        await clock.advance(12 * RETRY)
    warnings = [entry for entry in logs if entry["log_level"] == "warning"]
    assert warnings == [
        {
            "event": "could not write event",
            "log_level": "warning",
            "error": "connection refused",
            "reason": "Failed",
            "kind": "Job",
            "namespace": "ns",
            "name": "a",
        }
    ]
    assert world.events == [("next", 1)]
    assert world.sample("dropped_total", reason="unreachable") == 1


async def test_answer_that_got_lost_makes_no_second_event(
    clock: ManualClock, background: Background, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An attempt that was carried out although its answer got lost is found by its name, and counted up."""
    world = World(clock)
    create = world.client.create

    async def create_and_lose_answer(resource: Resource, obj: Object) -> Object:
        await create(resource, obj)
        raise OUTAGE

    monkeypatch.setattr(world.client, "create", create_and_lose_answer)
    background(world.sender.run())
    world.record()
    await settle()
    monkeypatch.undo()
    world.record()
    await clock.advance(RETRY)
    assert world.events == [("m", 2)]
    assert [request.verb for request in world.client.requests] == ["create", "create", "patch"]


@pytest.mark.parametrize(
    ("error", "level"),
    [
        pytest.param(ForbiddenError(403, "events is forbidden"), "warning", id="no-permission"),
        pytest.param(InternalError(500, "webhook failed"), "warning", id="server-failed"),
        pytest.param(TERMINATING, "debug", id="namespace-being-deleted"),
        pytest.param(NotFoundError(404, "no such namespace"), "debug", id="namespace-gone"),
        pytest.param(ValueError("not a KubeError"), "error", id="bug"),
    ],
)
async def test_refusal_costs_only_the_event(world: World, background: Background, error: Exception, level: str) -> None:
    """What the server refuses is logged as serious as it is and not tried again; the next event is written."""
    background(world.sender.run())
    world.fail(error, 1)
    world.record("refused")
    world.record("next")
    with capture_logs() as logs:
        await settle()
    assert [entry["log_level"] for entry in logs] == [level]
    assert world.events == [("next", 1)]
    assert world.sample("dropped_total", reason="refused") == 1


async def test_full_queue_drops_and_says_so(world: World, background: Background) -> None:
    """Recording never waits: what does not fit is dropped, with a log event at the begin and a sum at the end."""
    with capture_logs() as logs:
        for number in range(QUEUE_SIZE + 3):
            world.record(name=f"a{number}")
        assert world.sample("pending") == QUEUE_SIZE
        background(world.sender.run())
        await eventually(lambda: not world.sample("pending"))
        await settle()
    assert [(entry["event"], entry.get("dropped")) for entry in logs] == [
        ("dropping events, too many wait to be written", None),
        ("dropped events, too many waited to be written", 3),
    ]
    assert len(world.events) == QUEUE_SIZE
    assert world.sample("dropped_total", reason="queue_full") == 3
    assert world.sample("pending") == 0
    world.record(name="later")
    await settle()
    assert len(world.events) == QUEUE_SIZE + 1


async def test_a_flood_costs_no_other_namespace_an_event(world: World) -> None:
    """Whether it reports before, during or after the flood, and it waits for one event of the flood at a time."""
    world.record(name="before", namespace="quiet")
    for number in range(3000):
        if number == 1500:
            world.record(name="during", namespace="quiet")
        world.record(name=f"a{number}", namespace="flood")
    world.record(name="after", namespace="quiet")
    world.sender.stop()
    await world.sender.run()
    written = [request.body["involvedObject"]["name"] for request in world.client.requests]
    assert len(written) == QUEUE_SIZE
    assert [written.index(name) for name in ("before", "during", "after")] == [0, 2, 4]
    assert world.sample("dropped_total", reason="queue_full") == 3003 - QUEUE_SIZE


async def test_stop_does_not_wait_for_a_dead_server(world: World, clock: ManualClock, background: Background) -> None:
    """During an outage the sender gives up at once and says how much is lost."""
    task = background(world.sender.run())
    world.fail(OUTAGE, 2)
    for name in "abc":
        world.record(name=name)
    await settle()
    with capture_logs() as logs:
        world.sender.stop()
        await task
    assert clock.sleeping == []
    assert [(entry["event"], entry.get("dropped")) for entry in logs] == [
        ("could not write event", None),
        ("stopped before all events were written", 2),
    ]
    assert world.sample("dropped_total", reason="stopped") == 2


async def test_cancellation_is_clean(world: World, background: Background) -> None:
    """A cancelled sender ends at once; events recorded after it are dropped without a word."""
    task = background(world.sender.run())
    await settle()
    task.cancel()
    await settle()
    assert task.cancelled()
    world.record()
    assert world.client.requests == []
    assert world.sample("dropped_total", reason="stopped") == 1


async def test_series_are_there_from_the_start(world: World) -> None:
    """So that `rate()` sees the first increase."""
    assert world.sample("written_total", operation="create") == world.sample("written_total", operation="patch") == 0
    assert world.sample("dropped_total", reason="queue_full") == 0
