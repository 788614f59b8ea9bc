"""Files and folders as a stream of tar, from a container and to one.

What comes from a container is not trusted: names lead nowhere but to the place that the user has named, and links and
special files that could lead elsewhere are left out (`tarfile.data_filter`).
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final

from trainer.cli.console import printable
from trainer.cli.errors import CommandError

_BLOCK: Final = 64 * 1024
_OWNER_MAY: Final = 0o700
"""A folder has to be open to its owner for what is in it to be written."""


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
        size = (
            f"{self.size / 1024 / 1024:.1f} MiB"
            if self.size >= 1024 * 1024
            else f"{self.size:,} byte{'' if self.size == 1 else 's'}"
        )
        return f"{self.files:,} file{'' if self.files == 1 else 's'}, {size}"


class EndOfArchiveError(Exception):
    """The other end takes nothing more."""


def unpack(read: Callable[[], bytes], base: str, target: Path) -> Copied:
    """Write what an archive holds to `target`, which may exist; blocks.

    Args:
        read: gives the next bytes, b"" at the end.
        base: the name with which all names in the archive begin; "" for the content of a folder.
        target: where to write what has the name `base`.

    Raises:
        CommandError: the archive would lead out of `target`, is a link, or ends too early.
        OSError: something cannot be written.
    """
    if not hasattr(tarfile, "data_filter"):
        raise CommandError("trainer cp needs Python 3.11.4 or later to unpack safely what comes from a container")
    copied = Copied()
    try:
        with tarfile.open(fileobj=_Source(read), mode="r|") as archive:
            for member in archive:
                _take(archive, member, base, target, copied)
    except tarfile.ReadError as error:
        if copied.files or "empty" not in str(error):
            raise CommandError(f"what the container sent is cut off: {error}") from None
    return copied


def _take(archive: tarfile.TarFile, member: tarfile.TarInfo, base: str, target: Path, copied: Copied) -> None:
    place = _place(member.name, base)
    if place == PurePosixPath() and member.issym():
        raise CommandError(f"{printable(base)} is a link to {printable(member.linkname)}: name that path")
    link = member.linkname
    if member.islnk():
        link = _below(target, _place(link, base))
    mode = member.mode | _OWNER_MAY if member.isdir() else member.mode
    placed = member.replace(name=_below(target, place), linkname=link, mode=mode, deep=False)
    try:
        archive.extract(placed, target.parent, filter="data")
    except tarfile.OutsideDestinationError:
        raise CommandError(_outside(member.name, target)) from None
    except (tarfile.AbsoluteLinkError, tarfile.LinkOutsideDestinationError):
        copied.left_out.append(f"{printable(member.name)}, a link to {printable(member.linkname)}")
    except tarfile.SpecialFileError:
        copied.left_out.append(f"{printable(member.name)}, which is no file")
    else:
        copied.add(member)


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


def _below(target: Path, place: PurePosixPath) -> str:
    return str(PurePosixPath(target.name) / place)


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
