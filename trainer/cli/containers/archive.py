"""Files and folders as a stream of tar, from a container and to one.

What comes from a container is not trusted: names lead nowhere but to the place that the user has named, and links and
special files that could lead elsewhere are left out (`tarfile.data_filter`).
"""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final

from trainer.cli.console import printable, size
from trainer.cli.errors import CommandError

_BLOCK: Final = 64 * 1024


@dataclass(slots=True)
class Copied:
    """What has been copied."""

    files: int = 0
    size: int = 0
    """Bytes."""
    left_out: list[str] = field(default_factory=list)
    """Files that were not copied, each with the reason."""

    def add(self, member: tarfile.TarInfo) -> None:
        """Count a file, folder or link."""
        if not member.isdir():
            self.files += 1
            self.size += member.size

    def __str__(self) -> str:
        return f"{self.files:,} file{'' if self.files == 1 else 's'}, {size(self.size)}"


class EndOfArchiveError(Exception):
    """The other end takes nothing more."""


def unpack(read: Callable[[], bytes], base: str, target: Path) -> Copied:
    """Write what an archive holds to `target`, which may exist; blocks.

    Args:
        read: gives the next bytes, b"" at the end.
        base: the name with which all names in the archive begin; "" for the content of a folder.
        target: where to write what has the name `base`.

    Raises:
        CommandError: the archive would lead out of `target`, is a link, or cannot be read to its end.
        OSError: something cannot be written.
    """
    if not hasattr(tarfile, "data_filter"):
        raise CommandError("trainer cp needs Python 3.11.4 or later to unpack safely what comes from a container")
    copied = Copied()
    try:
        with tarfile.open(fileobj=_Source(read), mode="r|") as archive:
            _Unpacking(archive, base, target, copied).run()
    except tarfile.ReadError as error:
        if copied.files or "empty" not in str(error):
            raise CommandError(f"what the container sent is cut off: {error}") from None
    except (tarfile.TarError, ArithmeticError, LookupError, ValueError) as error:  # of headers that make no sense
        raise CommandError(f"what the container sent cannot be unpacked: {printable(str(error))}") from None
    return copied


@dataclass(frozen=True, slots=True)
class _Unpacking:
    """Writes the members of an archive."""

    archive: tarfile.TarFile
    base: str
    target: Path
    copied: Copied

    def run(self) -> None:
        """Write all of them, links last: so nothing is ever written through a link that the container has sent."""
        links: list[tarfile.TarInfo] = []
        for member in self.archive:
            if member.issym():
                links.append(member)
                self._check_whole(member)
            else:
                self._take(member)
        for member in links:
            self._take(member)

    def _check_whole(self, member: tarfile.TarInfo) -> None:
        if _place(member.name, self.base) == PurePosixPath():
            raise CommandError(f"{printable(self.base)} is a link to {printable(member.linkname)}: name that path")

    def _take(self, member: tarfile.TarInfo) -> None:
        place = _place(member.name, self.base)
        folder, name = self.target, str(place)
        if place == PurePosixPath():
            if member.isdir():
                self.target.mkdir(exist_ok=True)
                return
            folder, name = self.target.parent, self.target.name
        link = str(_place(member.linkname, self.base)) if member.islnk() else member.linkname
        try:
            safe = tarfile.data_filter(member.replace(name=name, linkname=link, deep=False), str(folder))
            problem = self._problem(safe, folder)
        except tarfile.OutsideDestinationError:
            raise CommandError(_outside(member.name, self.target)) from None
        except (tarfile.AbsoluteLinkError, tarfile.LinkOutsideDestinationError):
            problem = f"a link to {printable(member.linkname)}"
        except tarfile.SpecialFileError:
            problem = "which is no file"
        if problem:
            self.copied.left_out.append(f"{printable(member.name)}, {problem}")
            return
        # A hard link may be one already, by an earlier copy.
        if not (member.islnk() and _is_same(folder / name, folder / link)):
            self.archive.extract(safe, folder, filter="fully_trusted")
        self.copied.add(member)

    def _problem(self, member: tarfile.TarInfo, folder: Path) -> str:
        """Why a member cannot be written; makes room for a hard link, whose place tarfile would leave as it is."""
        if not member.islnk():
            return ""
        file, first = folder / member.name, folder / member.linkname
        if first.is_symlink() or not first.is_file():
            return f"a hard link to {printable(member.linkname)}, which is not there"
        if os.path.lexists(file) and not _is_same(file, first):
            file.unlink()
        return ""


def _is_same(one: Path, other: Path) -> bool:
    return os.path.lexists(one) and os.path.samestat(one.lstat(), other.lstat())


def _place(name: str, base: str) -> PurePosixPath:
    """The path of a member relative to what was asked for.

    Raises:
        CommandError: it is elsewhere.
    """
    path = PurePosixPath(name)
    parts = path.parts
    if base and parts[:1] == (base,):
        parts = parts[1:]
    elif base or path.is_absolute():
        raise CommandError(f"the container sent {printable(name)}, which was not asked for: nothing more is copied")
    if ".." in parts:
        raise CommandError(f"the container sent {printable(name)}, which leads elsewhere: nothing more is copied")
    return PurePosixPath(*parts)


def _outside(name: str, target: Path) -> str:
    return f"{printable(name)} would be written elsewhere than to {target}: nothing more is copied"


def pack(source: Path, name: str, write: Callable[[bytes], object]) -> Copied:
    """Write a file, or a folder with all that is in it, as an archive; blocks.

    Args:
        source: what to read.
        name: its name in the archive.
        write: takes the next bytes.

    Raises:
        OSError: something cannot be read.
        EndOfArchiveError: raised by `write`.
    """
    copied = Copied()

    def taken(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        if not (member.isfile() or member.isdir() or member.issym() or member.islnk()):
            copied.left_out.append(f"{printable(member.name)}, which is no file")
            return None
        # Owners of this machine mean nothing there: what is unpacked is that of the container's user.
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        copied.add(member)
        return member

    # BusyBox and GNU tar know long names in this format.
    with tarfile.open(fileobj=_Sink(write), mode="w|", format=tarfile.GNU_FORMAT, bufsize=_BLOCK) as archive:
        archive.add(source, arcname=name, filter=taken)
    return copied


class _Source(io.RawIOBase):
    """The bytes that a function gives, as a file."""

    def __init__(self, read: Callable[[], bytes]) -> None:
        super().__init__()
        self._read = read
        self._rest = memoryview(b"")

    def read(self, size: int = -1) -> bytes:
        """At most so many bytes; b"" at the end."""
        if not self._rest:
            self._rest = memoryview(self._read())
        taken, self._rest = self._rest[:size], self._rest[size:]
        return bytes(taken)


class _Sink(io.RawIOBase):
    """A function that takes bytes, as a file."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        super().__init__()
        self._write = write

    def write(self, data: object) -> int:
        """Hand them on."""
        assert isinstance(data, bytes)
        self._write(data)
        return len(data)
