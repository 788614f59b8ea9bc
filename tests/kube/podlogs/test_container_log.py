"""Following a container's log through whatever happens to it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from typing import NamedTuple

import anyio
import pytest

from tests.kube.conftest import Background
from tests.kube.objects import pod
from trainer.kube.client import LogOptions
from trainer.kube.errors import ApiError, KubeError, NotFoundError, TransportError
from trainer.kube.podlogs import container_log
from trainer.kube.podlogs.container_log import ContainerLog, ContainerLogOptions, Interrupted, LogObserver
from trainer.kube.podlogs.instant import Instant
from trainer.kube.resource import PODS
from trainer_kube_testing import FakeClient, FakeLog, ManualClock, eventually, settle, statuses

START = 1767225600
"""Of the clock, which is at 2026-01-01T00:00:00Z."""


class Observed(LogObserver):
    """Counts the calls of an observer."""

    def __init__(self) -> None:
        self.count = 0
        self.skips = 0
        self.open = 0

    def lines(self, count: int) -> None:
        self.count += count

    def skipped(self) -> None:
        self.skips += 1

    def connected(self) -> None:
        self.open += 1

    def disconnected(self) -> None:
        self.open -= 1


class Reader:
    """A reader of one log and what it has received."""

    def __init__(self, client: FakeClient, clock: ManualClock, **options: object) -> None:
        self.client = client
        self.clock = clock
        self.observed = Observed()
        self.container_log = ContainerLog(
            client,
            *("ns", "p", "c"),
            clock=clock,
            options=ContainerLogOptions(**options),  # type: ignore[arg-type]
            observer=self.observed,
        )
        self.blocks: list[bytes] = []
        self.interruptions: list[Interrupted] = []
        self.has_ended = False
        self.is_done = False

    @property
    def texts(self) -> list[str]:
        """Lines without their timestamps."""
        lines = b"".join(self.blocks).split(b"\n")[:-1]
        return [line.partition(b" ")[2].decode(errors="replace") for line in lines]

    @property
    def asked(self) -> list[LogOptions]:
        return [request.body for request in self.client.requests_of("log")]

    @property
    def reasons(self) -> list[str]:
        return [interrupted.reason for interrupted in self.interruptions]

    async def read(self) -> None:
        async for block in self.container_log.read():
            self.blocks.append(block)

    async def follow(self) -> None:
        async for event in self.container_log.follow(lambda: self.has_ended):
            if isinstance(event, Interrupted):
                self.interruptions.append(event)
            else:
                self.blocks.append(event)
        self.is_done = True

    async def until(self, *texts: str) -> None:
        await eventually(lambda: self.texts == list(texts), clock=self.clock, within=300)


@pytest.fixture
def client(clock: ManualClock) -> FakeClient:
    return FakeClient(pod("p"), clock=clock)


@pytest.fixture
def log(client: FakeClient) -> FakeLog:
    return client.log("p", "ns", "c")


@pytest.fixture
def without_jitter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container_log, "RETRY", replace(container_log.RETRY, jitter=0))


@pytest.fixture
def reader(client: FakeClient, clock: ManualClock) -> Reader:
    return Reader(client, clock)


def at(seconds: float) -> Instant:
    """An instant after the start."""
    return Instant(START + int(seconds), round(seconds % 1 * 1_000_000_000))


async def test_follows_to_the_end(log: FakeLog, reader: Reader, background: Background) -> None:
    """Lines come as blocks with timestamps as they are written, and following ends with the container."""
    log.write(b"one\ntwo\n", at(0.25))
    background(reader.follow())
    await settle()
    assert reader.blocks == [b"2026-01-01T00:00:00.250000000Z one\n2026-01-01T00:00:00.250000000Z two\n"]
    log.write(b"thr")
    log.write(b"ee\nfour")
    await settle()
    assert reader.texts == ["one", "two", "three"]
    assert reader.observed.open == 1
    reader.has_ended = True
    log.end()
    await reader.until("one", "two", "three", "four")
    assert reader.is_done
    assert reader.observed.open == 0
    assert reader.observed.count == 4
    assert reader.reasons == []
    assert [(options.follow, options.since_time) for options in reader.asked] == [
        (True, None),
        (False, "2026-01-01T00:00:00Z"),
    ]


async def test_reads_once(log: FakeLog, reader: Reader) -> None:
    """Without following, what there is comes, the last line ended; a second call brings only what is new."""
    log.write(b"one\ntw", at(0.25))
    await reader.read()
    assert reader.texts == ["one", "tw"]
    assert reader.container_log.position == at(0.25)
    log.write(b"o\nthree\n", at(0.5))
    await reader.read()
    assert reader.texts == ["one", "tw", "three"]


async def test_reads_the_previous_run(log: FakeLog, client: FakeClient, clock: ManualClock) -> None:
    """The log of the run before the last restart can be read, and is missing before the first one."""
    reader = Reader(client, clock, previous=True)
    log.write(b"first run\n")
    with pytest.raises(ApiError, match="previous terminated container"):
        await reader.read()
    log.restart()
    log.write(b"second run\n")
    await reader.read()
    assert reader.texts == ["first run"]


class Mishap(NamedTuple):
    """What is done to the server, and what it is called."""

    strike: Callable[[FakeClient], object]
    reason: str


BROKEN = TransportError("connection reset")


@pytest.mark.parametrize(
    "mishap",
    [
        pytest.param(Mishap(lambda c: c.faults.drop_logs(), "ended"), id="clean end"),
        pytest.param(Mishap(lambda c: c.faults.drop_logs(BROKEN), "broken"), id="broken"),
        pytest.param(Mishap(lambda c: c.faults.drop_logs(torn=True), "broken"), id="torn"),
        pytest.param(Mishap(lambda c: c.faults.silence_logs(), "silent"), id="silent"),
        pytest.param(Mishap(lambda c: fail(c, statuses.too_many_requests(20)), "throttled"), id="429"),
        pytest.param(Mishap(lambda c: fail(c, statuses.expired()), "gone"), id="410"),
        pytest.param(Mishap(lambda c: fail(c, statuses.bad_request("is waiting to start")), "waiting"), id="400"),
        pytest.param(Mishap(lambda c: c.faults.partition(), "silent"), id="partition"),
    ],
)
async def test_mishaps(
    mishap: Mishap, log: FakeLog, client: FakeClient, clock: ManualClock, background: Background
) -> None:
    """After any mishap the log goes on where it was, with every line once; the observer gets the reason."""
    reader = Reader(client, clock, idle_timeout=60)
    background(reader.follow())
    log.write(b"one\ntwo\n", at(0.25))
    log.write(b"two\n", at(0.25))
    await reader.until("one", "two", "two")
    mishap.strike(client)
    log.write(b"two\nthree\n", at(0.25))
    await clock.advance(30)
    log.write(b"four\n", at(3))
    await clock.advance(60)
    client.faults.heal()
    await reader.until("one", "two", "two", "two", "three", "four")
    assert mishap.reason in reader.reasons
    assert set(reader.reasons) <= {mishap.reason, "broken", "silent"}
    assert {options.since_time for options in reader.asked} == {None, "2026-01-01T00:00:00Z"}
    assert reader.observed.count == 6
    reader.has_ended = True
    log.end()
    await eventually(lambda: reader.is_done, clock=clock, within=60)
    assert reader.observed.count == 6


def fail(client: FakeClient, error: KubeError) -> None:
    """Break the stream, and answer the next requests with an error."""
    client.faults.drop_logs(BROKEN)
    client.faults.fail(error, times=3, verb="log")


@pytest.mark.parametrize(
    "error", [statuses.failure(401, "Unauthorized", "no"), statuses.failure(403, "Forbidden", "no")]
)
async def test_refusals(error: ApiError, log: FakeLog, reader: Reader, background: Background) -> None:
    """A log that may not be read is asked for again after a longer pause, since rights change; the error is named."""
    log.write(b"one\n", at(0.25))
    reader.client.faults.fail(error, skip=1, verb="log")
    background(reader.follow())
    await reader.until("one")
    reader.client.faults.drop_logs(BROKEN)
    log.write(b"two\n", at(0.5))
    await reader.until("one", "two")
    assert [(reason, pause, problem) for reason, pause, problem in reader.interruptions if reason == "refused"] == [
        ("refused", 5, str(error))
    ]


async def test_pod_that_is_gone(log: FakeLog, reader: Reader, background: Background) -> None:
    """Following ends with the pod, once that is known to be gone; a server that is behind may only not know it yet."""
    log.write(b"one\n")
    background(reader.follow())
    await reader.until("one")
    reader.client.remove(PODS, "p", "ns")
    reader.client.faults.drop_logs(BROKEN)
    await eventually(lambda: reader.reasons[-1:] == ["absent"], clock=reader.clock, within=60)
    reader.has_ended = True
    await eventually(lambda: reader.is_done, clock=reader.clock, within=60)
    assert reader.texts == ["one"]
    with pytest.raises(NotFoundError):
        await reader.read()


async def test_container_that_never_started(reader: Reader) -> None:
    """A container that ended without having started has no log."""
    reader.has_ended = True
    reader.client.faults.fail(statuses.bad_request("container is waiting to start"), verb="log")
    await reader.follow()
    assert (reader.texts, reader.is_done) == ([], True)


@pytest.mark.parametrize("cut", [None, 0, 3, 8, 12, 100])
async def test_server_without_timestamps(cut: int | None, client: FakeClient, reader: Reader) -> None:
    """Lines without timestamps come as they are, and are counted where no timestamp tells which were read before."""
    log = client.log("p", "ns")
    log.write(b"one\n\ntwo\r\ntwo\r\n", stamped=False)
    log.end()
    if cut is not None:
        client.faults.cut_logs(cut, error=BROKEN)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reader.follow)
        await eventually(lambda: len(b"".join(reader.blocks)) == 15, clock=reader.clock, within=60)
        reader.has_ended = True
        await eventually(lambda: reader.is_done, clock=reader.clock, within=60)
    assert b"".join(reader.blocks) == b"one\n\ntwo\r\ntwo\r\n"
    assert reader.container_log.position is None


async def test_end_that_is_known_late(log: FakeLog, reader: Reader, background: Background) -> None:
    """As long as the end of the container is not known, its log is asked for again, less and less often."""
    log.write(b"one\n")
    log.end()
    background(reader.follow())
    await reader.clock.advance(300)
    assert 10 < len(reader.asked) < 40
    assert set(reader.reasons) == {"ended"}
    reader.has_ended = True
    await eventually(lambda: reader.is_done, clock=reader.clock, within=60)
    assert reader.texts == ["one"]


async def test_restarted_container(log: FakeLog, reader: Reader, background: Background) -> None:
    """The lines of the next run follow those of the one before, also within the same second and when they are equal."""
    background(reader.follow())
    for run in range(3):
        log.write(b"begin\nend\n", at(0.25 + run / 100))
        await reader.until(*["begin", "end"] * (run + 1))
        log.restart()
    reader.has_ended = True
    log.end()
    await eventually(lambda: reader.is_done, clock=reader.clock, within=60)
    assert reader.texts == ["begin", "end"] * 3


@pytest.mark.parametrize("cut", range(1, 90))
async def test_cut_anywhere(cut: int, log: FakeLog, reader: Reader) -> None:
    """Each line arrives whole and once, although streams are cut within timestamps, lines or characters."""
    log.write("é€\n".encode(), at(0.25))
    log.write(b"\n", at(0.250000001))
    log.write(b"\x00\xff", at(0.250000001))
    log.end()
    reader.client.faults.cut_logs(cut, error=BROKEN)
    with pytest.raises(TransportError) if cut < 104 else pytest.raises(AssertionError):
        await reader.read()
    await reader.read()
    assert reader.texts == ["é€", "", "\x00�"]


@pytest.mark.parametrize(
    ("text", "texts", "skipped"),
    [
        pytest.param(b"a" * 69 + b"\nb\n", ["a" * 69, "b"], 0, id="exactly"),
        pytest.param(b"b\n" + b"a" * 10_000 + b"\nb\n", ["b", "b"], 1, id="much longer"),
        pytest.param(b"10%\r20%\r30%\r\nb\n", ["10%\r20%\r30%\r", "b"], 0, id="progress bar"),
    ],
)
@pytest.mark.parametrize("cut", [None, 0, 60, 130, 170, 300])
async def test_long_lines(
    text: bytes, texts: list[str], skipped: int, cut: int | None, log: FakeLog, client: FakeClient, clock: ManualClock
) -> None:
    """A line over the limit, its timestamp included, is skipped to its end and counted once, also across streams."""
    reader = Reader(client, clock, line_limit=100)
    log.write(text, at(0.5))
    log.end()
    if cut is not None:
        client.faults.cut_logs(cut, error=BROKEN)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reader.follow)
        await reader.until(*texts)
        reader.has_ended = True
        await eventually(lambda: reader.is_done, clock=clock, within=60)
    assert reader.texts == texts
    assert reader.observed.skips == skipped
    assert reader.container_log.position == at(0.5)


async def test_states_of_a_line_that_goes_on(
    log: FakeLog, client: FakeClient, clock: ManualClock, background: Background
) -> None:
    """A progress bar is known by its states before its line ends, none of which comes again with another stream."""
    states: list[bytes] = []
    container_log = ContainerLog(client, *("ns", "p", "c"), clock=clock, on_state=states.append)
    joined = bytearray()

    async def follow() -> None:
        events = container_log.follow(lambda: False)
        async for event in events:
            if not isinstance(event, Interrupted):
                joined.extend(event)

    background(follow())
    log.write(b"begin\n\r 10%\r 20%", at(0))
    await settle()
    assert states == [f"{at(0)} ".replace("Z ", ".000000000Z ").encode() + b"\r 10%"]
    log.write(b"\r 30%\r")
    await settle()
    log.write(b" 40%\n\r 0%\r 5%")
    await settle()
    client.faults.drop_logs(BROKEN)
    await clock.advance(20)
    texts = [state.partition(b" ")[2] for state in states]
    assert texts[:3] == [b"\r 10%", b"\r 30%", b"\r 0%"]
    assert b"\r 10%" not in texts[1:]
    assert [line.partition(b" ")[2] for line in joined.split(b"\n")] == [
        b"begin",
        b"\r 10%\r 20%\r 30%\r 40%",
        b"",
    ]


async def test_since(log: FakeLog, client: FakeClient, clock: ManualClock, background: Background) -> None:
    """What is older than the second that was named is not asked for, until lines have come."""
    reader = Reader(client, clock, since=at(2.75))
    for second in range(5):
        log.write(b"%d\n" % second, at(second + 0.5))
    background(reader.follow())
    await reader.until("2", "3", "4")
    client.faults.drop_logs(BROKEN)
    log.write(b"5\n", at(5))
    await reader.until("2", "3", "4", "5")
    assert [options.since_time for options in reader.asked] == ["2026-01-01T00:00:02Z", "2026-01-01T00:00:04Z"]


async def test_options_reach_the_server(log: FakeLog, client: FakeClient, clock: ManualClock) -> None:
    """Container, pace and idle timeout are those that were asked for."""
    reader = Reader(client, clock, pace=0.25, idle_timeout=60)
    log.end()
    reader.has_ended = True
    await reader.follow()
    assert reader.asked == [LogOptions("c", timestamps=True, pace=0.25, idle_timeout=60)]


@pytest.mark.usefixtures("without_jitter")
async def test_pauses_grow_until_there_is_something_new(log: FakeLog, client: FakeClient, clock: ManualClock) -> None:
    """The pause doubles up to its maximum while nothing new comes, and begins anew with a line."""
    reader = Reader(client, clock)
    fault = client.faults.fail(TransportError("connection refused"), times=None, verb="log")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reader.follow)
        pauses = [await clock.advance_to_next() for _ in range(7)]
        assert pauses == [0.5, 1, 2, 4, 8, 15, 15]
        fault.end()
        log.write(b"one\n")
        client.faults.cut_logs(1000)
        await clock.advance_to_next()
        await settle()
        client.faults.drop_logs(BROKEN)
        assert await clock.advance_to_next() == 0.5
        tasks.cancel_scope.cancel()


@pytest.mark.usefixtures("without_jitter")
async def test_a_stream_that_lasted_is_no_failure(client: FakeClient, clock: ManualClock, log: FakeLog) -> None:
    """A proxy that closes connections which were silent for a minute does not make the pauses grow."""
    reader = Reader(client, clock, idle_timeout=60)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reader.follow)
        steps = [await clock.advance_to_next() for _ in range(6)]
        tasks.cancel_scope.cancel()
    assert steps == [60, 0.5] * 3
    assert reader.reasons == ["silent"] * 3


async def test_server_that_asks_for_a_pause(log: FakeLog, client: FakeClient, clock: ManualClock) -> None:
    """Retry-After is obeyed, up to a minute, and clients do not come back together."""
    readers = [Reader(client, clock) for _ in range(50)]
    client.faults.fail(statuses.too_many_requests(20), times=50, verb="log")
    client.faults.fail(statuses.unavailable(3600), times=50, verb="log")
    async with anyio.create_task_group() as tasks:
        for reader in readers:
            tasks.start_soon(reader.follow)
        await settle()
        first = clock.sleeping
        await clock.advance(21.5)
        second = clock.sleeping
        tasks.cancel_scope.cancel()
    assert len(set(first)) == len(set(second)) == 50
    assert 20 <= first[0] < first[-1] <= 21
    assert 59 <= second[0] < second[-1] <= 63


@pytest.mark.parametrize("moment", ["request", "stream", "pause"])
async def test_cancelled_at_any_moment(moment: str, log: FakeLog, reader: Reader) -> None:
    """A reader that is cancelled leaves nothing open and can go on later."""
    log.write(b"one\n", at(0.25))
    if moment == "request":
        reader.client.faults.hold(verb="log")
    elif moment == "pause":
        reader.client.faults.cut_logs(1000)
        log.end()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reader.follow)
        await settle()
        tasks.cancel_scope.cancel()
    reader.client.faults.clear()
    assert (reader.observed.open, reader.client.faults.drop_logs(), reader.clock.sleeping) == (0, 0, [])
    await reader.read()
    assert reader.texts == ["one"]


async def test_left_early(log: FakeLog, reader: Reader) -> None:
    """Who leaves before the end closes the stream with `aclosing`."""
    log.write(b"one\n")
    async with aclosing(reader.container_log.follow(lambda: False)) as events:
        assert await anext(events)
        assert reader.observed.open == 1
    assert (reader.observed.open, reader.client.faults.drop_logs()) == (0, 0)
