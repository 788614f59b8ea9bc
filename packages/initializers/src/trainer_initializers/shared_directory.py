"""A directory that others write, too, such as the training whose result is exported.

Whoever writes a volume can put a symbolic link where a file or directory was a moment ago, and an exporter holds
credentials that a training must not see. So nothing here opens a path in one step: each part is opened in the
directory before it without following links, and a link counts only where it leads to a file of the same directory.
Hard links need no care: they name files of the same volume, which whoever made them could open.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

from trainer_initializers.errors import TransferError
from trainer_initializers.file_names import is_reserved

_LINKS_LIMIT = 40
"""Links on the way to one file, as in the kernel."""
_NO_LINK = os.O_NOFOLLOW | os.O_CLOEXEC
_DIRECTORY = os.O_PATH | os.O_DIRECTORY | _NO_LINK
"""Only to open what is in it, which needs no right to list it."""
_FILE = os.O_RDONLY | os.O_NONBLOCK | _NO_LINK
"""A pipe that takes the place of a file must not be waited for."""
_WRITTEN = os.O_RDWR | os.O_CREAT | os.O_NONBLOCK | _NO_LINK
_NO_FILE = {errno.ELOOP, errno.EISDIR, errno.EEXIST, errno.ENXIO}


@dataclass(frozen=True, slots=True)
class FoundFile:
    """What a directory has under a name."""

    path: str
    """Relative to the directory, with `/`."""
    status: os.stat_result
    fault: str = ""
    """Why it is not read. Default: it is a file."""


class SharedDirectory:
    """A directory whose files are opened without ever leaving it; safe to use from several threads."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor
        weakref.finalize(self, os.close, descriptor)

    @classmethod
    def open(cls, path: Path, *, create: bool = False) -> SharedDirectory:
        """The directory at a path of which no part is a link, since whoever writes a parent could have made it.

        Raises:
            FileNotFoundError: there is none, and `create` is False.
            TransferError: part of the path is a link or a file.
        """
        start = SharedDirectory.mounted(Path("/" if path.is_absolute() else "."))
        return cls(path, start._enter(str(path).lstrip("/"), create=create))  # noqa: SLF001 another one of this class

    @classmethod
    def mounted(cls, path: Path) -> SharedDirectory:
        """The mount point at a path, which no container can exchange."""
        return cls(path, os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))

    def size(self, name: str) -> int | None:
        """The size of a file; None where there is none, also where something else has its name."""
        try:
            with self._parent(name) as (parent, last):
                status = os.stat(last, dir_fd=parent, follow_symlinks=False)
        except (FileNotFoundError, TransferError):
            return None
        return status.st_size if stat.S_ISREG(status.st_mode) else None

    def status(self, name: str) -> os.stat_result:
        """The status of a file or directory.

        Raises:
            FileNotFoundError: there is none.
            TransferError: it is something else, or a link is on the way to it.
        """
        descriptor = self._resolve(name, follow=False)
        try:
            return os.fstat(descriptor)
        finally:
            os.close(descriptor)

    def names(self, name: str = "") -> list[str]:
        """The names in a directory; none where it does not exist."""
        try:
            with self._listed(name) as entries:
                return sorted(entry.name for entry in entries)
        except FileNotFoundError:
            return []

    def read_file(self, name: str, *, follow: bool = False) -> BinaryIO:
        """Open a file for reading; with `follow`, a link to a file of this directory counts as this file.

        Raises:
            FileNotFoundError: there is none.
            TransferError: it is no file, or a link that is not followed.
        """
        descriptor = self._resolve(name, follow=follow)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise TransferError(f"{self.path / name} is no file")
        return os.fdopen(descriptor, "rb")

    def write_file(self, name: str, mode: str = "wb") -> BinaryIO:
        """Open a file for writing, made with its parents: a new one (`wb`), or one that goes on (`r+b`, `a+b`).

        Raises:
            TransferError: something that is no file has this name, or is on the way to it.
        """
        flags = _WRITTEN | {"wb": os.O_EXCL, "r+b": 0, "a+b": os.O_APPEND}[mode]
        with self._parent(name, create=True) as (parent, last):
            try:
                if mode == "wb":
                    with suppress(FileNotFoundError):
                        os.unlink(last, dir_fd=parent)
                descriptor = os.open(last, flags, 0o644, dir_fd=parent)
            except OSError as error:
                if error.errno in _NO_FILE:
                    raise self._no_file(name) from error
                raise OSError(error.errno, error.strerror, str(self.path / name)) from error
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise self._no_file(name)
        return cast("BinaryIO", os.fdopen(descriptor, mode))

    def make(self, name: str) -> None:
        """Make a directory with its parents, unless it is there."""
        os.close(self._enter(name, create=True))

    def replace(self, source: str, target: str) -> None:
        """Move a file or directory to a name whose parents are made; what has this name is replaced."""
        with self._parent(source) as (old, old_name), self._parent(target, create=True) as (new, new_name):
            os.replace(old_name, new_name, src_dir_fd=old, dst_dir_fd=new)

    def unlink(self, name: str) -> None:
        """Remove a file, if it is there."""
        with suppress(FileNotFoundError), self._parent(name) as (parent, last):
            os.unlink(last, dir_fd=parent)

    def remove(self, name: str) -> None:
        """Remove a directory with all that is in it, where that is possible."""
        # Who writes the volume can nest directories deeper than Python 3.11 descends.
        with suppress(FileNotFoundError, RecursionError), self._parent(name) as (parent, last):
            shutil.rmtree(last, ignore_errors=True, dir_fd=parent)

    def space(self) -> os.statvfs_result:
        """The room on the volume."""
        return os.statvfs(self._descriptor)

    def files(self, name: str = "") -> Iterator[FoundFile]:
        """What is below a directory, in the order of names, but what initializers keep for themselves.

        What is neither a file nor a directory has a fault; links to files count as those, and links to directories of
        this one are left out, since their files are there under their own names.
        """
        waiting = [name]
        while waiting:
            below = waiting.pop()
            with self._listed(below) as entries:
                statuses = {
                    str(PurePosixPath(below, entry.name)): entry.stat(follow_symlinks=False)
                    for entry in sorted(entries, key=lambda entry: entry.name)
                    if entry.name != "lost+found" and not is_reserved(entry.name)
                }
            directories = [path for path, status in statuses.items() if stat.S_ISDIR(status.st_mode)]
            waiting += reversed(directories)
            for path, status in statuses.items():
                if not stat.S_ISDIR(status.st_mode) and (file := self._found(path, status)) is not None:
                    yield file

    def _found(self, path: str, status: os.stat_result) -> FoundFile | None:
        if stat.S_ISREG(status.st_mode):
            return FoundFile(path, status)
        if not stat.S_ISLNK(status.st_mode):
            return FoundFile(path, status, "is neither a file nor a directory")
        try:
            descriptor = self._resolve(path, follow=True)
        except (OSError, TransferError):
            return FoundFile(path, status, f"is a symbolic link that leads out of {self.path}, or nowhere")
        try:
            status = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        if stat.S_ISDIR(status.st_mode):
            return None
        return FoundFile(path, status)

    def _no_file(self, name: str) -> TransferError:
        return TransferError(f"{self.path / name} is a link or no file, and is left alone: remove it from the volume")

    @contextmanager
    def _listed(self, name: str) -> Iterator[Iterator[os.DirEntry[str]]]:
        descriptor = self._enter(name)
        try:
            listed = os.open(".", os.O_RDONLY | os.O_DIRECTORY | _NO_LINK, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        try:
            with os.scandir(listed) as entries:
                yield entries
        finally:
            os.close(listed)

    @contextmanager
    def _parent(self, name: str, *, create: bool = False) -> Iterator[tuple[int, str]]:
        path = PurePosixPath(name)
        descriptor = self._enter(str(path.parent), create=create)
        try:
            yield descriptor, path.name
        finally:
            os.close(descriptor)

    def _enter(self, name: str, *, create: bool = False) -> int:
        """A descriptor of a directory, on the way to which no link is followed."""
        descriptor = os.dup(self._descriptor)
        for part in PurePosixPath(name).parts:
            try:
                if create:
                    with suppress(FileExistsError):
                        os.mkdir(part, dir_fd=descriptor)
                below = os.open(part, _DIRECTORY, dir_fd=descriptor)
            except OSError as error:
                if error.errno in {errno.ENOTDIR, errno.ELOOP}:
                    raise TransferError(
                        f"{self.path / name}: {part} is a symbolic link or a file, and no link is followed where "
                        "others can make one: name a directory"
                    ) from error
                raise OSError(error.errno, error.strerror, str(self.path / name)) from error
            finally:
                os.close(descriptor)
            descriptor = below
        return descriptor

    def _resolve(self, name: str, *, follow: bool) -> int:
        """A descriptor of what a name leads to, if asked for through links that stay in this directory."""
        directories, left = [os.dup(self._descriptor)], list(reversed(PurePosixPath(name).parts))
        path, links = str(self.path / name), 0
        try:
            while left:
                part = left.pop()
                if part == "..":
                    if len(directories) == 1:
                        raise self._leads_out(name)
                    os.close(directories.pop())
                    continue
                status = os.stat(part, dir_fd=directories[-1], follow_symlinks=False)
                if stat.S_ISLNK(status.st_mode):
                    links += 1
                    target = self._target(os.readlink(part, dir_fd=directories[-1]), directories) if follow else None
                    if links > _LINKS_LIMIT or target is None:
                        raise self._leads_out(name)
                    left += reversed(target.parts)
                    continue
                flags = _DIRECTORY if stat.S_ISDIR(status.st_mode) else _FILE
                if not stat.S_ISDIR(status.st_mode) and not stat.S_ISREG(status.st_mode):
                    raise TransferError(f"{path} is neither a file nor a directory")
                directories.append(os.open(part, flags, dir_fd=directories[-1]))
            return directories.pop()
        except OSError as error:
            if error.errno == errno.ELOOP:  # it has become a link since it was looked at
                raise self._leads_out(name) from error
            raise OSError(
                errno.ENOENT if error.errno == errno.ENOTDIR else error.errno, error.strerror, path
            ) from error
        finally:
            for each in directories:
                os.close(each)

    def _target(self, link: str, directories: list[int]) -> PurePosixPath | None:
        """Where a link leads, from the last directory; an absolute one counts if it names a path in this directory."""
        target = PurePosixPath(link)
        if not target.is_absolute():
            return target
        if not target.is_relative_to(self.path):
            return None
        while len(directories) > 1:
            os.close(directories.pop())
        return target.relative_to(self.path)

    def _leads_out(self, name: str) -> TransferError:
        return TransferError(
            f"{self.path / name} is a symbolic link, which is not followed, since it may lead out of the volume: have "
            "it replaced by what it stands for"
        )


def path_of(opened: BinaryIO) -> Path:
    """A path by which a library can open the very file that is open here, whatever its name leads to by now."""
    return Path(f"/proc/self/fd/{opened.fileno()}")
