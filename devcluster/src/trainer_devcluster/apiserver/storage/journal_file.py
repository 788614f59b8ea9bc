"""Journal files: what is appended to one is on the disk once `sync` has returned."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Self

from trainer_devcluster.apiserver.storage.checksummed import line

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType


class JournalFile:
    """A file of checksummed lines that is open for writing; every method blocks and may raise OSError."""

    def __init__(self, path: Path, *, anew: bool = False) -> None:
        """Open a file, readable by its owner only, to append to it; made when missing.

        Args:
            path: of the file.
            anew: whether what it holds is dropped.
        """
        self.path = path
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC | (os.O_TRUNC if anew else 0)
        self._descriptor = os.open(path, flags, 0o600)
        self.size = os.fstat(self._descriptor).st_size

    def append(self, document: bytes) -> None:
        """Write a document as the next line."""
        rest = memoryview(line(document))
        while rest:
            try:
                written = os.write(self._descriptor, rest)
            except OSError as error:
                raise OSError(error.errno, f"cannot be written: {error.strerror}", str(self.path)) from error
            self.size += written
            rest = rest[written:]

    def sync(self) -> None:
        """Wait until everything is on the disk."""
        try:
            os.fdatasync(self._descriptor)
        except OSError as error:
            raise OSError(error.errno, f"cannot be written: {error.strerror}", str(self.path)) from error

    def close(self) -> None:
        """Close the file; does not sync."""
        os.close(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def sync_directory(path: Path) -> None:
    """Wait until new, renamed and deleted names in a directory are on the disk; blocks."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
