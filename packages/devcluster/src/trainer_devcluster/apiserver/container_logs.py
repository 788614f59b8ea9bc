"""Container logs on disk, in the CRI format: `<RFC 3339 time> <stdout|stderr> <F|P> <text>`, one entry per line.

The kubelet appends to the files of a log, and nobody rewrites them. A reader sees one text; a kubelet of Kubernetes
shows only the newest file. `P` marks a piece of a line that goes on in the next entry. Times are in UTC with nine
digits after the point, so that they are in order as text.

Entries become lines as a kubelet of Kubernetes makes them (ReadLogs in k8s.io/cri-client/pkg/logs), also where it
surprises: times and numbers of lines are those of entries, so that the first line may begin in its middle.

One thread looks for news of all logs that are followed: a thread and a timer of their own would cost each silent
container as much as a talkative one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

import anyio

from trainer.kube.clock import Clock
from trainer_devcluster.log_paths import log_file, log_files

CHUNK_BYTES = 256 * 1024
_TAIL_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class LogFilter:
    """The entries of a log to show, and how."""

    timestamps: bool = False
    """Whether each line begins with its time. A line has one time, also when it came in several entries; when `since`
    cuts it, none. Default: False."""
    since: datetime | None = None
    """Entries before this moment are left out. Default: None, all are shown."""
    tail_lines: int | None = None
    """How many entries to begin with. Default: None, from the beginning."""


class RunLogReader:
    """Reads the log of one run piece by piece; every method does blocking I/O."""

    def __init__(self, path: Path, log_filter: LogFilter) -> None:
        self._log = path
        self._timestamps = log_filter.timestamps
        self._since = b"" if log_filter.since is None else _stamp(log_filter.since)
        self._tail_lines = log_filter.tail_lines
        self._number: int | None = None
        self._offset = 0
        self._rest = b""
        self._inside_line = False

    def read(self) -> bytes:
        """The next piece of text, the first one from where the filter says; b"" when there is nothing new."""
        if self._number is None and not self._find_start():
            return b""
        while entries := self._entries():
            text = b"".join(self._shown(entries))
            if text:
                return text
        return b""

    def has_more(self) -> bool:
        """Whether the log has grown since it was read to its end; cheaper than reading."""
        if self._number is None:
            return bool(log_files(self._log))
        try:
            return log_file(self._log, self._number).stat().st_size > self._offset or self._has_next()
        except FileNotFoundError:
            return self._has_next()

    def _find_start(self) -> bool:
        """Go to the first entry to show; False if there is no log yet."""
        files = log_files(self._log)
        if not files:
            return False
        self._number, self._offset = min(files), 0
        if self._tail_lines is not None:
            self._number, self._offset = _start_of_tail(files, self._tail_lines)
        return True

    def _entries(self) -> list[bytes]:
        """Complete entries that follow, about a chunk of them; empty at the end of the log."""
        entries: list[bytes] = []
        while not entries and (content := self._content()):
            *entries, self._rest = (self._rest + content).split(b"\n")
        return entries

    def _content(self) -> bytes:
        while True:
            # Looked for first: a file is complete as soon as there is another.
            has_next = self._has_next()
            content = self._content_of_file()
            if content or not has_next:
                return content
            self._number, self._offset = self._next(), 0

    def _content_of_file(self) -> bytes:
        assert self._number is not None
        try:
            with log_file(self._log, self._number).open("rb") as file:
                file.seek(self._offset)
                content = file.read(CHUNK_BYTES)
        except FileNotFoundError:
            return b""
        self._offset += len(content)
        return content

    def _has_next(self) -> bool:
        assert self._number is not None
        if log_file(self._log, self._number + 1).exists():
            return True
        # A slow reader may be left behind by several files.
        return not log_file(self._log, self._number).exists() and self._next() > self._number

    def _next(self) -> int:
        assert self._number is not None
        return min((number for number in log_files(self._log) if number > self._number), default=self._number)

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


def _start_of_tail(files: dict[int, Path], count: int) -> tuple[int, int]:
    """The file of a log, and the offset in it, at which its last lines begin; searched from the end."""
    number, offset = max(files), 0
    for number in reversed(files):
        try:
            with files[number].open("rb") as file:
                offset, count = _start_of_last_lines(file, count)
        except FileNotFoundError:
            continue
        if count <= 0:
            break
    return number, offset


def _start_of_last_lines(file: BinaryIO, count: int) -> tuple[int, int]:
    """The offset at which the last complete lines begin, and how many of them are not in this file."""
    start = file.seek(0, os.SEEK_END)
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
            return start + position + 1, 0
        missing -= found
    # What precedes the first line of a file is the end of the file before it.
    return 0, missing - 1


POLL_INTERVAL = 0.1
"""Seconds between two looks."""


@dataclass(slots=True, eq=False)
class _Follower:
    reader: RunLogReader
    is_over: Callable[[], bool]
    text: bytes = b""
    awake: anyio.Event = field(default_factory=anyio.Event)


class LogGrowth:
    """Waits for text on behalf of all who follow a log."""

    def __init__(self) -> None:
        self._followers: set[_Follower] = set()
        self._arrival = anyio.Event()

    async def more(self, reader: RunLogReader, is_over: Callable[[], bool]) -> bytes:
        """The next text of a log file that has been read to its end.

        Args:
            reader: that of the file; nobody else may use it meanwhile.
            is_over: says, at each look, that nothing will be written any more.

        Returns:
            b"" if it is over, or if the caller had better read by itself to get the error.
        """
        follower = _Follower(reader, is_over)
        self._followers.add(follower)
        self._arrival.set()
        try:
            await follower.awake.wait()
        finally:
            self._followers.discard(follower)
        return follower.text

    async def run(self, clock: Clock) -> None:
        """Look at the files of those who wait, until cancelled."""
        while True:
            if not self._followers:
                self._arrival = anyio.Event()
                await self._arrival.wait()
            await clock.sleep(POLL_INTERVAL)
            for follower in await anyio.to_thread.run_sync(_with_news, list(self._followers)):
                follower.awake.set()
            for follower in self._followers:
                if follower.is_over():
                    follower.awake.set()


def _with_news(followers: Iterable[_Follower]) -> list[_Follower]:
    found = []
    for follower in followers:
        try:
            if follower.reader.has_more():
                follower.text = follower.reader.read()
        except OSError:
            found.append(follower)
        if follower.text:
            found.append(follower)
    return found
