"""The list/watch state machine, step by step and without a socket."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.kube.conftest import Background
from tests.kube.objects import pod
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.cache.reflector import IDLE, WATCH_SECONDS, Listing, Reflector, State, Streaming, Watching
from trainer.kube.client import DEFAULT_WATCH, EventType, ListOptions, ObjectList, RawJson, WatchEvent, WatchOptions
from trainer.kube.errors import (
    ApiError,
    BadRequestError,
    ForbiddenError,
    GoneError,
    InternalError,
    InvalidError,
    KubeError,
    MethodNotAllowedError,
    NotFoundError,
    ServerTimeoutError,
    TooManyRequestsError,
    TransportError,
)
from trainer.kube.metrics import Metrics
from trainer.kube.metrics.caches import CacheMetrics
from trainer.kube.resource import PODS, Resource
from trainer.kube.selection import EVERYTHING, Selection
from trainer_kube_testing import FakeClient, ManualClock, StreamingLists, settle, statuses

METRICS = CacheMetrics(Metrics(), "pods", "")
TOO_OLD = GoneError(410, "too old resource version", reason="Expired")
TOO_LARGE = ServerTimeoutError(
    504,
    "Too large resource version: 9, current: 1",
    status={"details": {"causes": [{"reason": "ResourceVersionTooLarge"}]}},
)


def convert(raw: RawJson) -> CachedObject:
    return CachedObject.compact(raw, "v1", "Pod")


class RecordingSink:
    """Writes down its calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []

    async def replace(self, objects: list[CachedObject], resource_version: str) -> None:
        self.calls.append(("replace", " ".join(obj.key.name for obj in objects)))

    async def unserved(self) -> None:
        self.calls.append(("unserved", ""))

    def put(self, obj: CachedObject) -> None:
        self.calls.append(("put", obj.key.name))

    def remove(self, obj: CachedObject) -> None:
        self.calls.append(("remove", obj.key.name))

    def caught_up(self, resource_version: str) -> None:
        self.calls.append(("caught up", resource_version))


@pytest.fixture
def client(clock: ManualClock) -> FakeClient:
    return FakeClient(pod("a"), pod("b"), clock=clock)


@pytest.fixture
def sink() -> RecordingSink:
    return RecordingSink()


@pytest.fixture
def reflector(client: FakeClient, sink: RecordingSink, clock: ManualClock) -> Reflector:
    return Reflector(client, PODS, EVERYTHING, sink, clock=clock, convert=convert, metrics=METRICS)


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

    @property
    def is_running(self) -> bool:
        """Whether the step has not ended."""
        return self.state is None

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
    client.faults.fail(error)
    assert await reflector.step(Listing("7")) == Listing("")


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(ForbiddenError(403, "pods is forbidden"), id="forbidden"),
        pytest.param(TransportError("connection refused"), id="no-connection"),
    ],
)
async def test_failed_list_pauses_and_repeats(
    reflector: Reflector, client: FakeClient, clock: ManualClock, stepping: Stepping, error: KubeError
) -> None:
    """Whatever keeps a list from succeeding is remembered, logged and tried again in 0.8 to 1.6 s."""
    client.faults.fail(error)
    with capture_logs() as logs:
        await stepping.start(Listing("0"))
    assert reflector.last_error is error
    assert logs[0]["event"] == "could not list"
    assert logs[0]["resource"] == "pods"
    seconds = await stepping.finish()
    assert stepping.state == Listing("0")
    assert 0.8 <= seconds <= 1.6


async def test_what_is_wrong_is_said_once(
    reflector: Reflector, client: FakeClient, clock: ManualClock, background: Background
) -> None:
    """A failure that lasts is one warning with the remedy, and its end one line; a CRD is looked for each 10 s."""
    for _ in range(8):
        client.faults.fail(NotFoundError(404, "the server could not find the requested resource"))
    with capture_logs() as logs:
        background(reflector.run())
        await clock.advance(1.6 + 3.2 + 6.4 + 5 * 10)
    reported = [(entry["log_level"], entry.get("error")) for entry in logs if entry["log_level"] != "debug"]
    remedy = "pods is not served by the API server: install the Pod CRD"
    assert reported == [("warning", remedy), ("info", None)]


