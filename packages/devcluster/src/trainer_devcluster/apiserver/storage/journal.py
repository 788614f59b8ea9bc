"""The journal: writes every change to disk before any client sees it.

Changes that arrive while the disk is busy wait for it together and become one transaction of an SQLite database, so
that many writers cost hardly more than one. The database holds the recent changes and, of what is older, the last
change of every object that still exists. The rest is deleted whenever another `compact_bytes` have been written.

A journal that cannot be written stops the server: it could not keep the promise of any later answer.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import msgspec

from trainer.kube.client import EventType
from trainer.kube.objects import ObjectKey, resource_version_of
from trainer_devcluster.apiserver.storage.storage import Change, Partition, State, Storage

COMPACT_BYTES = 32 * 1024 * 1024
_FORMAT = 1
"""Format of the tables, kept as `user_version`; a change of the tables takes the next number."""
_LOCK_SECONDS = 5.0
"""The server keeps others out of its directory, so a lock is that of somebody who reads or copies the database: worth a
wait, while a failed write would stop the cluster."""

_TABLES = (
    "CREATE TABLE origin (revision INTEGER NOT NULL)",
    """
    CREATE TABLE changes (
        revision INTEGER PRIMARY KEY, type TEXT NOT NULL, resource_group TEXT NOT NULL, plural TEXT NOT NULL,
        namespace TEXT NOT NULL, name TEXT NOT NULL, object BLOB)
    """,
)
"""`origin` is the revision up to which changes have been deleted."""
_READ = "SELECT revision, type, resource_group, plural, namespace, name, object FROM changes ORDER BY revision"
_APPEND = "INSERT OR IGNORE INTO changes VALUES (?, ?, ?, ?, ?, ?, ?)"
_FORGET = """
DELETE FROM changes WHERE revision <= :origin AND (type = 'DELETED' OR revision NOT IN (
    SELECT max(revision) FROM changes WHERE revision <= :origin GROUP BY resource_group, plural, namespace, name))
