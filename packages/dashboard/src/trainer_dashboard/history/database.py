"""The database of the history: SQLite in a file of the user, or PostgreSQL by its URL."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import logging
import os
import sqlite3
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from anyio import Semaphore
from anyio.to_thread import run_sync
from sqlalchemy import Connection, Engine, create_engine, event, inspect, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, InterfaceError, InternalError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.pool import QueuePool

from trainer.kube.errors import ConfigurationError
from trainer_dashboard.history.database_file import DatabaseFile, mark
from trainer_dashboard.history.errors import HistoryError, LostFileError, RefusedError, TakenOverError
from trainer_dashboard.history.recording_right import RecordingRight
from trainer_dashboard.history.schema import HEAD, number, oldest_user

_T = TypeVar("_T")

_LOCK_WAIT = 30_000
"""Milliseconds for which a writer waits for another one."""
_CONNECTIONS = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
"""Options of libpq, in seconds and the last one in milliseconds: a server that is gone without a word is given up after
a minute, and not after the hours of the operating system. The URL may have others."""
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_MIGRATION_LOCK = 0x7472_0001
"""Key of an advisory lock in PostgreSQL; recorders have another one."""
_DRIVERS = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg", "postgresql+psycopg": "postgresql+psycopg"}


class Database:
    """Transactions on one database, each in a thread of its own.

    A synchronous driver in a thread serves SQLite, PostgreSQL and Alembic alike, and takes one change of threads for a
    transaction instead of one for each statement. Connections are kept until `close`, or until nothing refers to it.

    Args:
        url: `sqlite:///FILE`, or `postgresql://USER@HOST/NAME`.

    Raises:
        ConfigurationError: the URL is malformed, or of another kind of database.
    """

    def __init__(self, url: str) -> None:
        self._url = _parsed(url)
        self.is_sqlite = self._url.drivername == "sqlite"
        # Writers of SQLite wait for each other anyway.
        self._turns = Semaphore(1 if self.is_sqlite else 4)
        self._engine = self._create_engine()
        weakref.finalize(self, self._engine.dispose)
        self._right: RecordingRight | None = None
        self._recorded: DatabaseFile | None = None

    @property
    def name(self) -> str:
        """The URL without what may be secret: its password, and all options, since some are secrets."""
        return self._url.set(query={}).render_as_string(hide_password=True)

    @property
    def file(self) -> Path | None:
        """The file of SQLite."""
        return Path(self._url.database or "") if self.is_sqlite else None

    async def run(self, transaction: Callable[[Connection], _T]) -> _T:
        """Call a function with a connection, and commit; nothing is changed when it raises.

        Raises:
            TakenOverError: the right to record was lost, and another process has it.
            LostFileError: the file is damaged, or no longer the one that is recorded to.
            HistoryError: the database refuses, or cannot be reached.
        """
        async with self._turns:
            return await run_sync(self.write, transaction)

    def write(self, transaction: Callable[[Connection], _T]) -> _T:
        """The same for callers without an event loop; blocks."""
        if self._recorded is not None and self._recorded.is_another:
            raise self._lost("was deleted, replaced or overwritten while it was recorded to")
        with self._errors(), self._engine.begin() as connection:
            if self._right is not None and not self._right.verify(connection):
                raise TakenOverError(f"{self.name}: another `trainer history record` has taken over this cluster")
            return transaction(connection)

    def read(self, query: Callable[[Connection], _T]) -> _T:
        """Call a function that changes nothing, which waits for no writer; blocks.

        Raises:
            HistoryError: the database refuses, or cannot be reached.
        """
        with self._errors(), self._engine.connect().execution_options(reads=True) as connection:
            return query(connection)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (InterfaceError, InternalError, OperationalError, PoolTimeoutError) as error:
            # InternalError is how psycopg says that a server is read-only, as after a failover.
            raise HistoryError(f"{self.name}: {_reason(error)}") from error
        except SQLAlchemyError as error:
            if getattr(getattr(error, "orig", None), "sqlite_errorcode", None) in _DAMAGED:
                raise self._lost(f"cannot be used: {_reason(error)}") from error
            raise RefusedError(f"{self.name}: {_reason(error)}") from error

    def _lost(self, what: str) -> LostFileError:
        remedy = f"put a backup in its place, or move it and {self.file}-wal away, and start the recorder again"
        return LostFileError(f"{self.file} {what}; {remedy}")

    def migrate(self) -> None:
        """Bring the tables to the present version, and make the database of SQLite; blocks.

        Raises:
            HistoryError: that is not possible, such as with a database of a newer version.
        """
        if self.file is not None:
            self._make_file(self.file)
        self.write(self._upgrade)

    def check(self) -> None:
        """See that there is a database of the present version, or of a later one that this one may use; blocks.

        Raises:
            HistoryError: there is none.
        """
        if self.file is not None and not self.file.is_file():
            raise HistoryError(f"there is no history in {self.file}: `trainer history record` writes it")
        found = self.read(_version)
        if found is None:
            raise HistoryError(f"{self.name} has no history: `trainer history record` writes it")
        self._check_version(found)
        if found < HEAD:
            raise HistoryError(f"{self.name} is of an older version: `trainer history record` brings it up to date")

    @contextmanager
    def recording(self, cluster: str) -> Iterator[None]:
        """Hold the right to record this cluster, which one process may have; blocks.

        Meanwhile each transaction makes sure of it first: a server ends sessions, and with them their locks.

        Raises:
            HistoryError: another process has it.
        """
        other = HistoryError(f"{self.name}: another `trainer history record` records this cluster")
        if self.file is not None:
            with self._lock(self.file, cluster).open("w") as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise other from None
                self._recorded = self.write(partial(DatabaseFile, self.file))
                try:
                    yield
                finally:
                    if self._recorded.is_another:
                        self.close()  # connections would go on in what is lost
                    self._recorded = None
            return
        right = RecordingRight(self._engine, cluster)
        with self._errors():
            if not right.acquire():
                raise other
        self._right = right
        try:
            yield
        finally:
            self._right = None
            right.release()

    def forget_cluster(self, cluster: str, delete: Callable[[Connection], int]) -> int:
        """Delete, from a file of SQLite, what only a cluster has that is gone; returns the number of `delete`.

        A server, which others may read as well, keeps it. Blocks.
        """
        if self.file is None or not self.file.is_file():
            return 0
        self.check()
        with self.recording(cluster):
            count = self.write(delete)
        self._lock(self.file, cluster).unlink(missing_ok=True)
        return count

    @staticmethod
    def _lock(file: Path, cluster: str) -> Path:
        # The cluster may be the address of its server.
        return file.with_name(f"{file.name}.{hashlib.sha256(cluster.encode()).hexdigest()[:32]}.lock")

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def _create_engine(self) -> Engine:
        if not self.is_sqlite:
            options = {name: value for name, value in _CONNECTIONS.items() if name not in self._url.query}
            return create_engine(self._url, connect_args=options, pool_pre_ping=True)
        engine = create_engine(self._url, poolclass=QueuePool, pool_size=1, max_overflow=4)
        event.listen(engine, "connect", _set_up_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine

    def _make_file(self, path: Path) -> None:
        """An empty file of its owner alone, so that SQLite makes none that others may read."""
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # What is there is not opened: closed again, it would take the locks of SQLite in this process.
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except FileExistsError:
            if not os.access(path, os.R_OK | os.W_OK):
                raise HistoryError(f"cannot write {path}: {os.strerror(errno.EACCES)}") from None
        except OSError as error:
            raise HistoryError(f"cannot write {path}: {error.strerror}") from error

    def _upgrade(self, connection: Connection) -> None:
        if not self.is_sqlite:
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATION_LOCK})
        else:
            mark(connection)
        found = _version(connection)
        if found is not None:
            self._check_version(found)
            if found >= HEAD:
                return
        logging.getLogger("alembic").setLevel(logging.WARNING)  # it logs already while it is imported
        from alembic import command  # noqa: PLC0415 - it takes a while, and 12 MB, in few processes
        from alembic.config import Config  # noqa: PLC0415 - likewise

        config = Config()
        config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
        config.attributes["connection"] = connection
        command.upgrade(config, HEAD)

    def _check_version(self, found: str) -> None:
        if oldest_user(found) > number(HEAD):
            raise HistoryError(f"{self.name} is of version {found}, newer than {HEAD} of this trainer: update it")


def _parsed(url: str) -> URL:
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        parsed = None
    drivername = _DRIVERS.get(parsed.drivername) if parsed is not None else None
    if parsed is None or drivername is None or (drivername == "sqlite" and parsed.database in {None, "", ":memory:"}):
        # The text is not repeated: it may have a password.
        raise ConfigurationError(
            "the database of the history must be sqlite:////absolute/path/FILE or postgresql://USER@HOST/NAME"
        )
    return parsed.set(drivername=drivername)


def _version(connection: Connection) -> str | None:
    """The version of the tables; None where there are none."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    found: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one_or_none()
    return found


def _reason(error: SQLAlchemyError) -> str:
    """The first line of what the driver says; SQLAlchemy would add the statement with its parameters."""
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    return next(iter(str(cause).splitlines()), type(cause).__name__)


def _set_up_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # transactions begin where `_begin_sqlite` says
    cursor = connection.cursor()
    for setting in (
        f"busy_timeout = {_LOCK_WAIT}",
        "auto_vacuum = INCREMENTAL",
        "journal_mode = WAL",
        "synchronous = NORMAL",
        "foreign_keys = ON",
    ):
        cursor.execute(f"PRAGMA {setting}")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    # At once as a writer: one that has read before would be refused instead of waiting.
    reads = connection.get_execution_options().get("reads")
    connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")
