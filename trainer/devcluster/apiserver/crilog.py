"""Container logs on disk, in the CRI format: `<RFC 3339 time> <stdout|stderr> <F|P> <text>`, one entry per line.

A file belongs to one run of one container: `<data dir>/pods/<pod uid>/<container>/<restart count>.log`. The kubelet
appends to it and nobody rewrites it. `P` marks a piece of a line that goes on in the next entry. Times are in UTC with
nine digits after the point, so that they are in order as text.

Entries become lines as a kubelet of Kubernetes makes them (ReadLogs in k8s.io/cri-client/pkg/logs), also where it
surprises: times and numbers of lines are those of entries, so that the first line may begin in its middle.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC
from os import SEEK_END
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from pathlib import Path

CHUNK_BYTES = 256 * 1024
_TAIL_BYTES = 64 * 1024


def log_path(data_dir: Path, pod_uid: str, container: str, restart_count: int) -> Path:
    """Where the log of one run of a container is."""
    return data_dir / "pods" / pod_uid / container / f"{restart_count}.log"


@dataclass(frozen=True, slots=True)
class LogFilter:
    """Which entries to show, and how."""

    timestamps: bool = False
    """Whether each line begins with its time. A line has one time, also when it came in several entries; when `since`
    cuts it, none. Default: False."""
    since: datetime | None = None
    """Entries before this moment are left out. Default: None, all are shown."""
    tail_lines: int | None = None
    """How many entries to begin with. Default: None, from the beginning."""


class LogReader:
    """Reads one log file piece by piece; every method does blocking I/O."""

    def __init__(self, path: Path, log_filter: LogFilter) -> None:
        self._path = path
        self._timestamps = log_filter.timestamps
        self._since = b"" if log_filter.since is None else _stamp(log_filter.since)
        self._tail_lines = log_filter.tail_lines
        self._offset = 0
        self._rest = b""
        self._inside_line = False

    def read(self) -> bytes:
        """The next piece of text, the first one from where the filter says; b"" when there is nothing new."""
        if self._tail_lines is not None:
            self._offset = self._start_of_last_lines(self._tail_lines)
            self._tail_lines = None
        while entries := self._entries():
            text = b"".join(self._shown(entries))
            if text:
                return text
        return b""

    def has_more(self) -> bool:
        """Whether the file has grown since it was read to its end; cheaper than reading."""
        try:
            return self._path.stat().st_size > self._offset
        except FileNotFoundError:
            return False

    def _entries(self) -> list[bytes]:
        """Complete entries that follow, about a chunk of them; empty at the end of the file."""
        entries: list[bytes] = []
        while not entries and (content := self._content()):
            *entries, self._rest = (self._rest + content).split(b"\n")
        return entries

    def _content(self) -> bytes:
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                content = file.read(CHUNK_BYTES)
        except FileNotFoundError:
            return b""
        self._offset += len(content)
        return content

    def _start_of_last_lines(self, count: int) -> int:
        """The offset at which the last complete lines begin, found from the end of the file."""
        try:
            with self._path.open("rb") as file:
                return _start_of_last_lines(file, count)
        except FileNotFoundError:
            return 0

    def _shown(self, entries: Iterable[bytes]) -> Iterable[bytes]:
        for entry in entries:
            try:
                stamp, _, tag, text = entry.split(b" ", 3)
            except ValueError:  # an entry that was cut when the disk was full
                continue
            begins_line, self._inside_line = not self._inside_line, tag.startswith(b"P")
            if stamp < self._since:
                continue
            if self._timestamps and begins_line:
                text = stamp + b" " + text
            yield text if self._inside_line else text + b"\n"


def _stamp(moment: datetime) -> bytes:
    """The moment as text that sorts before or after times in the file as it does itself."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f").encode()


def _start_of_last_lines(file: BinaryIO, count: int) -> int:
    start = file.seek(0, SEEK_END)
    missing = count + 1  # the newline before those lines as well
    while start > 0:
        length = min(_TAIL_BYTES, start)
        start -= length
        file.seek(start)
        block = file.read(length)
        found = block.count(b"\n")
        if found >= missing:
            position = len(block)
            for _ in range(missing):
                position = block.rfind(b"\n", 0, position)
            return start + position + 1
        missing -= found
    return 0
