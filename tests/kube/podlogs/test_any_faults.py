"""Following a log through random faults."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass

import anyio
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kube.objects import pod
from trainer.kube.errors import KubeError, TransportError
from trainer.kube.podlogs.container_log import ContainerLog, ContainerLogOptions, Interrupted
from trainer.kube.podlogs.instant import Instant
from trainer_kube_testing import FakeClient, ManualClock, eventually, statuses

START = 1767225600
LINE_LIMIT = 200
BROKEN = TransportError("connection reset")


@dataclass(frozen=True)
class Write:
    """One line: so many nanoseconds after the one before, but dated earlier by the disorder."""

    delay: int
    disorder: int
    text: bytes


@dataclass(frozen=True)
class Cut:
    """Where the next stream to be opened is cut, and how."""

    after: int
    breaks: bool


@dataclass(frozen=True)
class Drop:
    """How the open stream ends."""

    breaks: bool
    torn: bool


@dataclass(frozen=True)
class Refuse:
    """How the next requests fail."""

    error: KubeError
    times: int


@dataclass(frozen=True)
class Silence:
    """The open stream says nothing more."""


@dataclass(frozen=True)
class Advance:
    """The reader gets its turns, and then time passes."""

    seconds: float


def texts() -> st.SearchStrategy[bytes]:
    """Short ones, often equal; progress bars, characters of several bytes, binary, and lines around the limit."""
    odd = [b"", b"x", b"10%\r20%\r", "é€😀".encode(), b"\x00\xff\xfe", b"2026-01-01T00:00:00Z not the stamp"]
    long = st.integers(LINE_LIMIT - 33, LINE_LIMIT - 29).map(lambda size: b"l" * size)
    return st.one_of(st.sampled_from(odd), long, st.just(b"m" * 1000))


STEPS = st.one_of(
    st.builds(
        Write,
        st.sampled_from([0, 0, 1, 700, 400_000, 300_000_000, 999_500_000, 1_000_000_000, 2_500_000_000]),
        st.sampled_from([0, 0, 1, 3_000, 900_000]),
        texts(),
    ),
    st.builds(Cut, st.integers(0, 400), st.booleans()),
    st.builds(Drop, st.booleans(), st.booleans()),
    st.builds(
        Refuse,
        st.sampled_from([statuses.internal_error(), statuses.expired(), statuses.too_many_requests(2), BROKEN]),
        st.integers(1, 3),
    ),
    st.just(Silence()),
    st.builds(Advance, st.sampled_from([0.0, 0.0, 0.6, 20.0])),
    st.builds(Advance, st.just(0.0)),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(STEPS, max_size=40), st.integers(0, 1000))
def test_every_line_once_and_in_order(steps: list[object], seed: int) -> None:
    """Whatever happens to the streams, each line that is not too long arrives once, whole, and in the log's order.

    That holds for lines with equal timestamps, and for timestamps that are up to a millisecond out of order.
    """
    asyncio.run(follow_through(steps, seed))


async def follow_through(steps: list[object], seed: int) -> None:
    clock = ManualClock()
    client = FakeClient(pod("p"), clock=clock)
    client.faults.fragment_logs(random.Random(seed))
    log = client.log("p", "ns", "c")
    options = ContainerLogOptions(line_limit=LINE_LIMIT, idle_timeout=30)
    container_log = ContainerLog(client, "ns", "p", "c", clock=clock, options=options)
    blocks: list[bytes] = []
    written: list[bytes] = []
    has_ended = False
    time = START * 1_000_000_000

    is_done = anyio.Event()

    async def follow() -> None:
        events = container_log.follow(lambda: has_ended)
        blocks.extend([event async for event in events if not isinstance(event, Interrupted)])
        is_done.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(follow)
        for step in steps:
            match step:
                case Write(delay, disorder, text):
                    time += delay
                    instant = Instant(*divmod(time - disorder, 1_000_000_000))
                    log.write(text + b"\n", instant)
                    written.append(b"%b %b\n" % (stamp(instant), text))
                case Cut(after, breaks):
                    client.faults.cut_logs(after, error=BROKEN if breaks else None)
                case Drop(breaks, torn):
                    client.faults.drop_logs(BROKEN if breaks else None, torn=torn)
                case Refuse(error, times):
                    client.faults.fail(error, times=times, verb="log")
                case Silence():
                    client.faults.silence_logs()
                case Advance(seconds):
                    await clock.advance(seconds)
        client.faults.clear()
        has_ended = True
        log.end()
        await eventually(is_done.is_set, clock=clock, within=600)
    assert all(block.endswith(b"\n") for block in blocks)
    assert b"".join(blocks) == b"".join(line for line in written if len(line) <= LINE_LIMIT + 1)


def stamp(instant: Instant) -> bytes:
    return f"{instant.second[:-1]}.{instant.nanoseconds:09}Z".encode()
