"""Container logs on disk, in the CRI format: `<RFC 3339 time> <stdout|stderr> <F|P> <text>`, one entry per line.

A file belongs to one run of one container: `<data dir>/pods/<pod uid>/<container>/<restart count>.log`. The kubelet
appends to it and nobody rewrites it. `P` marks a piece of a line that goes on in the next entry.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainer.kube.clock import parse_timestamp

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from pathlib import Path

CHUNK_BYTES = 256 * 1024


def log_path(data_dir: Path, pod_uid: str, container: str, restart_count: int) -> Path:
    """Where the log of one run of a container is."""
    return data_dir / "pods" / pod_uid / container / f"{restart_count}.log"


@dataclass(frozen=True, slots=True)
class LogFilter:
    """Which entries to show, and how."""

    timestamps: bool = False
    since: datetime | None = None
    """Entries before this moment are left out."""
    tail_lines: int | None = None


class LogReader:
    """Reads one log file piece by piece; every method does blocking I/O."""

    def __init__(self, path: Path, log_filter: LogFilter) -> None:
        self._path = path
        self._filter = log_filter
        self._offset = 0
        self._rest = b""
        self._inside_line = False

    def start(self) -> bytes:
        """The text up to the present end of the file, cut to the last lines if so asked; b"" without a file."""
        if self._filter.tail_lines is None:
            return self.read()
        lines: deque[bytes] = deque(maxlen=self._filter.tail_lines)
        while entries := self._entries():
            for text in self._shown(entries):
                if lines and not lines[-1].endswith(b"\n"):
                    lines[-1] += text
                else:
                    lines.append(text)
        return b"".join(lines)

    def read(self) -> bytes:
        """The next piece of text; b"" when there is nothing new."""
        while entries := self._entries():
            text = b"".join(self._shown(entries))
            if text:
                return text
        return b""

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

    def _shown(self, entries: Iterable[bytes]) -> Iterable[bytes]:
        for entry in entries:
            stamp, _, rest = entry.partition(b" ")
            _, _, rest = rest.partition(b" ")
            tag, _, text = rest.partition(b" ")
            if self._filter.since is not None and _is_before(stamp, self._filter.since):
                continue
            if self._filter.timestamps and not self._inside_line:
                text = stamp + b" " + text
            self._inside_line = tag.startswith(b"P")
            yield text if self._inside_line else text + b"\n"


def _is_before(stamp: bytes, moment: datetime) -> bool:
    try:
        return parse_timestamp(stamp.decode()) < moment
    except ValueError:
        return False
