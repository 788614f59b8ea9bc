"""Whole lines from chunks."""

from __future__ import annotations

import random
import tracemalloc

import pytest

from trainer.kube.podlogs.line_blocks import HEAD_BYTES, LineBlocks


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
    assert b"".join(handed).split(b"\n")[:-1] == [line for line in lines if len(line) <= 8]
    assert [head[:9] for head in skipped] == [line[:9] for line in lines if len(line) > 8]
    assert all(block.endswith(b"\n") for block in handed)


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