@pytest.mark.parametrize(
    "start", [pytest.param(Streaming(""), id="streaming"), pytest.param(Listing("0"), id="paging")]
)
async def test_optional_kind_may_be_missing(
    reflector: Reflector, sink: RecordingSink, client: FakeClient, stepping: Stepping, start: State
) -> None:
    """The sink and one line tell that there is nothing of it; it is asked for again each 24 to 36 s, forever."""
    reflector.optional = True
    client.withdraw(PODS)
    with capture_logs() as logs:
        for _ in range(10):
            await stepping.start(start)
            assert 24 <= await stepping.finish() <= 36
            assert stepping.state == Streaming("")
    assert sink.calls == [("unserved", "")]
    [entry] = logs
    assert (entry["event"], entry["log_level"], entry["resource"]) == ("waits for kind", "info", "pods")
    assert entry["remedy"] == "pods is not served by the API server: install the Pod CRD"
    assert reflector.last_error is None


async def test_optional_kind_comes_and_goes(
    reflector: Reflector, sink: RecordingSink, client: FakeClient, clock: ManualClock, background: Background
) -> None:
    """Each turn is one line; that a watch finds the kind missing is logged only when another request finds the same."""
    reflector.optional = True
    client.withdraw(PODS)
    with capture_logs() as logs:
        background(reflector.run())
        await settle()
        client.serve(PODS)
        client.add(pod("c"))
        await clock.advance(36)
        client.faults.drop_watches()
        await clock.advance(5)
        client.faults.fail(statuses.no_such_resource())
        client.faults.drop_watches()
        await clock.advance(5)
        client.withdraw(PODS)
        await clock.advance(5)
    replaced = ("replace", "c")
    calls = [call for call in sink.calls if call[0] != "caught up"]
    assert calls == [("unserved", ""), replaced, replaced, ("remove", "c"), ("unserved", "")]
    assert [(entry["event"], entry.get("objects")) for entry in logs] == [
        ("waits for kind", None),
        ("kind is served", 1),
        ("kind is no longer served, waits for it", None),
    ]


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(ForbiddenError(403, "pods is forbidden"), id="forbidden"),
    ],
)
async def test_optional_kind_that_cannot_be_read_is_not_missing(
    reflector: Reflector, sink: RecordingSink, client: FakeClient, stepping: Stepping, error: KubeError
) -> None:
    """Only a 404 says that there is nothing of it; all else is logged and retried as for any kind."""
    reflector.optional = True
    client.faults.fail(error)
    with capture_logs() as logs:
        await stepping.start(Streaming(""))
    assert await stepping.finish() <= 1.6
    assert reflector.last_error is error
    assert sink.calls == []
    assert [entry["log_level"] for entry in logs] == ["warning"]


async def test_pause_is_as_long_as_the_server_asks(client: FakeClient, clock: ManualClock, stepping: Stepping) -> None:
    """Retry-After is respected beyond what the client has already waited for."""
    client.faults.fail(TooManyRequestsError(429, "wait", status={"details": {"retryAfterSeconds": 20}}))
    await stepping.start(Watching("2"))
    assert await stepping.finish() == pytest.approx(20)


async def test_pauses_grow_to_a_ceiling(
    reflector: Reflector, client: FakeClient, clock: ManualClock, stepping: Stepping
) -> None:
    """Each failure in a row doubles the pause, up to 30 to 60 s."""
    pauses = []
    for _ in range(8):
        client.faults.fail(TransportError("connection refused"))
        await stepping.start(Listing("0"))
        pauses.append(await stepping.finish())
    for index, pause in enumerate(pauses):
        shortest = min(0.8 * 2**index, 30)
        assert shortest <= pause <= 2 * shortest


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
        client.faults.fail(TooManyRequestsError(429, "storage is (re)initializing"))
    await stepping.start(Watching("2"))
    if not at_start:
        client.add(pod("c"))
        await settle()
        client.faults.drop_watches(TransportError("connection reset"))
        await settle()
    assert reflector.last_error is not None
    seconds = await stepping.finish()
    assert stepping.state == Watching("2" if at_start else "3")
    assert seconds < 1.7


async def test_compacted_history_leads_to_a_fresh_list(
    reflector: Reflector, sink: RecordingSink, client: FakeClient, stepping: Stepping
) -> None:
    """410 is answered with a new list that is not older than what was seen, at once the first time."""
    client.add(pod("c"))
    client.compact()
    assert await reflector.step(Watching("2")) == Streaming("2")
    await stepping.start(Streaming("2"))
    assert sink.calls == [("replace", "a b c"), ("caught up", "3")]
    options: WatchOptions = client.requests[-1].body
    assert (options.resource_version, options.send_initial_events) == ("2", True)


