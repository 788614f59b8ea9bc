"""Checksummed lines: the form of the files in which objects outlive the process.

A line is the CRC-32 of a JSON document, in hexadecimal, a space and the document. What was written while the power
went away is a line that does not fit its checksum with nothing intact behind it; a damaged line with intact ones behind
it was good once.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_PREFIX = 9


@dataclass(frozen=True, slots=True)
class Lines:
    """What can be read of a file."""

    documents: list[bytes]
    intact_bytes: int
    """Length of the intact lines from the start of the file."""
    damaged_line: int | None = None
    """Number, from 1 on, of the first line that is damaged; None when all are intact."""
    is_torn: bool = False
    """Whether nothing behind the damage is intact."""


def line(document: bytes) -> bytes:
    """A document, which has no line break in it, as a line."""
    return b"%08x %s\n" % (zlib.crc32(document), document)


def read_lines(content: bytes) -> Lines:
    """The documents of all lines up to the first damaged one."""
    documents: list[bytes] = []
    intact = 0
    for number, text in enumerate(_split(content), 1):
        document = _document(text)
        if document is None:
            rest = _split(content[intact + len(text) :])
            return Lines(documents, intact, number, is_torn=all(_document(other) is None for other in rest))
        documents.append(document)
        intact += len(text)
    return Lines(documents, intact)


def _split(content: bytes) -> Iterator[bytes]:
    start = 0
    while start < len(content):
        end = content.find(b"\n", start) + 1 or len(content)
        yield content[start:end]
        start = end


def _document(text: bytes) -> bytes | None:
    if not text.endswith(b"\n") or text[_PREFIX - 1 : _PREFIX] != b" ":
        return None
    document = text[_PREFIX:-1]
    return document if text[: _PREFIX - 1] == b"%08x" % zlib.crc32(document) else None
