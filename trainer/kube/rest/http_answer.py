"""HTTP/1.1 answers (RFC 9112) from bytes that come in any pieces: the head, and what of the rest is the body."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from multidict import CIMultiDict, CIMultiDictProxy

if TYPE_CHECKING:
    from typing import Protocol

    class Body(Protocol):
        """Finds the body in what follows a head."""

        @property
        def is_complete(self) -> bool:
            """Whether the answer has ended."""

        def feed(self, data: bytes | memoryview) -> bytes:
            """The part of the body in the next piece; may be empty."""

        def end(self) -> None:
            """The connection has ended.

            Raises:
                MalformedAnswerError: too early.
            """


HEAD_LIMIT = 64 * 1024
LINE_LIMIT = 8 * 1024
"""Bytes of a line between chunks: a size in hexadecimal, or a trailer."""

_END = b"\r\n"
_LENGTH = re.compile("[0-9]{1,18}")


class MalformedAnswerError(ValueError):
    """The answer is not HTTP/1.1, or ends early."""


class Head(NamedTuple):
    """What precedes the body."""

    status: int
    headers: CIMultiDictProxy[str]

    def body(self) -> Body:
        """What finds the body of this answer; the rules of RFC 9112, section 6.3.

        Raises:
            MalformedAnswerError: the headers contradict each other, or the coding is unknown.
        """
        if self.status in {204, 304}:
            return SizedBody(0)
        codings = ",".join(self.headers.getall("Transfer-Encoding", ()))
        if codings:
            if codings.strip().lower() != "chunked":
                raise MalformedAnswerError(f"Transfer-Encoding {codings!r} is not supported: only chunked is")
            return ChunkedBody()
        lengths = set(self.headers.getall("Content-Length", ()))
        if not lengths:
            return SizedBody(None)
        length = lengths.pop()
        if lengths or not _LENGTH.fullmatch(length):
            raise MalformedAnswerError(f"Content-Length {', '.join({length, *lengths})!r} is no number")
        return SizedBody(int(length))


def parse_head(received: bytes) -> tuple[Head, bytes] | None:
    """The head and what follows it; None as long as it is not complete. Interim answers (1xx) are left out.

    Raises:
        MalformedAnswerError: this is no HTTP, or too long.
    """
    while True:
        text, separator, rest = received.partition(_END + _END)
        if len(text) > HEAD_LIMIT:
            raise MalformedAnswerError(f"the head of the answer is longer than {HEAD_LIMIT} bytes")
        if not separator:
            if not received.startswith(b"HTTP/"[: len(received)]):
                raise MalformedAnswerError(f"the answer begins with {received[:40]!r}, which is no HTTP")
            return None
        first, *lines = text.decode("latin-1").split("\r\n")
        version, _, status = first.partition(" ")
        code = status[:3]
        if not version.startswith("HTTP/1.") or not (code.isascii() and code.isdigit()):
            raise MalformedAnswerError(f"the answer begins with {first[:40]!r}, which is no HTTP/1.1")
        if int(code) >= 200:
            return Head(int(code), CIMultiDictProxy(_headers(lines))), rest
        received = rest


def _headers(lines: list[str]) -> CIMultiDict[str]:
    headers = CIMultiDict[str]()
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            raise MalformedAnswerError(f"the answer has the header line {line[:80]!r}")
        headers.add(name, value.strip())
    return headers


class SizedBody:
    """A body of known length, or one that ends with the connection."""

    __slots__ = ("_left",)

    def __init__(self, length: int | None) -> None:
        self._left = length

    @property
    def is_complete(self) -> bool:
        """Whether all of it has come."""
        return self._left == 0

    def feed(self, data: bytes | memoryview) -> bytes:
        """The part of the body in the next piece."""
        if self._left is None:
            return bytes(data)
        part = bytes(data[: self._left])
        self._left -= len(part)
        return part

    def end(self) -> None:
        """The connection has ended."""
        if self._left:
            raise MalformedAnswerError(f"the connection ended {self._left} bytes before the end of the answer")


class ChunkedBody:
    """A body in chunks, each with its size before it (RFC 9112, section 7.1); trailers are left out.

    Servers that forward a log send each line as a chunk. A chunk that lies in one piece takes one turn of the loop.
    """

    __slots__ = ("_in_trailers", "_left", "_line", "is_complete")

    def __init__(self) -> None:
        self.is_complete = False
        """Whether the last chunk has come."""
        self._left = 0
        """Bytes of the present chunk that have not come, those of the line end after it included."""
        self._line = b""
        """Beginning of a line between chunks."""
        self._in_trailers = False

    def feed(self, data: bytes | memoryview) -> bytes:
        """The part of the body in the next piece.

        Raises:
            MalformedAnswerError: these are no chunks.
        """
        piece = bytes(data)
        parts: list[bytes] = []
        position, end = 0, len(piece)
        while position < end and not self.is_complete:
            if self._left:
                position = self._take(piece, position, parts)
                continue
            eol = piece.find(b"\n", position)
            if eol < 0:
                self._keep(piece[position:])
                break
            line = piece[position:eol]
            if self._line:
                line, self._line = self._line + line, b""
            position = eol + 1
            if self._in_trailers:
                self.is_complete = not line.strip()
                continue
            try:
                size = int(line, 16)
            except ValueError:
                size = _extended_size(line)
            if size > 0:
                last = position + size
                if piece.startswith(_END, last):
                    parts.append(piece[position:last])
                    position = last + 2
                else:
                    self._left = size + 2
            elif size == 0:
                self._in_trailers = True
            else:
                raise _no_size(line)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def end(self) -> None:
        """The connection has ended."""
        if not self.is_complete:
            raise MalformedAnswerError("the connection ended before the last chunk of the answer")

    def _take(self, piece: bytes, position: int, parts: list[bytes]) -> int:
        """Take the rest of a chunk, or what of it is there; return the position after it."""
        last = position + self._left
        end_of_data = max(last - 2, position)
        part, tail = piece[position:end_of_data], piece[end_of_data:last]
        if part:
            parts.append(part)
        self._left -= len(part) + len(tail)
        if tail != _END[2 - self._left - len(tail) : 2 - self._left]:
            raise MalformedAnswerError("a chunk of the answer is longer than its size says")
        return min(last, len(piece))

    def _keep(self, beginning: bytes) -> None:
        self._line += beginning
        if len(self._line) > LINE_LIMIT:
            raise MalformedAnswerError(f"the answer has a line between chunks of more than {LINE_LIMIT} bytes")


def _extended_size(line: bytes) -> int:
    """A chunk's size where an extension follows, which means nothing."""
    try:
        return int(line.partition(b";")[0], 16)
    except ValueError:
        raise _no_size(line) from None


def _no_size(line: bytes) -> MalformedAnswerError:
    return MalformedAnswerError(f"the answer has {line[:40]!r} where the size of a chunk should be")
