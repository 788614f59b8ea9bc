"""The file of SQLite that is written to: whether it is still the one that was opened.

A connection goes on for long in a file that was deleted, replaced or overwritten: what it writes is in its log, and
what it reads is in its memory.
"""

from __future__ import annotations

import secrets
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
        self._place, number = self._look()
        # The file has the number later than its log.
        self._numbers = {number, (_MAGIC, _number_of(connection))}

    @property
    def is_another(self) -> bool:
        """Whether there is another file by now, or other content."""
        try:
            place, number = self._look()
        except OSError:
            return True
        return place != self._place or number not in self._numbers

    def _look(self) -> tuple[tuple[int, int], tuple[bytes, int]]:
        with self._path.open("rb") as file:
            magic, number = _HEADER.unpack(file.read(_HEADER.size).ljust(_HEADER.size, b"\0"))
        found = self._path.stat()
        return (found.st_dev, found.st_ino), (magic, number)


def _number_of(connection: Connection) -> int:
    return int(connection.exec_driver_sql("PRAGMA user_version").scalar_one())
