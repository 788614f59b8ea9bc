"""The journal: writes every change to disk before any client sees it.

Changes that arrive while the disk is busy wait for it together and are written as one line with one sync, so that many
writers cost hardly more than one. When the segments have grown as large as the snapshot that they continue, and larger
than `compact_bytes`, the state is written as a new snapshot beside the running server and older files are deleted: the
disk holds at most two snapshots and two rounds of changes.

A journal that cannot be written stops the server: it could not keep the promise of any later answer.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import anyio
import msgspec
import structlog

from trainer.kube.client import EventType
from trainer_devcluster.apiserver.storage.journal_directory import Batch, Entry, JournalDirectory

if TYPE_CHECKING:
    from pathlib import Path

    from anyio.abc import TaskGroup

    from trainer_devcluster.apiserver.storage.journal_directory import Loaded
    from trainer_devcluster.apiserver.storage.storage import Change, Partition, State, Storage

log = structlog.get_logger(__name__)

COMPACT_BYTES = 32 * 1024 * 1024

_Pending = list[tuple["Partition", "Change", bytes]]


class Journal:
    """Keeps the changes of a storage; `run` does the work."""

    def __init__(
        self, directory: JournalDirectory, storage: Storage, loaded: Loaded, *, compact_bytes: int = COMPACT_BYTES
    ) -> None:
        self._directory = directory
        self._storage = storage
        self._segments = _Segments(directory, loaded, storage.revision)
        self._snapshot_bytes = loaded.snapshot_bytes
        self._compact_bytes = compact_bytes
        self._compacting = False
        self._pending: _Pending = []
        self._arrival = anyio.Event()
        # Other threads can be busy for long, and this one serves everybody.
        self._thread = anyio.CapacityLimiter(1)

    @classmethod
    def open(cls, path: Path, storage: Storage, first_revision: int, *, compact_bytes: int = COMPACT_BYTES) -> Journal:
        """Fill a storage with what a directory holds, and write its changes there from now on; blocks.

        Args:
            path: the directory, made when missing.
            storage: empty.
            first_revision: the resource version to start from in a new directory.
            compact_bytes: size of changes from which on a new snapshot takes their place.

        Raises:
            OSError: the directory cannot be used, or a file in it is damaged.
        """
        directory = JournalDirectory(path)
        journal = cls(directory, storage, directory.load(storage, first_revision), compact_bytes=compact_bytes)
        storage.write_to(journal)
        return journal

    def append(self, partition: Partition, change: Change, encoded: bytes) -> None:
        """Write a change as soon as the disk is free."""
        self._pending.append((partition, change, encoded))
        self._arrival.set()

    async def run(self) -> None:
        """Write until cancelled, and then what is left.

        Raises:
            OSError: the disk is full or broken.
        """
        try:
            async with anyio.create_task_group() as tasks:
                while True:
                    await self._arrival.wait()
                    await self._write_pending()
                    if self._is_due:
                        await self._start_compaction(tasks)
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await self._write_pending()
            raise
        finally:
            self._segments.close()

    @property
    def _is_due(self) -> bool:
        return not self._compacting and self._segments.size >= max(self._compact_bytes, self._snapshot_bytes)

    async def _write_pending(self) -> None:
        pending, self._arrival = list(self._pending), anyio.Event()
        if pending:
            await anyio.to_thread.run_sync(self._segments.write, pending, limiter=self._thread)
            self._settle(pending)

    async def _start_compaction(self, tasks: TaskGroup) -> None:
        """Begin a new segment, and have the state before it written as a snapshot."""
        pending, state, revision = list(self._pending), self._storage.state(), self._storage.revision
        await anyio.to_thread.run_sync(self._segments.rotate, pending, revision, limiter=self._thread)
        self._settle(pending)
        self._compacting = True
        tasks.start_soon(self._compact, state, revision)

    async def _compact(self, state: State, revision: int) -> None:
        self._snapshot_bytes = await anyio.to_thread.run_sync(self._directory.write_snapshot, state, revision)
        await anyio.to_thread.run_sync(self._directory.forget_before, revision)
        self._segments.forget_older()
        self._compacting = False
        log.debug("compacted the journal", revision=revision, snapshot_bytes=self._snapshot_bytes)

    def _settle(self, written: _Pending) -> None:
        if written:
            del self._pending[: len(written)]
            self._storage.publish(written[-1][1].revision)


class _Segments:
    """The segment that is written to, and how much is in those before it.

    What is pending stays pending until the loop knows that it is written, so that a cancellation at any moment loses
    nothing; therefore a change may come twice and is written once.
    """

    def __init__(self, directory: JournalDirectory, loaded: Loaded, revision: int) -> None:
        self._directory = directory
        self._current = loaded.segment
        self._older_bytes = max(loaded.journal_bytes - loaded.segment.size, 0)
        self._written = revision
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """Bytes of all segments behind the snapshot."""
        return self._older_bytes + self._current.size

    def write(self, pending: _Pending) -> None:
        """Write changes; they are on the disk on return."""
        with self._lock:
            new = [item for item in pending if item[1].revision > self._written]
            if new:
                batch = Batch(new[0][1].revision, [_entry(*item) for item in new])
                self._current.append(msgspec.json.encode(batch))
                self._current.sync()
                self._written = new[-1][1].revision

    def rotate(self, pending: _Pending, revision: int) -> None:
        """Write the changes up to a revision, and begin a new segment."""
        self.write(pending)
        with self._lock:
            old, self._current = self._current, self._directory.segment(revision)
            self._older_bytes += old.size
            old.close()

    def forget_older(self) -> None:
        """The segments before this one are gone."""
        self._older_bytes = 0

    def close(self) -> None:
        """Close the segment."""
        with self._lock:
            self._current.close()


def _entry(partition: Partition, change: Change, encoded: bytes) -> Entry:
    obj = None if change.type is EventType.DELETED else msgspec.Raw(encoded)
    return Entry(partition.group, partition.plural, change.key.name, change.key.namespace, change.type, obj)
