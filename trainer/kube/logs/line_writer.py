"""Line writer: output that never makes its caller wait, however slowly it is read."""

from __future__ import annotations

import os
import select
import threading
from queue import SimpleQueue

from trainer.kube.logger import get_logger

log = get_logger(__name__)

LINES = 10_000
"""Lines that may wait to be written."""


class LineWriter:
    """A text stream into a file descriptor, written by a thread of its own.

    A container's stderr is a pipe: when its reader stalls, a direct write stalls the event loop, and with it the
    renewal of the leader's lease. Here lines wait instead, and those that find no room are dropped; how many is logged
    as soon as there is room again. What waits when the process is killed is lost.

    Args:
        fd: a file descriptor; stays open, and is used without a buffer whose lock could be held when Python exits.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        # Unlike a bounded queue it may be used while it is in use, as when a finalizer logs.
        self._lines: SimpleQueue[str | None] = SimpleQueue()
        self._dropped = 0
        self._thread = threading.Thread(target=self._run, name="line writer", daemon=True)
        self._thread.start()

    def write(self, text: str) -> None:
        """Have the text written soon; callers take turns, as handlers of `logging` do."""
        if self._lines.qsize() >= LINES:
            self._dropped += 1
        else:
            self._lines.put(text)

    def flush(self) -> None:
        """Do nothing: part of a stream's interface, but waiting is what this one avoids."""

    def close(self, timeout: float) -> None:
        """Write what waits, for at most so many seconds."""
        self._lines.put(None)
        self._thread.join(timeout)

    def _run(self) -> None:
        reported, closing = 0, False
        while not (closing and self._lines.empty()):
            text = self._lines.get()
            if text is None:
                closing = True
            else:
                self._write(text.encode(errors="backslashreplace"))
            dropped = self._dropped
            if dropped > reported and self._lines.empty():
                lost, reported = dropped - reported, dropped
                log.warning("dropped log lines that were not read in time", dropped=lost)

    def _write(self, data: bytes) -> None:
        try:
            while data:
                data = self._write_some(data)
        except OSError:
            # Nobody reads any more, and there is no other place to say so.
            return

    def _write_some(self, data: bytes) -> bytes:
        try:
            return data[os.write(self._fd, data) :]
        except BlockingIOError:
            # Another process that shares the pipe has made it non-blocking.
            select.select([], [self._fd], [])
            return data