async def test_410_after_a_broken_connection_is_answered_at_once(
    reflector: Reflector, client: FakeClient, stepping: Stepping
) -> None:
    """The pause that the broken connection has cost is not paid again."""
    client.faults.fail(TransportError("connection reset"))
    await stepping.start(Watching("2"))
    await stepping.finish()
    client.faults.fail(TOO_OLD, verb="watch")
    assert await reflector.step(Watching("2")) == Streaming("2")


async def test_repeated_410_backs_off(
    reflector: Reflector, client: FakeClient, clock: ManualClock, stepping: Stepping
) -> None:
    """A server that lists but refuses every watch with 410 is not hammered, although its lists succeed."""
    client.faults.fail(TOO_OLD, verb="watch")
    assert await reflector.step(Watching("2")) == Streaming("2")
    assert await reflector.step(Listing("")) == Watching("2")
    client.faults.fail(TOO_OLD, verb="watch")
    await stepping.start(Watching("2"))
    seconds = await stepping.finish()
    assert stepping.state == Streaming("2")
    assert seconds >= 1.6


async def test_two_minutes_without_failure_reset_the_pause(
    reflector: Reflector, client: FakeClient, clock: ManualClock, stepping: Stepping
) -> None:
    """A single success in between does not: a server that flaps is not hammered."""
    pauses = []
    for quiet in (0, 0, 0, 60, 121):
        await clock.advance(quiet)
        client.faults.fail(TransportError("refused"))
        await stepping.start(Watching("2"))
        pauses.append(await stepping.finish())
    assert pauses[3] >= 0.8 * 2**3
    assert pauses[4] <= 1.6


async def test_an_open_watch_clears_the_error(reflector: Reflector, client: FakeClient, stepping: Stepping) -> None:
    """What is wrong is forgotten as soon as the server answers again, even if there is nothing to tell."""
    client.faults.fail(TransportError("refused"))
    await stepping.start(Watching("2"))
    await stepping.finish()
    assert has_failed(reflector)
    await stepping.start(Watching("2"))
    assert reflector.last_error is None


async def test_initial_events_clear_the_error_when_they_have_ended(
    reflector: Reflector, client: FakeClient, stepping: Stepping
) -> None:
    """Until then there is nothing that one could rely on."""
    client.faults.fail(TransportError("refused"))
    await stepping.start(Streaming(""))
    await stepping.finish()
    client.faults.streaming_lists = StreamingLists.IGNORED
    await stepping.start(Streaming(""))
    assert stepping.is_running
    assert has_failed(reflector)


async def test_silent_connection_is_given_up(
    reflector: Reflector, client: FakeClient, clock: ManualClock, stepping: Stepping
) -> None:
    """A watch without event or bookmark for 90 s counts as dead and is opened anew, at once and from where it was."""
    await stepping.start(Watching("2"))
    await clock.advance(IDLE - 1)
    client.add(pod("c"))
    await clock.advance(IDLE - 1)
    assert stepping.is_running
    await clock.advance(1)
    assert stepping.state == Watching("3")
    assert clock.sleeping == []


async def test_streaming_list_goes_on_as_the_watch(
    reflector: Reflector, sink: RecordingSink, client: FakeClient, stepping: Stepping
) -> None:
    """The initial events become one replacement, and the same request brings what comes after."""
    await stepping.start(Streaming(""))
    client.add(pod("c"))
    await settle()
    assert sink.calls == [("replace", "a b"), ("caught up", "2"), ("put", "c")]
    [request] = client.requests
    assert request.body.send_initial_events
    client.faults.drop_watches()
    await settle()
    assert stepping.state == Watching("3")


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(InvalidError(422, "sendInitialEvents is forbidden for watch"), id="feature-off"),
        pytest.param(MethodNotAllowedError(405, "not like this"), id="method-not-allowed"),
    ],
)
async def test_server_without_streaming_lists_is_listed(
    reflector: Reflector, sink: RecordingSink, client: FakeClient, stepping: Stepping, error: ApiError
) -> None:
    """A server that refuses a streaming list is asked once, and listed in pages from then on."""
    client.faults.fail(error, verb="watch")
    assert await reflector.step(Streaming("")) == Listing("0")
    assert await reflector.step(Listing("0")) == Watching("2")
    assert await reflector.step(Streaming("2")) == Listing("2")
    assert [request.verb for request in client.requests] == ["watch", "list"]


