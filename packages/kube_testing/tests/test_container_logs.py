"""Logs of containers that tests write."""

from __future__ import annotations

import random

import pytest

from tests.kube.conftest import Background
from tests.kube.objects import pod
from trainer.kube.client import LogOptions
from trainer.kube.errors import BadRequestError, TransportError
from trainer.kube.podlogs.instant import Instant
from trainer_kube_testing import FakeClient, FakeLog, ManualClock, settle

T0 = "2026-01-01T00:00:00"
BROKEN = TransportError("connection reset")


@pytest.fixture
def client(clock: ManualClock) -> FakeClient:
    return FakeClient(pod("p"), clock=clock)


@pytest.fixture
def log(client: FakeClient) -> FakeLog:
    return client.log("p", "ns", "c")


class Stream:
    """What one stream has sent, and how it ended."""

    def __init__(self) -> None:
        self.chunks: list[bytes] = []
        self.end: str | None = None

    @property
    def text(self) -> bytes:
        return b"".join(self.chunks)

    async def read(self, client: FakeClient, options: LogOptions) -> None:
        try:
            async with client.logs("p", "ns", options) as chunks:
                async for chunk in chunks:
                    self.chunks.append(chunk)
        except TransportError as error:
            self.end = str(error)
        else:
            self.end = "clean"


PLAIN = LogOptions("c")
FOLLOW = LogOptions("c", follow=True)


async def read(client: FakeClient, options: LogOptions = PLAIN) -> bytes:
    stream = Stream()
    await stream.read(client, options)
    return stream.text


async def test_follows(client: FakeClient, log: FakeLog, background: Background) -> None:
    """A stream tells each write as it comes and ends with the container; others do not wait."""
    log.write(b"one\ntw")
    stream = Stream()
    background(stream.read(client, FOLLOW))
    await settle()
    log.write(b"o\n")
    await settle()
    assert (stream.chunks, stream.end) == ([b"one\ntw", b"o\n"], None)
    assert await read(client) == b"one\ntwo\n"
    log.end()
    await settle()
    assert stream.end == "clean"
    with pytest.raises(ValueError, match="has ended"):
        log.write(b"more")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        pytest.param(
            LogOptions("c", timestamps=True, tail_lines=2),
            f"{T0}.500000000Z two\n{T0[:-1]}2.000000007Z three",
            id="tail",
        ),
        pytest.param(LogOptions("c", since_time=f"{T0}Z"), "two\ntwo\nthree", id="since"),
        pytest.param(LogOptions("c", previous=True), "before\n", id="previous"),
        pytest.param(LogOptions("other"), "", id="container without a log"),
    ],
)
async def test_options(client: FakeClient, log: FakeLog, options: LogOptions, text: str) -> None:
    """Timestamps, the time and the number of lines, and the run of the container are as asked for."""
    log.write(b"before\n")
    log.restart()
    log.write(b"one\n", Instant(1767225599, 900_000_000))
    log.write(b"two\ntwo\n", Instant(1767225600, 500_000_000))
    log.write(b"three", Instant(1767225602, 7))
    assert await read(client, options) == text.encode()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param(LogOptions("c", previous=True), 'container "c" in pod "p" not found', id="no previous run"),
        pytest.param(LogOptions("c", since_time="yesterday"), "sinceTime", id="no time"),
    ],
)
async def test_impossible_options(client: FakeClient, log: FakeLog, options: LogOptions, message: str) -> None:
    """What a server refuses is refused."""
    with pytest.raises(BadRequestError, match=message):
        await read(client, options)


async def test_rotation(client: FakeClient, log: FakeLog, background: Background) -> None:
    """What was rotated away is missing from new streams."""
    log.write(b"one\n")
    log.rotate()
    log.write(b"two\n")
    assert await read(client) == b"two\n"


async def test_time_of_lines(client: FakeClient, clock: ManualClock, log: FakeLog) -> None:
    """A line has the time at which it began, by the clock of the client."""
    log.write(b"on")
    await clock.advance(1.5)
    log.write(b"e\ntwo\r\x0b\n")
    assert await read(client, LogOptions("c", timestamps=True)) == (
        f"{T0}.000000000Z one\n{T0[:-1]}1.500000000Z two\r\x0b\n".encode()
    )


async def test_lines_without_timestamps(client: FakeClient, log: FakeLog) -> None:
    """A line may lack its timestamp; then it is in every stream, whatever time is asked for."""
    log.write(b"one\n", stamped=False)
    log.write(b"two\n")
    options = LogOptions("c", timestamps=True, since_time=f"{T0[:-1]}9Z")
    assert await read(client, options) == b"one\n"


