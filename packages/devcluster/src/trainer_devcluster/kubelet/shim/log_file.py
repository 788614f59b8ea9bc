"""Container log in the format of the Container Runtime Interface: `<RFC 3339 with nanoseconds> stdout F <line>`."""

from __future__ import annotations

import os
import time
from pathlib import Path

from .spec import DEFAULT_LOG_LIMITS, LogLimits

MAX_LINE = 16 * 1024
"""Longer lines are written in parts (tag P, the last part F), as containerd does. Bytes."""


def part(path: str, number: int) -> str:
    """Name of a file of a log; the first one has no number."""
    return f"{path}.{number}" if number else path


def format_timestamp(nanoseconds: int) -> str:
    """RFC 3339 in UTC with nine digits after the point."""
    seconds, fraction = divmod(nanoseconds, 1_000_000_000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{fraction:09}Z"


class ContainerLogWriter:
    """Appends what a container prints, standard output and error in one stream so that their order is kept.

    When the file has reached its limit, another is begun beside it: `<path>.1`, `<path>.2` and so on. That with the
    highest number grows, and the oldest is deleted when there are too many, so that no file changes its name while
    somebody reads it. Entries are whole; those of one line may be in two files.

    A line is written when it is complete or longer than `MAX_LINE`; what is left at the end has tag P, because its
    newline never came. Lines are bytes: no encoding is assumed.
    """

    def __init__(self, path: str, limits: LogLimits = DEFAULT_LOG_LIMITS) -> None:
        self._path = path
        self._limits = limits
        self._number = 0
        self._rest = b""
        self._open(path)

    def feed(self, data: bytes) -> None:
        """Take bytes as they come from the container.

        Raises:
            OSError: the file cannot be written, for example because the disk is full.
        """
        *lines, self._rest = (self._rest + data).split(b"\n")
        prefix = format_timestamp(time.time_ns()).encode() + b" stdout "
        entries: list[bytes] = []
        for line in lines:
            *parts, last = _split(line)
            entries += [prefix + b"P " + part + b"\n" for part in parts]
            entries.append(prefix + b"F " + last + b"\n")
        while len(self._rest) > MAX_LINE:
            entries.append(prefix + b"P " + self._rest[:MAX_LINE] + b"\n")
            self._rest = self._rest[MAX_LINE:]
        self._append(entries)

    def close(self) -> None:
        """Write what has no newline, and close the file."""
        try:
            if self._rest:
                prefix = format_timestamp(time.time_ns()).encode() + b" stdout P "
                self._append([prefix + self._rest + b"\n"])
        finally:
            os.close(self._descriptor)

    def _open(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o640)
        self._size = os.fstat(self._descriptor).st_size

    def _begin_next(self) -> None:
        os.close(self._descriptor)
        self._number += 1
        self._open(part(self._path, self._number))
        if self._number >= self._limits.max_files:
            Path(part(self._path, self._number - self._limits.max_files)).unlink(missing_ok=True)

    def _append(self, entries: list[bytes]) -> None:
        batch: list[bytes] = []
        for entry in entries:
            if self._size and self._size + len(entry) > self._limits.max_bytes:
                self._write(b"".join(batch))
                batch = []
                self._begin_next()
            batch.append(entry)
            self._size += len(entry)
        self._write(b"".join(batch))

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._descriptor, view) :]


def _split(line: bytes) -> list[bytes]:
    return [line[start : start + MAX_LINE] for start in range(0, len(line), MAX_LINE)] or [b""]
