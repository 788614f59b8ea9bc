"""The right to record a cluster in PostgreSQL, which one process may have: an advisory lock, held by a session."""

from __future__ import annotations

from threading import Lock

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import OperationalError

_KEY = 0x7472_0002
"""Of the locks of recorders."""
_ENDING = 3_000
"""Milliseconds to wait for the lock of a session that is just being closed."""
_LOCK_NOT_AVAILABLE = "55P03"
_HELD = text(
    "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND pid = :pid"
    " AND classid = :key AND objid::int8 = hashtext(:cluster)::int8 & 4294967295 AND objsubid = 2)"
)


class RecordingRight:
    """The right to record one cluster; blocks."""

    def __init__(self, engine: Engine, cluster: str) -> None:
        self._engine = engine
        self._names = {"key": _KEY, "cluster": cluster}
        self._session: Connection | None = None
        self._pid = 0
        self._turn = Lock()

    def acquire(self) -> bool:
        """Take the right; False where another process has it."""
        session = self._engine.connect()
        try:
            session.execute(text(f"SET LOCAL lock_timeout = {_ENDING}"))
            session.execute(text("SELECT pg_advisory_lock(:key, hashtext(:cluster))"), self._names)
            self._pid = session.execute(text("SELECT pg_backend_pid()")).scalar_one()
            session.commit()
        except OperationalError as error:
            session.invalidate()
            if getattr(error.orig, "sqlstate", None) != _LOCK_NOT_AVAILABLE:
                raise
            return False
        self._session = session
        return True

    def verify(self, connection: Connection) -> bool:
        """Whether the right is held; it is taken again where its session was lost and nobody has taken it since.

        Args:
            connection: another session of the same database.
        """
        if self._is_held(connection):
            return True
        with self._turn:
            if self._is_held(connection):  # another thread was faster
                return True
            self.release()
            return self.acquire()

    def release(self) -> None:
        """Give up the right, which ends with its session; the session may be lost by now."""
        session, self._session = self._session, None
        if session is not None:
            session.invalidate()

    def _is_held(self, connection: Connection) -> bool:
        return bool(connection.execute(_HELD, self._names | {"pid": self._pid}).scalar_one())
