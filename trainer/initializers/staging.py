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
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from trainer.initializers.errors import TransferError
from trainer.initializers.index import INDEX_NAME, FileIndex

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_KEPT = {"lost+found", ".snapshot"}
"""What file systems put into an empty volume."""


class Staging:
    """A directory to fill, which becomes the target by `publish`."""

    def __init__(self, target: Path) -> None:
        self.target = target
        self._is_inside = _stays(target)
        name = f".{target.name}.fetching"
        self._directory = target / name if self._is_inside else target.with_name(name)
        self.files = self._directory / "files"
        self.log = self._directory / "log"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Own the target; wait while another process fetches into it."""
        descriptor = self._lock()
        try:
            yield
        finally:
            os.close(descriptor)

    def published(self) -> FileIndex | None:
        """The index of what was fetched before; None when nothing was, or not all."""
        return FileIndex.read(self.target / INDEX_NAME)

    def check_target(self) -> None:
        """Raise TransferError if the target holds what no initializer has fetched."""
        if self.log.exists() or (self.target / INDEX_NAME).exists() or not self.target.is_dir():
            return
        found = sorted(
            entry.name for entry in self.target.iterdir() if entry.name not in {*_KEPT, self._directory.name}
        )
        if found:
            raise TransferError(
                f"the target {self.target} exists and holds what was not fetched here, such as {found[0]!r}: empty it, "
                "or use another volume"
            )

    def free_bytes(self) -> int:
        """Bytes that may still be written to the volume."""
        status = os.statvfs(self._directory)
        return status.f_bavail * status.f_frsize

    def volume_bytes(self) -> int:
        """Bytes of the whole volume."""
        status = os.statvfs(self._directory)
        return status.f_blocks * status.f_frsize

    def publish(self, index: FileIndex, stale: Collection[str] = ()) -> None:
        """Make the files that were collected the target, without those that the source has no more."""
        self.files.mkdir(exist_ok=True)
        if not self._is_inside and (not self.target.exists() or not any(self.target.iterdir())):
            index.write(self.files / INDEX_NAME)
            self.files.rename(self.target)
        else:
            self._publish_each(index, stale)
        shutil.rmtree(self._directory, ignore_errors=True)

    def discard(self) -> None:
        """Remove what was collected; the target stays as it is."""
        shutil.rmtree(self._directory, ignore_errors=True)

    def _publish_each(self, index: FileIndex, stale: Collection[str]) -> None:
        (self.target / INDEX_NAME).unlink(missing_ok=True)
        for root, _, names in os.walk(self.files):
            place = self.target / Path(root).relative_to(self.files)
            place.mkdir(parents=True, exist_ok=True)
            for name in names:
                Path(root, name).replace(place / name)
        for name in stale:
            (self.target / name).unlink(missing_ok=True)
        index.write(self.target / INDEX_NAME)

    def _lock(self) -> int:
        while True:
            self._directory.mkdir(parents=True, exist_ok=True)
            path = self._directory / "lock"
            try:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            except FileNotFoundError:  # the owner has removed the directory just now
                continue
            try:
                _wait_for(descriptor, self.target)
                if path.exists() and path.stat().st_ino == os.fstat(descriptor).st_ino:
                    return descriptor
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)  # of a directory that the owner has removed meanwhile


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
