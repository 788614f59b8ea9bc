"""Reading container logs from disk."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from trainer.devcluster.apiserver.crilog import LogFilter, LogReader, log_path

if TYPE_CHECKING:
    from pathlib import Path

T = "2026-01-01T00:00:0"
ENTRIES = (
    f"{T}1.000000001Z stdout F one\n"
    f"{T}2.5Z stderr F two\n"
    f"{T}3.000000003Z stdout P thr\n"
    f"{T}3.000000004Z stdout F ee\n"
    f"{T}4Z stdout F \n"
)


@pytest.mark.parametrize(
    ("log_filter", "expected"),
    [
        pytest.param(LogFilter(), "one\ntwo\nthree\n\n", id="everything"),
        pytest.param(
            LogFilter(timestamps=True),
            f"{T}1.000000001Z one\n{T}2.5Z two\n{T}3.000000003Z three\n{T}4Z \n",
            id="timestamps, one per line",
        ),
        pytest.param(LogFilter(since=datetime(2026, 1, 1, 0, 0, 2, 600_000, UTC)), "three\n\n", id="since"),
        pytest.param(LogFilter(tail_lines=2), "three\n\n", id="last lines"),
        pytest.param(LogFilter(tail_lines=0), "", id="no lines"),
        pytest.param(LogFilter(tail_lines=99), "one\ntwo\nthree\n\n", id="more lines than there are"),
    ],
)
def test_filters(tmp_path: Path, log_filter: LogFilter, expected: str) -> None:
    """Entries become lines; pieces of long lines are put together."""
    path = tmp_path / "0.log"
    path.write_text(ENTRIES)
    assert LogReader(path, log_filter).start().decode() == expected


def test_growing_file(tmp_path: Path) -> None:
    """Each read returns what is new, and never half an entry."""
    path = tmp_path / "0.log"
    reader = LogReader(path, LogFilter())
    assert reader.start() == b""
    path.write_text(f"{T}1Z stdout F one\n{T}2Z stdo")
    assert reader.read() == b"one\n"
    assert reader.read() == b""
    with path.open("a") as file:
        file.write("ut F two\n")
    assert reader.read() == b"two\n"


def test_long_entries_span_chunks(tmp_path: Path) -> None:
    """A line longer than the reader's chunk arrives whole."""
    path = tmp_path / "0.log"
    line = "x" * 600_000
    path.write_text(f"{T}1Z stdout F {line}\n")
    assert LogReader(path, LogFilter()).start().decode() == f"{line}\n"


def test_path_layout(tmp_path: Path) -> None:
    """The layout is the seam with the kubelet."""
    assert log_path(tmp_path, "uid", "main", 2) == tmp_path / "pods" / "uid" / "main" / "2.log"
