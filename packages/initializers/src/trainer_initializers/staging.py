"""The directory that is fetched: filled aside, so that nobody takes half of it for the whole.

Where the target is an ordinary directory that does not exist yet or is empty, files are collected beside it and the
directory appears by one rename. Where it is the mount point of a volume, which cannot be renamed, they are collected in
a hidden directory in it and moved into place when all of them are there; the index is written last in both cases.

A lock of the kernel on a file in the staging directory lets one process work at a time, also over NFS: it vanishes with
its process or its node, so that nothing has to be cleaned up after a crash.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from trainer_initializers.errors import TransferError, UnavailableSourceError
from trainer_initializers.file_names import INDEX_NAME, unfinished
from trainer_initializers.index import FileIndex
from trainer_initializers.shared_directory import SharedDirectory

_KEPT = {"lost+found", ".snapshot"}
"""What file systems put into an empty volume."""
_LOCK_ATTEMPTS = 1000
"""Each follows an owner that has removed the lock; nothing can be made in a directory that was itself removed."""


class Staging:
    """A directory to fill, which becomes the target by `publish`."""

    def __init__(self, target: Path) -> None:
        self.target = target
        self._is_inside = _stays(target)
        self._directory = SharedDirectory.open(target if self._is_inside else target.parent, create=True)
        self._target = "" if self._is_inside else target.name
        self._own = unfinished(target.name)
        self._files = f"{self._own}/files"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Own the target; wait while another process fetches into it."""
        lock = self._lock()
        try:
            yield
        finally:
            lock.close()

    def published(self) -> FileIndex | None:
        """The index of what was fetched before; None when nothing was, or not all.

        Raises:
            TransferError: there is one that no initializer has written.
        """
        return FileIndex.read(self._directory, self._target)

    def check_target(self) -> None:
        """Raise TransferError if the target holds what no initializer has fetched."""
        found = [name for name in self._directory.names(self._target) if name not in {*_KEPT, self._own}]
        if INDEX_NAME not in found and found and self._directory.size(self._log_name) is None:
            raise TransferError(
                f"the target {self.target} exists and holds what was not fetched here, such as {found[0]!r}: empty it, "
                "or use another volume"
            )

    def published_size(self, path: str) -> int | None:
        """The size of a file in the target; None where there is none."""
        return self._directory.size(self._in_target(path))

    def collected_size(self, path: str) -> int | None:
        """The size of a file that was collected; None where there is none."""
        return self._directory.size(f"{self._files}/{path}")

    def open_collected(self, path: str) -> BinaryIO:
        """Open a file to collect, for reading and writing."""
        return self._directory.write_file(f"{self._files}/{path}", "r+b")

    def open_log(self) -> BinaryIO:
        """Open the log of parts, for reading and appending."""
        return self._directory.write_file(self._log_name, "a+b")

    def drop_collected(self, path: str) -> None:
        """Remove a file that was collected."""
        self._directory.unlink(f"{self._files}/{path}")

    def open_selected(self, path: str) -> BinaryIO:
        """Open a new file for what was selected of one that was collected."""
        return self._directory.write_file(f"{self._own}/selected/{path}")

    def keep_selected(self) -> None:
        """Let what was selected take the place of all that was collected."""
        self._directory.remove(self._files)
        self._directory.replace(f"{self._own}/selected", self._files)

    def free_bytes(self) -> int:
        """Bytes that may still be written to the volume."""
        status = self._directory.space()
        return status.f_bavail * status.f_frsize

    def volume_bytes(self) -> int:
        """Bytes of the whole volume."""
        status = self._directory.space()
        return status.f_blocks * status.f_frsize

    def publish(self, index: FileIndex, stale: Collection[str] = ()) -> None:
        """Make the files that were collected the target, without those that the source has no more."""
        self._directory.make(self._files)
        if not self._is_inside and not self._directory.names(self._target):
            index.write(self._directory, self._files)
            self._directory.replace(self._files, self._target)
        else:
            self._publish_each(index, stale)
        self.discard()

    def discard(self) -> None:
        """Remove what was collected; the target stays as it is."""
        self._directory.remove(self._own)

    def _publish_each(self, index: FileIndex, stale: Collection[str]) -> None:
        self._directory.unlink(self._in_target(INDEX_NAME))
        for file in index.files:
            if self.collected_size(file.path) is not None:
                self._directory.replace(f"{self._files}/{file.path}", self._in_target(file.path))
        for path in stale:
            self._directory.unlink(self._in_target(path))
        index.write(self._directory, self._target)

    def _in_target(self, path: str) -> str:
        return str(PurePosixPath(self._target, path))

    @property
    def _log_name(self) -> str:
        return f"{self._own}/log"

    def _lock(self) -> BinaryIO:
        name = f"{self._own}/lock"
        for _ in range(_LOCK_ATTEMPTS):
            try:
                opened = self._directory.write_file(name, "r+b")
            except FileNotFoundError:  # the owner has removed the directory just now
                continue
            try:
                _wait_for(opened.fileno(), self.target)
                with suppress(FileNotFoundError):
                    if self._directory.status(name).st_ino == os.fstat(opened.fileno()).st_ino:
                        return opened
            except BaseException:
                opened.close()
                raise
            opened.close()  # of a directory that the owner has removed meanwhile
        raise UnavailableSourceError(f"the directory {self._directory.path} was removed meanwhile: start again")


def _stays(target: Path) -> bool:
    """Whether the target cannot be renamed: it is a mount point, or lies in a directory that is not ours to write."""
    parent = target.parent
    while not parent.exists():
        parent = parent.parent
    return target.exists() and (target.is_mount() or not os.access(parent, os.W_OK))


def _wait_for(descriptor: int, target: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.stderr.write(f"waiting for another initializer, which fetches into {target}\n")
        sys.stderr.flush()
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except OSError as error:
        if error.errno not in {errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS}:
            raise
        sys.stderr.write(f"warning: the file system of {target} has no locks: let one node fetch into it at a time\n")
