"""Which lines of a log are messages about progress."""

from __future__ import annotations

import pytest

from trainer.api.progress_tags import TAGS, TaggedText, without_message

TAG = TAGS[0].encode()


@pytest.mark.parametrize("tag", [each.encode() for each in TAGS])
@pytest.mark.parametrize(
    ("before", "payload", "ranks", "left"),
    [
        pytest.param(b"", b" {}", (), None, id="message"),
        pytest.param(b" \t\x1b[2K", b" {}", (), None, id="behind what shows nothing"),
        pytest.param(b"50%\r", b" {}", (), b"50%\r", id="behind a progress bar"),
        pytest.param(b"[default0]:", b" {}", (0,), None, id="behind a launcher"),
        pytest.param(b"\x1b[33m(w pid=1)\x1b[0m \x1b[1m", b" {}", (), None, id="behind a coloured launcher"),
        pytest.param(b"[default1]: 50%\r", b" {}", (1,), b"[default1]: 50%\r", id="behind a launcher and a bar"),
        pytest.param(b"said " + TAG + b" a\r0: ", b" {}", (), b"said " + TAG + b" a\r0: ", id="the first that counts"),
        pytest.param(b"", b"", (), None, id="tag alone"),
    ],
)
def test_messages(tag: bytes, before: bytes, payload: bytes, ranks: tuple[int, ...], left: bytes | None) -> None:
    """What programs read of a message, and what people do."""
    line = before + tag + payload
    found = TaggedText.of(line)
    assert found is not None
    assert (found.before, found.payload, found.ranks, found.is_message) == (before, payload, ranks, True)
    assert without_message(line) == left


@pytest.mark.parametrize("line", [b"", b"ordinary", TAG[:-1]])
def test_ordinary_lines(line: bytes) -> None:
    """People read all of a line without a tag."""
    assert TaggedText.of(line) is None
    assert without_message(line) == line


@pytest.mark.parametrize("before", [b"said ", b"INFO:root:", b"x" * 300 + b": ", b"0: said "])
@pytest.mark.parametrize("after", [b" {}", b" {}\r"])
def test_tags_amid_text(before: bytes, after: bytes) -> None:
    """Programs learn what stands before a tag that does not count, and people read all of the line."""
    line = before + TAG + after
    found = TaggedText.of(line)
    assert found is not None
    assert (found.before, found.is_message) == (before, False)
    assert without_message(line) == line
