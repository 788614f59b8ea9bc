"""Container logs in CRI format."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from trainer_devcluster.kubelet.shim.log_file import MAX_LINE, ContainerLogWriter
from trainer_devcluster.kubelet.shim.spec import LogLimits

ENTRY = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z stdout ([FP]) (.*)", re.DOTALL)


def entries(path: Path) -> list[tuple[str, bytes]]:
    """Tag and text of each entry."""
    lines = path.read_bytes().split(b"\n")
    assert lines.pop() == b""
    matches = [ENTRY.fullmatch(line) for line in lines]
    return [(match[1].decode(), match[2]) for match in matches if match is not None]


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        pytest.param([b"a\nend"], [("F", b"a"), ("P", b"end")], id="no newline at the end"),
        pytest.param([b"x" * MAX_LINE, b"x", b"\n"], [("P", b"x" * MAX_LINE), ("F", b"x")], id="long line in chunks"),
    ],
)
def test_entries(tmp_path: Path, chunks: list[bytes], expected: list[tuple[str, bytes]]) -> None:
    """Lines are whole (F), parts of lines that are too long or never ended are partial (P)."""
    log = ContainerLogWriter(str(tmp_path / "log"))
    for chunk in chunks:
        log.feed(chunk)
    log.close()
    assert entries(tmp_path / "log") == expected


def test_rotation(tmp_path: Path) -> None:
    """A full file is left for another, the oldest go, and no entry is cut."""
    log = ContainerLogWriter(str(tmp_path / "log"), LogLimits(max_bytes=100, max_files=3))
    for number in range(20):
        log.feed(b"line %d\n" % number)
    log.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.7", "log.8", "log.9"]
    kept = [text for number in (7, 8, 9) for _, text in entries(tmp_path / f"log.{number}")]
    assert kept == [b"line %d" % number for number in range(14, 20)]
