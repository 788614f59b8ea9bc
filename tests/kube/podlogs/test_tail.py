"""The last lines of a log."""

from __future__ import annotations

import pytest

from trainer.kube.podlogs.tail import Tail


def line(second: int, text: str) -> bytes:
    return f"2026-01-01T00:00:0{second}Z {text}\n".encode()


BEGINNING = line(1, "a") + line(1, "b")
REST = line(1, "c") + line(2, "d")


@pytest.mark.parametrize(
    ("blocks", "rest"),
    [
        pytest.param([BEGINNING + REST], REST, id="one block"),
        pytest.param([BEGINNING, REST, BEGINNING], REST + BEGINNING, id="a boundary, and what comes later"),
        pytest.param([BEGINNING, BEGINNING], b"", id="not there yet"),
        pytest.param([line(2, "d"), BEGINNING], line(2, "d") + BEGINNING, id="it was rotated away"),
        pytest.param([b"no time\n", REST], REST, id="line without a timestamp"),
    ],
)
def test_tail(blocks: list[bytes], rest: bytes) -> None:
    """What is before the first of the last lines is left out, also within the same second."""
    tail = Tail(line(1, "c").rstrip(b"\n"))

    assert b"".join(map(tail.of, blocks)) == rest


def test_nothing_is_kept() -> None:
    """When no line at all is wanted, the last one is left out as well."""
    tail = Tail(line(1, "b").rstrip(b"\n"), keeps_first=False)

    assert tail.of(BEGINNING + REST) == REST


def test_empty_log() -> None:
    """Of a log that had no line when it was asked, all is left."""
    assert Tail().of(BEGINNING) == BEGINNING
