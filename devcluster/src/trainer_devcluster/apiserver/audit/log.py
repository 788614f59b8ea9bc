"""The audit log file: one event per line, appended beside the event loop."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import anyio
import msgspec
import structlog

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from trainer.kube.objects import Object

log = structlog.get_logger(__name__)

PENDING_EVENTS: Final = 10_000
"""So many events wait for the disk; further requests wait for room, so that none is lost and memory stays bounded."""


class AuditLog:
    """Writes events to a file; `run` does the work."""

    def __init__(self, path: Path, descriptor: int, *, limit: int = PENDING_EVENTS) -> None:
        self._path = path
        self._descriptor = descriptor
        self._limit = limit
        self._pending: list[bytes] = []
        self._arrival = anyio.Event()
        self._taken = anyio.Event()
        # Other threads can be busy for long.
        self._thread = anyio.CapacityLimiter(1)

    @classmethod
    @contextmanager
    def opened(cls, path: Path, *, limit: int = PENDING_EVENTS) -> Iterator[AuditLog]:
        """A log that appends to a file, readable by its owner only, made when missing; blocks.

        Several servers may share the file: lines are written whole.

        Args:
            path: of the file.
            limit: how many events wait for the disk before requests do.

        Raises:
            OSError: the file cannot be opened.
        """
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            yield cls(path, descriptor, limit=limit)
        finally:
            os.close(descriptor)

    async def wait_for_room(self) -> None:
        """Wait until fewer than the limit are pending."""
        while len(self._pending) >= self._limit:
            await self._taken.wait()

    def add(self, event: Object) -> None:
        """Write an event as soon as the disk is free; never waits, so that cancelled requests are logged too."""
        self._pending.append(msgspec.json.encode(event) + b"\n")
        self._arrival.set()

    async def run(self) -> None:
        """Write until cancelled, and then what is left."""
        try:
            while True:
                await self._arrival.wait()
                await self._write_pending()
        finally:
            with anyio.CancelScope(shield=True):
                await self._write_pending()

    async def _write_pending(self) -> None:
        lines, self._pending, self._arrival = self._pending, [], anyio.Event()
        taken, self._taken = self._taken, anyio.Event()
        taken.set()
        if not lines:
            return
        # A write that has begun is written to its end, or a line would be there by half and again in full.
        with anyio.CancelScope(shield=True):
            try:
                await anyio.to_thread.run_sync(self._write, b"".join(lines), limiter=self._thread)
            except OSError:
                # Like the real server, which goes on: the cluster is worth more than its log.
                log.exception("could not write to the audit log", path=str(self._path), lost=len(lines))

    def _write(self, text: bytes) -> None:
        rest = memoryview(text)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]
