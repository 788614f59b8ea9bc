"""Output that never waits."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator

import pytest

from trainer.kube.logs.line_writer import LINES, LineWriter

PIPE_SIZE = 4096
LINE = "x" * 1023 + "\n"


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """A pipe that holds four lines."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, PIPE_SIZE)
    yield reader, writer
    for end in (reader, writer):
        try:
            os.close(end)
        except OSError:
            continue


def read_all(reader: int) -> bytes:
    text = b""
    while chunk := os.read(reader, 65536):
        text += chunk
    return text


def test_lines_arrive_in_order(pipe: tuple[int, int]) -> None:
    """Closing waits until everything is written."""
    lines = LineWriter(pipe[1])
    for number in range(100):
        lines.write(f"{number}\n")
    lines.flush()
    lines.close(timeout=60)
    os.close(pipe[1])
    assert read_all(pipe[0]).split() == [str(number).encode() for number in range(100)]


def test_nobody_reads(pipe: tuple[int, int]) -> None:
    """With a full pipe, writing and closing return all the same."""
    lines = LineWriter(pipe[1])
    for _ in range(LINES + 10):
        lines.write(LINE)
    lines.close(timeout=0)
    # Its thread would otherwise tell of the lost lines during another test.
    os.close(pipe[0])
    lines.close(timeout=60)


def test_reader_that_is_gone(pipe: tuple[int, int]) -> None:
    """Writing on does no harm when nobody can read any more."""
    os.close(pipe[0])
    lines = LineWriter(pipe[1])
    lines.write(LINE)
    lines.write("a\ud800b\n")
    lines.close(timeout=60)


def test_text_that_utf8_cannot_express(pipe: tuple[int, int]) -> None:
    """It is written escaped, as Python's stderr does."""
    lines = LineWriter(pipe[1])
    lines.write("é\ud800\n")
    lines.close(timeout=60)
    os.close(pipe[1])
    assert read_all(pipe[0]) == "é\\ud800\n".encode()