"""

_Pending = list[tuple[Partition, "Change", bytes]]
_Row = tuple[int, str, str, str, str, str, bytes | None]


class Journal:
    """Keeps the changes of a storage; `run` does the work."""

    def __init__(
        self, database: Database, storage: Storage, recent_bytes: int, *, compact_bytes: int = COMPACT_BYTES
    ) -> None:
        self._database = database
        self._storage = storage
        self._compact_bytes = compact_bytes
        self._origin = storage.revision
        self._bytes_since_compaction = recent_bytes
        self._pending: _Pending = []
        self._arrival = anyio.Event()
        # Other threads can be busy for long, and this one serves everybody; the database takes one at a time.
        self._thread = anyio.CapacityLimiter(1)

    @classmethod
    def open(cls, path: Path, storage: Storage, first_revision: int, *, compact_bytes: int = COMPACT_BYTES) -> Journal:
        """Fill a storage with what a database holds, and write its changes there from now on; blocks.

        Args:
            path: the file, made when missing.
            storage: empty.
            first_revision: the resource version to start from in a new file.
            compact_bytes: size of the changes after which older ones are deleted.

        Raises:
            OSError: the file cannot be used, or is damaged.
        """
        database = Database(path)
        recent_bytes = database.load(storage, first_revision)
        journal = cls(database, storage, recent_bytes, compact_bytes=compact_bytes)
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
            while True:
                await self._arrival.wait()
                await self._write_pending()
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await self._write_pending()
            raise
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self._database.close, limiter=self._thread)

    async def _write_pending(self) -> None:
        pending, self._arrival = list(self._pending), anyio.Event()
        if not pending:
            return
        origin = None
        if self._bytes_since_compaction >= self._compact_bytes:
            # Watches go on after a restart: the changes since the last compaction stay.
            origin, self._origin = self._origin, self._storage.published_revision
            self._bytes_since_compaction = 0
        await anyio.to_thread.run_sync(self._database.write, pending, origin, limiter=self._thread)
        self._bytes_since_compaction += sum(len(encoded) for _, _, encoded in pending)
        del self._pending[: len(pending)]
        self._storage.publish(pending[-1][1].revision)


class Database:
    """The file; every method blocks and may raise OSError."""

    def __init__(self, path: Path) -> None:
        """Open a database, readable by its owner only, which is made when missing."""
        self.path = path
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        self._connection = sqlite3.connect(path, timeout=_LOCK_SECONDS, check_same_thread=False)

    def load(self, storage: Storage, first_revision: int) -> int:
        """Fill an empty storage with what is here; returns the size of the changes since the last compaction.

        Args:
            storage: empty.
            first_revision: the resource version to start from when nothing is here.
        """
        try:
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = FULL")
            if not self._connection.execute("SELECT name FROM sqlite_master").fetchall():
                with self._connection:
                    self._create(first_revision)
            self._check_format()
            [(origin,)] = self._connection.execute("SELECT revision FROM origin")
            return self._replay(storage, origin, self._connection.execute(_READ))
        except (sqlite3.Error, ValueError, KeyError) as error:
            self._connection.close()
            raise self._unusable(error) from error

    def revision(self) -> int | None:
        """The resource version of the last change; None where nothing was ever kept here."""
        try:
            if not self._connection.execute("SELECT name FROM sqlite_master").fetchall():
                return None
            self._check_format()
            [(found,)] = self._connection.execute(
                "SELECT max(revision) FROM (SELECT revision FROM origin UNION ALL SELECT revision FROM changes)"
            )
        except (sqlite3.Error, ValueError) as error:
            raise self._unusable(error) from error
        return int(found)

    def fill(self, state: State, revision: int) -> None:
        """Keep the objects at a revision in a new file."""
        changes = (
            (
                partition,
                Change(int(resource_version_of(obj)), EventType.ADDED, key, obj, None),
                msgspec.json.encode(obj),
            )
            for partition, items in state.items()
            for key, obj in items.items()
        )
        with self._writing():
            self._create(revision)
            self._connection.executemany(_APPEND, (_row(*change) for change in changes))

    def write(self, pending: _Pending, origin: int | None) -> None:
        """Write changes; they are on the disk on return.

        Args:
            pending: the changes.
            origin: if given, changes up to this revision are deleted, except for the last one of every object.
        """
        rows = [_row(*item) for item in pending]
        with self._writing():
            self._connection.executemany(_APPEND, rows)
            if origin is not None:
                self._connection.execute(_FORGET, {"origin": origin})
                self._connection.execute("UPDATE origin SET revision = ?", (origin,))

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _create(self, revision: int) -> None:
        self._connection.execute("BEGIN")
        for statement in _TABLES:
            self._connection.execute(statement)
        self._connection.execute("INSERT INTO origin VALUES (?)", (revision,))
        self._connection.execute(f"PRAGMA user_version = {_FORMAT}")

    def _unusable(self, problem: Exception) -> OSError:
        remedy = f"if it is damaged, put a copy back, or move {self.path} away to start with an empty cluster"
        return OSError(errno.EINVAL, f"cannot be used ({problem}): {remedy}", str(self.path))

    def _check_format(self) -> None:
        [(found,)] = self._connection.execute("PRAGMA user_version")
        if found != _FORMAT:
            raise ValueError(f"its format is {found}, this dev cluster reads {_FORMAT}: use the one that wrote it")

    @staticmethod
    def _replay(storage: Storage, origin: int, rows: Iterable[_Row]) -> int:
        state: State = {}
        recent = []
        for row in rows:
            if row[0] > origin:
                recent.append(row)
                continue
            _, _, *resource, namespace, name, encoded = row
            state.setdefault(Partition(*resource), {})[ObjectKey(namespace, name)] = msgspec.json.decode(encoded or b"")
        storage.restore(state, origin)
        for revision, kind, group, plural, namespace, name, encoded in recent:
            if revision != storage.revision + 1:
                raise ValueError(f"the changes between resource versions {storage.revision} and {revision} are missing")
            obj = None if encoded is None else msgspec.json.decode(encoded)
            key, size = ObjectKey(namespace, name), len(encoded or b"")
            storage.replay(Partition(group, plural), EventType(kind), key, obj, size)
        return sum(len(row[-1] or b"") for row in recent)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            with self._connection:
                yield
        except sqlite3.Error as error:
            raise OSError(errno.EIO, f"cannot be written: {error}", str(self.path)) from error


def _row(partition: Partition, change: Change, encoded: bytes) -> _Row:
    obj = None if change.type is EventType.DELETED else encoded
    return change.revision, change.type, *partition, change.key.namespace, change.key.name, obj
