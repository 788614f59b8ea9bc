"""The file of SQLite that is written to: whether it is still the one that was opened.

A connection goes on for long in a file that was deleted, replaced or overwritten: what it writes is in its log, and
what it reads is in its memory.

The file is opened once and never closed: with any descriptor that a process closes, POSIX takes all its locks on the
file, those of SQLite too, and another process would delete the log that this one writes to.
"""

from __future__ import annotations

import os
import secrets
import struct
from pathlib import Path

from sqlalchemy import Connection

_HEADER = struct.Struct(">16s44xI")
"""Of the file format: the magic text, and at byte 60 the number that `PRAGMA user_version` sets."""
_MAGIC = b"SQLite format 3\0"


def mark(connection: Connection) -> None:
    """Give the database a number of its own, unless it has one."""
    if not _number_of(connection):
        connection.exec_driver_sql(f"PRAGMA user_version = {1 + secrets.randbelow(2**31 - 1)}")


class DatabaseFile:
    """A file as it was found; blocks.

    Args:
        path: where it is.
        connection: by which it is written.

    Raises:
        OSError: it cannot be read.
    """

    def __init__(self, path: Path, connection: Connection) -> None:
        self._path = path
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        # The file has the number later than its log.
        self._headers = {self._header(), (_MAGIC, _number_of(connection))}

    @property
    def is_another(self) -> bool:
        """Whether there is another file by now, or other content."""
        try:
            is_here = os.path.samestat(self._path.stat(), os.fstat(self._descriptor))
            return not is_here or self._header() not in self._headers
        except OSError:
            return True

    def _header(self) -> tuple[bytes, int]:
        magic, number = _HEADER.unpack(os.pread(self._descriptor, _HEADER.size, 0).ljust(_HEADER.size, b"\0"))
        return magic, number


def _number_of(connection: Connection) -> int:
    return int(connection.exec_driver_sql("PRAGMA user_version").scalar_one())
