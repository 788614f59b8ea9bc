"""How far a log has been read, and what a resumed stream repeats."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.kube.podlogs.instant import Instant
from trainer.kube.podlogs.position import Position, instant_of


def line(stamp: str, text: str = "x") -> bytes:
    """A line as a kubelet sends it; the stamp gives minute, second and fraction."""
    return f"2026-01-01T00:{stamp}Z {text}\n".encode()


def lines(*stamps: str) -> bytes:
    return b"".join(line(stamp) for stamp in stamps)


def at(blocks: list[bytes]) -> Position:
    position = Position()
    for block in blocks:
        position.advance(block)
    return position


@pytest.mark.parametrize(
    ("blocks", "instant", "since"),
    [
        pytest.param([], None, None, id="nothing"),
        pytest.param([lines("00:07.25")], "00:07.25", "00:07", id="one line"),
        pytest.param([lines("00:08.25", "00:07.999")], "00:08.25", "00:08", id="out of order over a second"),
        pytest.param([lines("00:08.000999999")], "00:08.000999999", "00:07", id="less than a millisecond"),
        pytest.param([b"no stamp\n", lines("00:08.5"), b"no stamp\n"], "00:08.5", "00:08", id="lines without"),
        pytest.param([lines("00:08.5"), b"2026-01-01T00:00:08 no zone\n"], "00:08.5", "00:08", id="no zone"),
        pytest.param([b"2026-01-01T00:00:08_x\n"], None, None, id="almost a timestamp"),
        pytest.param([lines("00:08.5"), b"2026-01-01T00:00:08_x\n"], "00:08.5", "00:08", id="almost one, later"),
        pytest.param([lines("00:08.12"), lines("00:08.123")], "00:08.123", "00:08", id="zeros left out"),
    ],
)
def test_position(blocks: list[bytes], instant: str | None, since: str | None) -> None:
    """The position is the last line's, and the log is asked for since its second, or one earlier if it just began."""
    position = at(blocks)
    asked, _ = position.resume()
    assert position.instant == (Instant.parse(f"2026-01-01T00:{instant}Z") if instant else None)
    assert (asked.second if asked else None) == (f"2026-01-01T00:{since}Z" if since else None)


@pytest.mark.parametrize("stamps", [(), ("00:07.25",), ("00:07.25", "00:07.25", "00:08.5"), ("00:08",)])
def test_goes_on_in_another_process(stamps: tuple[str, ...]) -> None:
    """A position that was written down knows the same repeats, and holds no text of the log."""
    block = b"".join(line(stamp, "secret") for stamp in stamps)
    position = at([block] if block else [])
    assert "secret" not in position.text
    (since, repeats), (known, same) = (each.resume() for each in (position, Position.of_text(position.text)))
    assert since == known
    following = block + line("00:09.5", "new")
    assert repeats.without(following) == same.without(following) == line("00:09.5", "new")


@pytest.mark.parametrize("text", ["", "{}", "[1]", '["", 1, 2, 3, 4]'])
def test_no_position(text: str) -> None:
    """A text that is no position is refused."""
    with pytest.raises(ValueError, match="no position of a log"):
        Position.of_text(text)


SECONDS = st.lists(st.integers(0, 3), max_size=8)
"""How much later each line is than the one before."""
DISORDER = st.lists(st.sampled_from([0, 0, 0, 0, -1, 1, None]), min_size=8, max_size=8)
"""What is wrong with each line: seconds by which it is off, or None: it has no timestamp."""


