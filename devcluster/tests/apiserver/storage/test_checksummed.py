"""Checksummed lines: what can be read of a file whose end, or middle, is damaged."""

from __future__ import annotations

import pytest

from trainer_devcluster.apiserver.storage.checksummed import line, read_lines

A, B, C = line(b'{"a":1}'), line(b'{"b":2}'), line(b'{"c":3}')


def test_lines_come_back() -> None:
    """What was written is read, in order."""
    lines = read_lines(A + B + C)
    assert lines.documents == [b'{"a":1}', b'{"b":2}', b'{"c":3}']
    assert (lines.damaged_line, lines.intact_bytes) == (None, len(A + B + C))


@pytest.mark.parametrize(
    ("content", "documents", "damaged", "torn"),
    [
        pytest.param(b"", 0, None, False, id="empty"),
        pytest.param(A + B[:-1], 1, 2, True, id="no line break at the end"),
        pytest.param(A + B[:5], 1, 2, True, id="half a checksum"),
        pytest.param(A + b"\0" * 5000, 1, 2, True, id="zeros"),
        pytest.param(A + b"rubbish\nmore rubbish\n", 1, 2, True, id="several damaged lines at the end"),
        pytest.param(A + B.replace(b"2", b"3") + C, 1, 2, False, id="a changed line in the middle"),
        pytest.param(A + B[:-1] + C, 1, 2, True, id="a lost line break joins the last lines"),
        pytest.param(B[3:] + C, 0, 1, False, id="a damaged start"),
    ],
)
def test_damage(content: bytes, documents: int, damaged: int | None, torn: bool) -> None:
    """The first damaged line is reported, and whether anything intact is behind it."""
    lines = read_lines(content)
    assert (len(lines.documents), lines.damaged_line, lines.is_torn) == (documents, damaged, torn)
    assert content[: lines.intact_bytes] == (A if documents else b"")
