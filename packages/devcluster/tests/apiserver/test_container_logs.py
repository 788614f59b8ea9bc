"""Reading container logs from disk."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from trainer_devcluster.apiserver.container_logs import LogFilter, RunLogReader
from trainer_devcluster.log_paths import log_file

T = "2026-01-01T00:00:0"


def at(second: int, microsecond: int = 0) -> datetime:
    return datetime(2026, 1, 1, 0, 0, second, microsecond, UTC)


def test_what_is_no_entry(tmp_path: Path) -> None:
    """Debris of a full disk is passed over, and so are bytes that are no text, as they are."""
    path = tmp_path / "0.log"
    path.write_bytes(f"{T}1.000000001Z stdo\n\n{T}1.000000002Z stdout F ".encode() + b"\xff\x00\r \xfe\n")
    assert RunLogReader(path, LogFilter()).read() == b"\xff\x00\r \xfe\n"


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
        pytest.param(LogFilter(tail_lines=6), "3.4", 6, id="last lines in two files"),
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


def test_directory_that_is_gone(tmp_path: Path) -> None:
    """With its pod a log may go at any moment."""
    reader = RunLogReader(tmp_path / "container" / "0.log", LogFilter())
    assert (reader.read(), reader.has_more()) == (b"", False)