@settings(deadline=None)
@given(st.lists(st.tuples(SECONDS, DISORDER), max_size=5))
def test_blocks_count_as_their_lines_do(steps: list[tuple[list[int], list[int | None]]]) -> None:
    """However many seconds a block spans, and in whatever order: it leads to where its lines one by one do."""
    second, blocks = 100, list[list[bytes]]()
    for later, disorder in steps:
        block = []
        for seconds, wrong in zip(later, disorder, strict=False):
            second += seconds
            seen = second + (wrong or 0)
            block.append(b"text\n" if wrong is None else line(f"{seen // 60:02}:{seen % 60:02}"))
        blocks.append(block)
    whole = at([b"".join(block) for block in blocks if block])
    single = at([each for block in blocks for each in block])
    (asked, repeats), (single_asked, single_repeats) = whole.resume(), single.resume()
    assert asked == single_asked
    known = (f"{asked} x\n".encode() if asked else b"text\n") * 41
    assert repeats.without(known) == single_repeats.without(known)


def test_a_backlog_costs_no_python_code_per_line() -> None:
    """Blocks that span several seconds, as those of a backlog do, are counted as fast as those within one."""
    stamps = [f"00:{number // 100:02}.{number % 100:02}0000000" for number in range(6000)]
    block = lines(*stamps)
    seen = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal seen
        seen += event == "call"

    position = Position()
    sys.setprofile(count)
    try:
        assert position.advance(block) == 6000
    finally:
        sys.setprofile(None)
    assert seen < 20
    assert position.instant == Instant.parse("2026-01-01T00:00:59.99Z")


@pytest.mark.parametrize(
    ("read", "resumed", "new"),
    [
        pytest.param([lines("00:06.9", "00:07.1")], lines("00:07.1", "00:07.3"), 1, id="second before is not sent"),
        pytest.param([lines("00:07.1", "00:07.1")], lines("00:07.1", "00:07.1", "00:07.1"), 1, id="equal, one more"),
        pytest.param(
            [lines("00:07.9999", "00:08.0001")],
            lines("00:07.9999", "00:08.0001", "00:07.9999", "00:08.0002"),
            2,
            id="new line is out of order over a second",
        ),
        pytest.param(
            [lines("00:07.1", "00:08.0001", "00:07.9999")],
            lines("00:07.1", "00:08.0001", "00:07.9999", "00:08.0002"),
            1,
            id="last line was out of order over a second",
        ),
        pytest.param([lines("00:07.1", "00:07.2")], lines("00:07.2", "00:07.3"), 1, id="rotated, one line left"),
        pytest.param([lines("00:07.1", "00:07.2")], lines("00:07.3", "00:07.4"), 2, id="rotated, none left"),
        pytest.param([b"a\nb\n"], b"a\nb\nc\n", 1, id="no timestamps at all"),
        pytest.param([lines("00:07.1")], lines("00:07.1") + b"what\n" + lines("00:07.2"), 2, id="one without"),
        pytest.param([lines("00:07.1", "00:07.2")], b"what\n" + lines("00:07.1", "00:07.2"), 1, id="one in front"),
        pytest.param([lines("00:07.1")], b"9%\r10%\n" + lines("00:07.1", "00:07.2"), 1, id="the end of a bar in front"),
        pytest.param([lines("00:07.1")], lines("00:07.1") + b"what\r\n", 1, id="a bar without"),
    ],
)
def test_repeats(read: list[bytes], resumed: bytes, new: int) -> None:
    """Of a resumed stream, exactly the lines that were not read before are new, in whatever blocks they come."""
    _, repeats = at(read).resume()
    one_block = repeats.without(resumed)
    _, repeats = at(read).resume()
    line_by_line = b"".join(repeats.without(part + b"\n") for part in resumed.split(b"\n")[:-1])
    assert one_block == line_by_line
    assert one_block.count(b"\n") == new
    if new and b"what" not in resumed:
        assert resumed.endswith(one_block)


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        pytest.param(b"1970-01-01T00:00:01Z", Instant(1), id="no text"),
        pytest.param(b"1970-01-01T00:00:01Z ", Instant(1), id="empty text"),
        pytest.param(b"1970-01-01T00:00:01Ztext", None, id="no space"),
    ],
)
def test_instant_of(text: bytes, instant: Instant | None) -> None:
    """A line begins with its timestamp, or has none."""
    assert instant_of(text) == instant
