"""The parts of the files, and the log of those that are complete, by which a fetch goes on after a kill.

A line of the log is written after the bytes of its part, and holds their CRC-32. What the log names is compared with
the disk when the fetch goes on: a node that lost power may have kept the log and not the bytes.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from trainer_initializers.file_store import RemoteFile

PART_SIZE = 16 << 20
"""Bytes; larger parts make fewer requests, smaller ones lose less when a request is interrupted."""
_CHUNK = 1 << 20
_LINE_LIMIT = 1 << 10
"""Bytes of a line, several times those of the longest."""


@dataclass(frozen=True, slots=True)
class FilePart:
    """A range of a file."""

    start: int
    end: int | None
    """None where the size of the file is not known: to its end."""


def parts_of(file: RemoteFile) -> list[FilePart]:
    """The parts of a file: one where the server serves no ranges."""
    if file.size is None or not file.is_ranged or file.size <= PART_SIZE:
        return [FilePart(0, file.size)]
    return [FilePart(start, min(start + PART_SIZE, file.size)) for start in range(0, file.size, PART_SIZE)]


class PartLog:
    """Which parts are on the disk, kept over the end of the process; safe to use from several threads."""

    def __init__(self, opened: BinaryIO) -> None:
        """Take a file that is open for reading and appending."""
        opened.seek(0)
        self._parts, self._whole = _read(opened)
        self._lock = threading.Lock()
        self._file = opened
        if self._file.tell():
            self._file.write(b"\n")  # ends a line that a kill has cut

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def checksum(self, file: RemoteFile, part: FilePart) -> int | None:
        """The CRC-32 of a part that was complete; None when it was not."""
        return self._parts.get((_key(file), part.start))

    def size_when_whole(self, file: RemoteFile) -> int | None:
        """The size of a file that was complete and had the right digest; None when it was not."""
        return self._whole.get(_key(file))

    def add_part(self, file: RemoteFile, part: FilePart, checksum: int) -> None:
        """The bytes of a part are written."""
        self._append({"file": _key(file), "start": part.start, "crc32": checksum})

    def add_whole(self, file: RemoteFile, size: int) -> None:
        """All parts are written, and the digest is right."""
        self._append({"file": _key(file), "size": size})

    def drop(self, file: RemoteFile) -> None:
        """Forget the parts of a file, which is fetched again."""
        self._append({"file": _key(file), "drop": True})

    def _append(self, line: dict[str, object]) -> None:
        with self._lock:
            self._file.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")
            self._file.flush()


def checksum_of(opened: BinaryIO, part: FilePart) -> int | None:
    """The CRC-32 of a part on the disk; None when it is not all there."""
    left = os.fstat(opened.fileno()).st_size - part.start if part.end is None else part.end - part.start
    opened.seek(part.start)
    checksum = 0
    while left > 0 and (data := opened.read(min(_CHUNK, left))):
        checksum = zlib.crc32(data, checksum)
        left -= len(data)
    return None if left else checksum


def _key(file: RemoteFile) -> str:
    """What the file is known by in the log: another version of it is another file."""
    return hashlib.sha256(f"{file.path}\0{file.version}\0{file.size}".encode(errors="surrogatepass")).hexdigest()[:32]


def _read(opened: BinaryIO) -> tuple[dict[tuple[str, int], int], dict[str, int]]:
    parts: dict[tuple[str, int], int] = {}
    whole: dict[str, int] = {}
    for line in _lines(opened):
        match line:
            case {"file": str(key), "start": int(start), "crc32": int(checksum)}:
                parts[key, start] = checksum
            case {"file": str(key), "size": int(size)}:
                whole[key] = size
            case {"file": str(key), "drop": True}:
                parts = {known: checksum for known, checksum in parts.items() if known[0] != key}
                whole.pop(key, None)
    return parts, whole


def _lines(opened: BinaryIO) -> Iterator[object]:
    while text := opened.readline(_LINE_LIMIT):
        with contextlib.suppress(ValueError, RecursionError):  # a kill has cut the line
            yield json.loads(text)
