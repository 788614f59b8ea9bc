"""Reading container logs from disk."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from trainer_devcluster.apiserver.container_logs import LogFilter, RunLogReader, log_file

T = "2026-01-01T00:00:0"
ENTRIES = (
    f"{T}1.000000001Z stdout F one\n"
    f"{T}2.500000000Z stderr F two\n"
    f"{T}3.000000003Z stdout P thr\n"
    f"{T}4.000000004Z stdout F ee\n"
    f"{T}4.000000005Z stdout F \n"
)


def at(second: int, microsecond: int = 0) -> datetime:
    return datetime(2026, 1, 1, 0, 0, second, microsecond, UTC)


@pytest.mark.parametrize(
    ("log_filter", "expected"),
    [
        pytest.param(LogFilter(), "one\ntwo\nthree\n\n", id="everything"),
        pytest.param(
            LogFilter(timestamps=True),
            f"{T}1.000000001Z one\n{T}2.500000000Z two\n{T}3.000000003Z three\n{T}4.000000005Z \n",
            id="timestamps, one per line",
        ),
        pytest.param(LogFilter(since=at(2)), "two\nthree\n\n", id="since a second"),
        pytest.param(LogFilter(since=at(2, 500_000)), "two\nthree\n\n", id="since the very moment"),
        pytest.param(LogFilter(since=at(2, 500_001)), "three\n\n", id="since a moment later"),
        pytest.param(LogFilter(since=at(9)), "", id="since later"),
        pytest.param(
            LogFilter(timestamps=True, since=at(4)), f"ee\n{T}4.000000005Z \n", id="since the middle of a line: no time"
        ),
        pytest.param(LogFilter(tail_lines=3), "three\n\n", id="last entries"),
        pytest.param(
            LogFilter(timestamps=True, tail_lines=2),
            f"{T}4.000000004Z ee\n{T}4.000000005Z \n",
            id="last entries from the middle of a line: its own time",
        ),
        pytest.param(LogFilter(tail_lines=0), "", id="no entries"),
        pytest.param(LogFilter(tail_lines=5), "one\ntwo\nthree\n\n", id="as many entries as there are"),
        pytest.param(LogFilter(tail_lines=99), "one\ntwo\nthree\n\n", id="more entries than there are"),
        pytest.param(LogFilter(tail_lines=99, since=at(4)), "ee\n\n", id="of the last entries those since a second"),
    ],
)
def test_filters(tmp_path: Path, log_filter: LogFilter, expected: str) -> None:
    """Entries become lines; pieces of long lines are put together."""
    path = tmp_path / "0.log"
    path.write_text(ENTRIES)
    assert RunLogReader(path, log_filter).read().decode() == expected


@pytest.mark.parametrize("count", [1, 999, 1000, 4999, 5000, 5001])
def test_last_lines_of_a_long_file(tmp_path: Path, count: int) -> None:
    """The last lines are found from the end, wherever the blocks of the file begin."""
    lines = [f"line {number} " + "x" * (number % 97) for number in range(5000)]
    path = tmp_path / "0.log"
    path.write_text("".join(f"{T}1.000000001Z stdout F {line}\n" for line in lines))
    reader = RunLogReader(path, LogFilter(tail_lines=count))
    text = b""
    while piece := reader.read():
        text += piece
    assert text.decode().splitlines() == lines[-count:]


def test_what_is_no_entry(tmp_path: Path) -> None:
    """Debris of a full disk is passed over, and so are bytes that are no text, as they are."""
    path = tmp_path / "0.log"
    path.write_bytes(f"{T}1.000000001Z stdo\n\n{T}1.000000002Z stdout F ".encode() + b"\xff\x00\r \xfe\n")
    assert RunLogReader(path, LogFilter()).read() == b"\xff\x00\r \xfe\n"


def test_growing_file(tmp_path: Path) -> None:
    """Each read returns what is new, and never half an entry."""
    path = tmp_path / "0.log"
    reader = RunLogReader(path, LogFilter())
    assert not reader.has_more()
    assert reader.read() == b""
    path.write_text(f"{T}1Z stdout F one\n{T}2Z stdo")
    assert reader.has_more()
    assert reader.read() == b"one\n"
    assert not reader.has_more()
    assert reader.read() == b""
    with path.open("a") as file:
        file.write("ut F two\n")
    assert reader.read() == b"two\n"


def in_files(log: Path, *files: int) -> None:
    """A log with five lines in each of these files."""
    for number in files:
        lines = [f"{T}{number}.{line:09}Z stdout F {number}.{line}\n" for line in range(5)]
        log_file(log, number).write_text("".join(lines))


def everything(reader: RunLogReader) -> list[str]:
    """All lines that the reader has now."""
    text = b""
    while piece := reader.read():
        text += piece
    return text.decode().splitlines()


@pytest.mark.parametrize(
    ("log_filter", "first", "count"),
    [
        pytest.param(LogFilter(), "2.0", 15, id="everything"),
        pytest.param(LogFilter(tail_lines=3), "4.2", 3, id="last lines in the newest file"),
        pytest.param(LogFilter(tail_lines=5), "4.0", 5, id="all of the newest file"),
        pytest.param(LogFilter(tail_lines=6), "3.4", 6, id="last lines in two files"),
        pytest.param(LogFilter(tail_lines=13), "2.2", 13, id="last lines in all files"),
        pytest.param(LogFilter(tail_lines=99), "2.0", 15, id="more lines than there are"),
        pytest.param(LogFilter(since=at(3)), "3.0", 10, id="since a moment"),
    ],
)
def test_several_files(tmp_path: Path, log_filter: LogFilter, first: str, count: int) -> None:
    """A long log is one text, whatever files it is in; the oldest may be gone."""
    in_files(tmp_path / "0.log", 2, 3, 4)
    lines = everything(RunLogReader(tmp_path / "0.log", log_filter))
    assert (lines[0], len(lines), lines[-1]) == (first, count, "4.4")


def test_following_over_files(tmp_path: Path) -> None:
    """A reader goes on in the next file, and in the oldest that is left when it was too slow."""
    log = tmp_path / "0.log"
    in_files(log, 0)
    reader = RunLogReader(log, LogFilter())
    assert len(everything(reader)) == 5
    assert not reader.has_more()
    with log.open("a") as file:
        file.write(f"{T}1Z stdout P half of \n")
    log_file(log, 1).write_text(f"{T}1Z stdout F a line\n")
    assert reader.has_more()
    assert everything(reader) == ["half of a line"]
    assert not reader.has_more()
    in_files(log, 4, 5)
    for number in (0, 1):
        log_file(log, number).unlink()
    assert reader.has_more()
    assert everything(reader) == [f"{number}.{line}" for number in (4, 5) for line in range(5)]
    assert not reader.has_more()


def test_long_entries_span_chunks(tmp_path: Path) -> None:
    """A line longer than the reader's chunk arrives whole."""
    path = tmp_path / "0.log"
    line = "x" * 600_000
    path.write_text(f"{T}1Z stdout F {line}\n")
    assert RunLogReader(path, LogFilter()).read().decode() == f"{line}\n"
