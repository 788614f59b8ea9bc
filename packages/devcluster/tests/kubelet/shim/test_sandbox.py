"""The name server that knows no name."""

from __future__ import annotations

import pytest

from trainer_devcluster.kubelet.shim.sandbox import no_such_name

QUESTION = b"\x03pod\x03job\x00\x00\x01\x00\x01"
OPTIONS = b"\x00\x00\x29\x04\xd0\x00\x00\x00\x00\x00\x00"


def test_answer() -> None:
    """The answer repeats ID and question, says that the name does not exist, and leaves out what else was sent."""
    query = b"\xab\xcd\x01\x20\x00\x01\x00\x00\x00\x00\x00\x01" + QUESTION + OPTIONS
    assert no_such_name(query) == b"\xab\xcd\x81\x83\x00\x01\x00\x00\x00\x00\x00\x00" + QUESTION


@pytest.mark.parametrize("query", [b"", b"\x00" * 12, b"\x00" * 12 + b"\x3fshort"], ids=["empty", "header", "cut"])
def test_no_query(query: bytes) -> None:
    """What is no query gets no answer."""
    assert no_such_name(query) == b""