class ScriptedClient:
    """Answers each watch with the next list of events; an exception in it breaks the watch."""

    def __init__(self, *scripts: list[WatchEvent | Exception]) -> None:
        self._scripts = list(scripts)

    @asynccontextmanager
    async def watch(self, *_: object) -> AsyncIterator[AsyncIterator[WatchEvent]]:
        yield self._events(self._scripts.pop(0))

    async def _events(self, script: list[WatchEvent | Exception]) -> AsyncIterator[WatchEvent]:
        for event in script:
            if isinstance(event, Exception):
                raise event
            yield event


def watch_event(kind: EventType, name: str, version: str, **metadata: Any) -> WatchEvent:
    return WatchEvent.of(kind, pod(name, resourceVersion=version, **metadata))


def bookmark(version: str, *, end: bool = False) -> WatchEvent:
    annotations = {"annotations": {"k8s.io/initial-events-end": "true"}} if end else {}
    return WatchEvent.of(EventType.BOOKMARK, {"kind": "Pod", "metadata": {"resourceVersion": version} | annotations})


ADDED, MODIFIED, DELETED, BOOKMARK = EventType.ADDED, EventType.MODIFIED, EventType.DELETED, EventType.BOOKMARK


@pytest.mark.parametrize(
    ("state", "script", "calls", "next_state"),
    [
        pytest.param(
            Streaming(""),
            [
                watch_event(ADDED, "b", "7"),
                watch_event(ADDED, "a", "3"),
                watch_event(MODIFIED, "a", "8"),
                watch_event(DELETED, "b", "9"),
                bookmark("9", end=True),
                bookmark("12"),
            ],
            [("replace", "a"), ("caught up", "9"), ("caught up", "12")],
            Watching("12"),
            id="initial-events-in-no-order",
        ),
        pytest.param(
            Watching("5"),
            [watch_event(ADDED, "c", "6"), watch_event(MODIFIED, "a", "7"), watch_event(DELETED, "b", "8")],
            [("put", "c"), ("put", "a"), ("remove", "b")],
            Watching("8"),
            id="changes-and-a-clean-end",
        ),
        pytest.param(
            Watching("5"),
            [watch_event(ADDED, "a", "6"), bookmark("9"), TransportError("reset")],
            [("put", "a"), ("caught up", "9")],
            Watching("9"),
            id="bookmark-moves-the-version",
        ),
        pytest.param(
            Watching("5"),
            [
                WatchEvent.of(ADDED, {"kind": "Table", "metadata": {"resourceVersion": "6"}}),
                WatchEvent.of(ADDED, {"kind": "Pod"}),
                WatchEvent.of(ADDED, pod("without-version")),
                WatchEvent(ADDED, b'{"metadata":{"name":"deep","resourceVersion":"6"},"spec":' + b"[" * 1_000_000),
                WatchEvent(BOOKMARK, b"null"),
                WatchEvent(BOOKMARK, b'{"metadata":[]}'),
                WatchEvent(BOOKMARK, b'{"metadata":{"resourceVersion":7}}'),
                WatchEvent(BOOKMARK, b'{"metadata":{}}'),
                watch_event(ADDED, "a", "7"),
            ],
            [("put", "a")],
            Watching("7"),
            id="nonsense-is-skipped",
        ),
        pytest.param(
            Streaming("4"),
            [watch_event(ADDED, "a", "3"), TransportError("reset")],
            [],
            Listing("4"),
            id="broken-before-the-end-of-the-initial-events",
        ),
        pytest.param(
            Streaming(""),
            [watch_event(ADDED, "a", "3"), TransportError("reset")],
            [],
            Listing("0"),
            id="broken-before-the-end-of-the-first-initial-events",
        ),
        pytest.param(
            Streaming("4"), [TransportError("reset")], [], Streaming("4"), id="broken-before-the-initial-events"
        ),
        pytest.param(
            Streaming("4"),
            [watch_event(ADDED, "a", "3"), bookmark("9"), bookmark("9", end=True)],
            [],
            Listing("0"),
            id="bookmark-before-the-end-of-the-initial-events",
        ),
        pytest.param(
            Streaming(""),
            [watch_event(ADDED, "a", "3"), bookmark("9", end=True), BadRequestError(400, "invalid version")],
            [("replace", "a"), ("caught up", "9")],
            Streaming(""),
            id="version-refused-after-the-initial-events",
        ),
        pytest.param(Watching("4"), [NotFoundError(404, "no pods")], [], Streaming(""), id="definition-deleted"),
        pytest.param(Watching("4"), [InvalidError(422, "illegal version")], [], Streaming(""), id="version-refused"),
        pytest.param(Watching("4"), [TOO_LARGE], [], Streaming(""), id="version-of-the-future"),
        pytest.param(Watching("4"), [ServerTimeoutError(504, "slow")], [], Watching("4"), id="timeout"),
        pytest.param(Watching("4"), [InternalError(500, "boom")], [], Watching("4"), id="internal-error"),
        pytest.param(
            Streaming("4"),
            [watch_event(ADDED, "a", "3")],
            [],
            Listing("4"),
            id="end-of-the-initial-events-never-marked",
        ),
        pytest.param(Streaming("4"), [TOO_OLD], [], Streaming(""), id="version-too-old"),
        pytest.param(Streaming("4"), [TOO_LARGE], [], Streaming(""), id="version-too-large"),
    ],
)
async def test_step(
    sink: RecordingSink,
    clock: ManualClock,
    background: Background,
    state: State,
    script: list[WatchEvent | Exception],
    calls: list[tuple[str, str]],
    next_state: State,
) -> None:
    """Each script of a server leads to these calls of the sink and to this state."""
    scripted = ScriptedClient(script)
    reflector = Reflector(scripted, PODS, EVERYTHING, sink, clock=clock, convert=convert, metrics=METRICS)  # type: ignore[arg-type]
    stepping = Stepping(background, reflector, clock)
    await stepping.start(state)
    await clock.advance(2)
    assert sink.calls == calls
    assert stepping.state == next_state