@pytest.mark.parametrize(
    ("error", "torn", "text", "end"),
    [
        pytest.param(None, False, b"one\ntwo\n", "clean", id="clean"),
        pytest.param(BROKEN, False, b"one\ntwo\n", "connection reset", id="broken"),
        pytest.param(None, True, b"one\ntwo\nt", "connection reset", id="torn"),
    ],
)
async def test_drop(
    client: FakeClient,
    log: FakeLog,
    background: Background,
    error: TransportError | None,
    torn: bool,
    text: bytes,
    end: str,
) -> None:
    """An open stream ends behind the text that is due, or within the next; new ones are whole."""
    stream = Stream()
    log.write(b"one\n")
    background(stream.read(client, FOLLOW))
    await settle()
    if torn:
        assert client.faults.drop_logs(error, torn=True) == 1
        log.write(b"two\n")
    else:
        log.write(b"two\n")
        assert client.faults.drop_logs(error) == 1
    log.write(b"three\n")
    await settle()
    assert (stream.end, client.faults.drop_logs()) == (end, 0)
    assert stream.text == text
    assert await read(client) == b"one\ntwo\nthree\n"


async def test_cut(client: FakeClient, log: FakeLog) -> None:
    """The next streams end after so many bytes each, also in the middle of a character."""
    log.write("é\n".encode())
    client.faults.cut_logs(0, 1)
    client.faults.cut_logs(2, error=BROKEN)
    client.faults.cut_logs(100)
    streams = [Stream() for _ in range(5)]
    for stream in streams:
        await stream.read(client, PLAIN)
    assert [stream.text for stream in streams] == [b"", b"\xc3", "é".encode(), "é\n".encode(), "é\n".encode()]
    assert [stream.end for stream in streams] == ["clean", "clean", "connection reset", "clean", "clean"]


async def test_silence(client: FakeClient, clock: ManualClock, log: FakeLog, background: Background) -> None:
    """A silent stream says nothing more, until its reader has waited for the idle timeout."""
    patient, impatient = Stream(), Stream()
    background(patient.read(client, FOLLOW))
    background(impatient.read(client, LogOptions("c", follow=True, idle_timeout=30)))
    await settle()
    await clock.advance(20)
    log.write(b"one\n")
    await settle()
    client.faults.silence_logs()
    log.write(b"two\n")
    log.end()
    await clock.advance(29)
    assert [stream.end for stream in (patient, impatient)] == [None, None]
    await clock.advance(2)
    assert [stream.text for stream in (patient, impatient)] == [b"one\n", b"one\n"]
    assert [stream.end for stream in (patient, impatient)] == [None, "timed out: the server sent nothing for too long"]


async def test_server_that_is_down_or_away(client: FakeClient, log: FakeLog, background: Background) -> None:
    """Logs break with a server that goes down, and fall silent with one that is out of reach."""
    broken, silent = Stream(), Stream()
    background(broken.read(client, FOLLOW))
    await settle()
    client.faults.refuse_connections()
    await settle()
    assert broken.end == "connection reset"
    client.faults.accept_connections()
    background(silent.read(client, FOLLOW))
    await settle()
    client.faults.partition()
    log.write(b"one\n")
    await settle()
    assert (silent.text, silent.end) == (b"", None)


async def test_fragments(client: FakeClient, log: FakeLog) -> None:
    """Chunks end anywhere, in an order that a seed gives again."""
    log.write(b"0123456789" * 100)
    runs = []
    for _ in range(2):
        client.faults.fragment_logs(random.Random(1))
        stream = Stream()
        await stream.read(client, PLAIN)
        assert stream.text == b"0123456789" * 100
        runs.append(stream.chunks)
    assert runs[0] == runs[1]
    assert len(runs[0]) > 5
    client.faults.clear()
    assert await read(client) == b"0123456789" * 100


async def test_pace(client: FakeClient, clock: ManualClock, log: FakeLog, background: Background) -> None:
    """Between two reads at a pace there is time, in which text gathers."""
    stream = Stream()
    background(stream.read(client, LogOptions("c", follow=True, pace=1)))
    await settle()
    for _ in range(3):
        log.write(b"x")
        await clock.advance(0.25)
    assert stream.chunks == [b"x"]
    await clock.advance(0.25)
    assert stream.chunks == [b"x", b"xx"]
