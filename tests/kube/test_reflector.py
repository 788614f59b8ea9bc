"""The list/watch state machine, step by step and without a socket."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from tests.kube.objects import pod
from trainer.kube.client import EVERYTHING, ListOptions, WatchOptions
from trainer.kube.errors import (
    ApiError,
    ForbiddenError,
    GoneError,
    KubeError,
    NotFoundError,
    ServerTimeoutError,
    TooManyRequestsError,
    TransportError,
)
from trainer.kube.informer import strip_managed_fields
from trainer.kube.objects import Object, name_of
from trainer.kube.reflector import WATCH_SECONDS, WATCH_SLACK, Listing, Reflector, State, Watching
from trainer.kube.resource import PODS
from trainer.kube.testing import FakeClient, ManualClock, settle

if TYPE_CHECKING:
    from tests.kube.conftest import Background

TOO_OLD = GoneError(410, "too old resource version", reason="Expired")
TOO_LARGE = ServerTimeoutError(
    504,
    "Too large resource version: 9, current: 1",
    status={"details": {"causes": [{"reason": "ResourceVersionTooLarge"}]}},
)


class RecordingSink:
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []

    def replace(self, objects: list[Object]) -> None:
        self.calls.append(("replace", " ".join(map(name_of, objects))))

    def put(self, obj: Object) -> None:
        self.calls.append(("put", name_of(obj)))

    def remove(self, obj: Object) -> None:
        self.calls.append(("remove", name_of(obj)))


@pytest.fixture
def client(clock: ManualClock) -> FakeClient:
    return FakeClient(pod("a"), pod("b"), clock=clock)


@pytest.fixture
def sink() -> RecordingSink:
    return RecordingSink()


@pytest.fixture
def reflector(client: FakeClient, sink: RecordingSink, clock: ManualClock) -> Reflector:
    return Reflector(client, PODS, EVERYTHING, sink, clock=clock, transform=strip_managed_fields)


class Stepping:
    """Runs one step in the background of a test."""

    def __init__(self, background: Background, reflector: Reflector, clock: ManualClock) -> None:
        self._background = background
        self._reflector = reflector
        self._clock = clock
        self.state: State | None = None

    async def start(self, state: State) -> None:
        """Begin the step and let it come to a halt."""
        self.state = None
        self._background(self._run(state))
        await settle()

    async def _run(self, state: State) -> None:
        self.state = await self._reflector.step(state)

    async def finish(self) -> float:
        """Let the pause at the end of the step pass and return its seconds."""
        [seconds] = self._clock.sleeping
        assert not await self._ends_within(seconds - 0.001)
        assert await self._ends_within(0.002)
        return seconds

    async def _ends_within(self, seconds: float) -> bool:
        await self._clock.advance(seconds)
        return self.state is not None


@pytest.fixture
def stepping(background: Background, reflector: Reflector, clock: ManualClock) -> Stepping:
    return Stepping(background, reflector, clock)


def has_failed(reflector: Reflector) -> bool:
    return isinstance(reflector.last_error, TransportError)


async def test_list_replaces_and_leads_to_a_watch(
    reflector: Reflector, sink: RecordingSink, client: FakeClient
) -> None:
    """A successful list is handed over whole; the watch continues from its resource version."""
    assert await reflector.step(Listing("0")) == Watching("2")
    assert sink.calls == [("replace", "a b")]
    assert client.requests[0].body == ListOptions(resource_version="0", limit=500)
    assert reflector.last_error is None


@pytest.mark.parametrize("error", [TOO_OLD, TOO_LARGE], ids=["gone", "too-large"])
async def test_unusable_version_lists_afresh_at_once(reflector: Reflector, client: FakeClient, error: ApiError) -> None:
    """A version that the server cannot serve is replaced by a quorum read without a pause."""
    client.fail_next(error)
    assert await reflector.step(Listing("7")) == Listing("")


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(NotFoundError(404, "the server could not find the requested resource"), id="not-served"),
        pytest.param(ForbiddenError(403, "pods is forbidden"), id="forbidden"),
        pytest.param(TransportError("connection refused"), id="no-connection"),
        pytest.param(ServerTimeoutError(504, "timeout"), id="timeout"),
    ],
)
async def test_failed_list_pauses_and_repeats(
    reflector: Reflector, client: FakeClient, clock: ManualClock, stepping: Stepping, error: KubeError
) -> None:
    """Whatever keeps a list from succeeding is remembered, logged and tried again in 0.8 to 1.6 s."""
    client.fail_next(error)
    with capture_logs() as logs:
        await stepping.start(Listing("0"))
    assert reflector.last_error is error
    assert logs[0]["event"] == "could not list"
    assert logs[0]["resource"] == "pods"
    seconds = await stepping.finish()
    assert stepping.state == Listing("0")
    assert 0.8 <= seconds <= 1.6


async def test_pause_is_as_long_as_the_server_asks(client: FakeClient, clock: ManualClock, stepping: Stepping) -> None:
    """Retry-After is respected beyond what the client has already waited for."""
    client.fail_next(TooManyRequestsError(429, "wait", status={"details": {"retryAfterSeconds": 20}}))
    await stepping.start(Watching("2"))
    assert await stepping.finish() == pytest.approx(20)


async def test_pauses_grow_to_a_ceiling(
    reflector: Reflector, client: FakeClient, clock: ManualClock, stepping: Stepping
) -> None:
    """Each failure in a row doubles the pause, up to 30 to 60 s."""
    pauses = []
    for _ in range(8):
        client.fail_next(TransportError("connection refused"))
        await stepping.start(Listing("0"))
        pauses.append(await stepping.finish())
    for index, pause in enumerate(pauses):
        shortest = min(0.8 * 2**index, 30)
        assert shortest <= pause <= 2 * shortest


async def test_watch_passes_changes_on(
    reflector: Reflector, sink: RecordingSink, client: FakeClient, stepping: Stepping
) -> None:
    """Changes reach the sink in order; a clean end continues from the last resource version without a pause."""
    await stepping.start(Watching("2"))
    client.add(pod("c"))
    await client.patch(PODS, "a", {"metadata": {"labels": {"x": "y"}}}, "ns")
    await client.delete(PODS, "b", "ns")
    await settle()
    assert sink.calls == [("put", "c"), ("put", "a"), ("remove", "b")]
    client.end_watches()
    await settle()
    assert stepping.state == Watching("5")


async def test_watch_asks_for_a_random_time(reflector: Reflector, client: FakeClient, stepping: Stepping) -> None:
    """The server is asked to end the watch after 300 to 600 s."""
    await stepping.start(Watching("2"))
    options: WatchOptions = client.requests[0].body
    assert options.resource_version == "2"
    assert WATCH_SECONDS[0] <= options.timeout_seconds <= WATCH_SECONDS[1]
    assert not options.send_initial_events


@pytest.mark.parametrize("at_start", [True, False], ids=["at-start", "in-the-middle"])
async def test_broken_watch_continues_from_the_last_version(
    reflector: Reflector, client: FakeClient, clock: ManualClock, stepping: Stepping, at_start: bool
) -> None:
    """A lost connection leads to a pause and a watch from where it broke, never to a new list."""
    if at_start:
        client.fail_next(TooManyRequestsError(429, "storage is (re)initializing"))
    await stepping.start(Watching("2"))
    if not at_start:
        client.add(pod("c"))
        await settle()
        client.end_watches(TransportError("connection reset"))
        await settle()
    assert reflector.last_error is not None
    seconds = await stepping.finish()
    assert stepping.state == Watching("2" if at_start else "3")
    assert seconds < 1.7


async def test_compacted_history_leads_to_a_fresh_list(
    reflector: Reflector, sink: RecordingSink, client: FakeClient, stepping: Stepping
) -> None:
    """410 is answered with a quorum list, at once the first time."""
    client.add(pod("c"))
    client.compact()
    assert await reflector.step(Watching("2")) == Listing("")
    assert await reflector.step(Listing("")) == Watching("3")
    assert sink.calls == [("replace", "a b c")]


async def test_repeated_410_backs_off(
    reflector: Reflector, client: FakeClient, clock: ManualClock, stepping: Stepping
) -> None:
    """A server that lists but refuses every watch with 410 is not hammered, although its lists succeed."""
    client.fail_next(TOO_OLD, verb="watch")
    assert await reflector.step(Watching("2")) == Listing("")
    assert await reflector.step(Listing("")) == Watching("2")
    client.fail_next(TOO_OLD, verb="watch")
    await stepping.start(Watching("2"))
    seconds = await stepping.finish()
    assert stepping.state == Listing("")
    assert seconds >= 1.6


async def test_success_of_the_watch_resets_the_pause(
    reflector: Reflector, client: FakeClient, clock: ManualClock, stepping: Stepping
) -> None:
    """After an event the next failure waits the shortest time again."""
    for _ in range(4):
        client.fail_next(TransportError("refused"))
        await stepping.start(Watching("2"))
        await stepping.finish()
    await stepping.start(Watching("2"))
    client.add(pod("c"))
    await settle()
    assert reflector.last_error is None
    client.end_watches(TransportError("reset"))
    await settle()
    seconds = await stepping.finish()
    assert seconds < 1.7


async def test_silent_connection_is_given_up(
    reflector: Reflector, client: FakeClient, clock: ManualClock, stepping: Stepping
) -> None:
    """A watch that the server should have ended but did not counts as broken and is opened again."""
    await stepping.start(Watching("2"))
    seconds = client.requests[0].body.timeout_seconds
    await clock.advance(seconds + WATCH_SLACK - 1)
    assert not has_failed(reflector)
    await clock.advance(1)
    assert has_failed(reflector)
    await stepping.finish()
    assert stepping.state == Watching("2")


async def test_watch_that_ends_at_once_backs_off(
    reflector: Reflector, client: FakeClient, clock: ManualClock, stepping: Stepping
) -> None:
    """A clean end within a second and without an event is a failure, so that no loop of reconnects begins."""
    await stepping.start(Watching("2"))
    client.end_watches()
    await settle()
    assert isinstance(reflector.last_error, TransportError)
    await stepping.finish()
    assert stepping.state == Watching("2")


async def test_quiet_watch_that_ends_in_time_is_a_success(
    reflector: Reflector, client: FakeClient, clock: ManualClock, stepping: Stepping
) -> None:
    """No event for minutes is normal."""
    await stepping.start(Watching("2"))
    await clock.advance(300)
    client.end_watches()
    await settle()
    assert stepping.state == Watching("2")
    assert reflector.last_error is None


async def test_run_never_ends_by_itself(
    reflector: Reflector, sink: RecordingSink, client: FakeClient, clock: ManualClock, background: Background
) -> None:
    """From the first list through failures the sink ends up with what the server has."""
    client.fail_next(TransportError("refused"))
    background(reflector.run())
    await clock.advance(2)
    assert sink.calls == [("replace", "a b")]
    client.end_watches(TransportError("reset"))
    client.add(pod("c"))
    await clock.advance(2)
    assert sink.calls[1:] == [("put", "c")]