async def test_server_that_ignores_streaming_lists_is_listed(
    reflector: Reflector, client: FakeClient, clock: ManualClock, stepping: Stepping
) -> None:
    """A server so old that it never marks the end of initial events is given 90 s of silence, then listed for good."""

    class Old(FakeClient):
        """Takes no notice of `sendInitialEvents`."""

        @asynccontextmanager
        async def watch(
            self, resource: Resource, selection: Selection = EVERYTHING, options: WatchOptions = DEFAULT_WATCH
        ) -> AsyncIterator[AsyncIterator[WatchEvent]]:
            async with super().watch(resource, selection, replace(options, send_initial_events=False)) as events:
                yield events

    old = Old(pod("a"), clock=clock)
    reflector._client = old
    await stepping.start(Streaming(""))
    await clock.advance(IDLE)
    await stepping.finish()
    assert await reflector.step(Streaming("")) == Listing("0")


class Lists:
    """Answers lists in two pages if it has no watch cache and a limit is set."""

    def __init__(self, *, has_watch_cache: bool) -> None:
        self._has_watch_cache = has_watch_cache
        self.limits: list[int] = []

    async def list_page(self, resource: Resource, selection: Selection, options: ListOptions) -> ObjectList:
        self.limits.append(options.limit)
        is_last = self._has_watch_cache or not options.limit or bool(options.continue_token)
        return ObjectList([], "7", "" if is_last else "token")


@pytest.mark.parametrize(
    ("has_watch_cache", "limits"),
    [pytest.param(True, [500, 0], id="watch-cache"), pytest.param(False, [500, 500, 500, 500], id="no-watch-cache")],
)
async def test_relist_is_paged_where_the_server_has_no_watch_cache(
    clock: ManualClock, sink: RecordingSink, has_watch_cache: bool, limits: list[int]
) -> None:
    """A server that pages a list of any version is asked to page one of a certain version as well."""
    lists = Lists(has_watch_cache=has_watch_cache)
    reflector = Reflector(lists, PODS, EVERYTHING, sink, clock=clock, convert=convert, metrics=METRICS)  # type: ignore[arg-type]
    assert await reflector.step(Listing("0")) == Watching("7")
    assert await reflector.step(Listing("7")) == Watching("7")
    assert lists.limits == limits


async def test_watch_that_ends_at_once_backs_off(
    reflector: Reflector, client: FakeClient, clock: ManualClock, stepping: Stepping
) -> None:
    """A clean end within a second and without an event is a failure, so that no loop of reconnects begins."""
    await stepping.start(Watching("2"))
    client.faults.drop_watches()
    await settle()
    assert isinstance(reflector.last_error, TransportError)
    await stepping.finish()
    assert stepping.state == Watching("2")


async def test_quiet_watch_that_ends_in_time_is_a_success(
    reflector: Reflector, client: FakeClient, clock: ManualClock, stepping: Stepping
) -> None:
    """No event for a minute is normal."""
    await stepping.start(Watching("2"))
    await clock.advance(60)
    client.faults.drop_watches()
    await settle()
    assert stepping.state == Watching("2")
    assert reflector.last_error is None
