"""Whole lines from chunks."""

from __future__ import annotations

import random
import tracemalloc

import pytest

from trainer.kube.podlogs.line_blocks import LineBlocks
from trainer.kube.podlogs.unfinished_line import HEAD_BYTES, WRITTEN_OVER_LIMIT


def blocks_of(*chunks: bytes, limit: int | None = None, finish: bool = False) -> list[bytes]:
    """What is handed on, in order; a skipped line as its first bytes in angle brackets."""
    handed: list[bytes] = []
    blocks = LineBlocks(lambda head: handed.append(b"<%b>" % head), limit=limit)
    for chunk in chunks:
        handed += blocks.of(chunk)
    if finish:
        handed += blocks.rest()
    return handed


@pytest.mark.parametrize(
    ("chunks", "handed"),
    [
        pytest.param([b"a\nb\n"], [b"a\nb\n"], id="whole lines are one block"),
        pytest.param([b"a", b"b", b"c", b"d\ne\n", b"f\n"], [b"abcd\ne\n", b"f\n"], id="line over many chunks"),
        pytest.param([b"a\rb\rc\r\n"], [b"a\rb\rc\r\n"], id="carriage returns are text"),
        pytest.param([b"a"], [], id="no end yet"),
    ],
)
def test_lines(chunks: list[bytes], handed: list[bytes]) -> None:
    """Blocks end with a line, and come as soon as its end does; bytes stay as they are."""
    assert blocks_of(*chunks) == handed


@pytest.mark.parametrize(
    ("chunks", "handed"),
    [
        pytest.param([b"a\nb"], [b"a\n", b"b\n"], id="half a line"),
        pytest.param([b"a\n"], [b"a\n"], id="nothing left"),
        pytest.param([b"a", b"b", b"c"], [b"abc\n"], id="several chunks"),
        pytest.param([b"123456789"], [b"<123456789>"], id="too long"),
    ],
)
def test_finish(chunks: list[bytes], handed: list[bytes]) -> None:
    """At the end of a log, what is left is a line; one that is being skipped is none."""
    assert blocks_of(*chunks, limit=8, finish=True) == handed


def test_the_head_of_a_skipped_line() -> None:
    """So much of a skipped line is reported as holds any timestamp, however it was cut."""
    line = b"2026-01-01T00:00:00.123456789+01:00 " + b"x" * 200
    for size in (1, 7, HEAD_BYTES, 199, 500):
        chunks = [line[start : start + size] for start in range(0, len(line), size)]
        assert blocks_of(*chunks, b"\n", limit=100) == [b"<%b>" % line[:HEAD_BYTES]]


@pytest.mark.parametrize("seed", range(20))
def test_any_cut_gives_the_same_lines(seed: int) -> None:
    """The boundaries of chunks change neither the lines that arrive nor those that are skipped."""
    random_ = random.Random(seed)
    lines = [bytes(random_.choices(b"ab\r\x00\xff", k=random_.choice((0, 1, 7, 8, 9, 40)))) for _ in range(200)]
    log = b"".join(line + b"\n" for line in lines)
    handed: list[bytes] = []
    skipped: list[bytes] = []
    blocks = LineBlocks(skipped.append, limit=8)
    while log:
        size = random_.randint(1, random_.choice((3, 20, 500)))
        handed += blocks.of(log[:size])
        log = log[size:]
    expected = [line if len(line) <= 8 else last_state(line) for line in lines]
    assert b"".join(handed).split(b"\n")[:-1] == [line for line in expected if len(line) <= 8]
    assert [head[:8] for head in skipped] == [
        line[:8] for line, state in zip(lines, expected, strict=True) if len(state) > 8
    ]
    assert all(block.endswith(b"\n") for block in handed)


def last_state(line: bytes) -> bytes:
    return b"\r" + next((state for state in reversed(line.split(b"\r")) if state), b"") if b"\r" in line else line


STAMP = b"2026-01-01T00:00:00.123456789Z "


@pytest.mark.parametrize("limit", [pytest.param(WRITTEN_OVER_LIMIT, id="limit"), pytest.param(None, id="no limit")])
@pytest.mark.parametrize("size", [100, 16 * 1024, 10_000_000])
@pytest.mark.parametrize(
    ("form", "end"),
    [
        pytest.param(b"\r%4d/6000 of a bar", b"5999/6000 of a bar", id="behind a return"),
        pytest.param(b"%4d/6000 of a bar\r", b"5999/6000 of a bar", id="before a return"),
        pytest.param(b"\r%4d/6000\r\r", b"5999/6000", id="several returns"),
    ],
)
def test_a_long_line_that_is_written_over(form: bytes, end: bytes, size: int, limit: int | None) -> None:
    """Of a progress bar longer than the limit, its timestamp and last state are left, in bounded memory."""
    line = STAMP + b"".join(form % number for number in range(6000)) + b"\n"
    blocks = LineBlocks(lambda _: pytest.fail("was skipped"), limit=limit)
    handed: list[bytes] = [*blocks.of(STAMP + b"before\n")]
    states: list[bytes] = []
    tracemalloc.start()
    for start in range(0, len(line), size):
        handed += blocks.of(line[start : start + size])
        states.append(blocks.take_state())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert handed == [STAMP + b"before\n", STAMP + b"\r" + end + b"\n"]
    assert peak < 700_000
    numbers = [int(state[len(STAMP) + 1 :][:4]) for state in states if state]
    assert numbers == sorted(set(numbers))
    assert len(numbers) >= len(line) // size - 1


@pytest.mark.parametrize(
    ("chunks", "states"),
    [
        pytest.param([b"10%\r20%", b"\r", b"30", b"%\r", b"\n"], [b"\r10%", b"\r20%", b"", b"\r30%", b""], id="ended"),
        pytest.param([STAMP + b"\r", b"10%\r", b"\r\r"], [b"", STAMP + b"\r10%", b""], id="timestamp"),
        pytest.param([b"text"], [b""], id="not written over"),
        pytest.param([b"\r10%\r\n20%"], [b""], id="a finished line"),
        pytest.param([b"\r" + b"x" * 99, b"\r10%\r"], [b"", b"\r10%"], id="behind one that is too long"),
    ],
)
def test_states_of_an_incomplete_line(chunks: list[bytes], states: list[bytes]) -> None:
    """Each state that has ended is taken once, if it is the last one."""
    blocks = LineBlocks(lambda _: None, limit=50)
    taken = []
    for chunk in chunks:
        for _ in blocks.of(chunk):
            pass
        taken.append(blocks.take_state())
    assert taken == states


def test_a_line_without_end_takes_no_memory() -> None:
    """Of 100 MB without a newline nothing is kept but what may yet be a line, and the next line is intact."""
    chunk = b"x" * 10_000
    handed: list[bytes] = []
    skipped: list[bytes] = []
    blocks = LineBlocks(skipped.append, limit=64 * 1024)
    tracemalloc.start()
    try:
        for _ in range(10_000):
            handed += blocks.of(chunk)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    handed += blocks.of(b"\nnext\n")
    assert peak < 200_000
    assert (handed, len(skipped)) == ([b"next\n"], 1)


def test_a_long_line_is_copied_once() -> None:
    """Without a limit, a line of 20 MB in chunks of 1,000 bytes is put together in linear time: in well under a second.

    Put together anew with each chunk, it would be copied 10,000 times: 200 GB.
    """
    chunk = b"x" * 1000
    handed: list[bytes] = []
    blocks = LineBlocks(handed.append)
    for _ in range(20_000):
        handed += blocks.of(chunk)
    handed += blocks.of(b"\n")
    assert [len(block) for block in handed] == [20_000_001]
