"""Which lines of a log are messages about progress."""

from __future__ import annotations

import pytest

from trainer.api.progress_tags import TAGS, payload_of, without_message

TAG = TAGS[0].encode()


@pytest.mark.parametrize("tag", [each.encode() for each in TAGS])
@pytest.mark.parametrize(
    ("before", "payload", "left"),
    [
        pytest.param(b"", b" {}", None, id="message"),
        pytest.param(b" \t\x1b[2K", b" {}", None, id="behind what shows nothing"),
        pytest.param(b"50%\r", b" {}", b"50%\r", id="behind a progress bar"),
        pytest.param(b"", b"", None, id="tag alone"),
    ],
)
def test_messages(tag: bytes, before: bytes, payload: bytes, left: bytes | None) -> None:
    """What programs read of a message, and what people do."""
    line = before + tag + payload
    assert payload_of(line) == payload
    assert without_message(line) == left


@pytest.mark.parametrize("line", [b"", b"ordinary", b"said " + TAG + b" {}", b"said " + TAG + b" {}\r", TAG[:-1]])
def test_ordinary_lines(line: bytes) -> None:
    """People read all of a line that is no message."""
    assert payload_of(line) is None
    assert without_message(line) == line
