"""`file://` and `pvc://`: directories that are mounted in the container.

`pvc://CLAIM/path` is the path in the claim, which must be mounted at /mnt/pvc/CLAIM, or at CLAIM in the directory that
PVC_PATH names.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from trainer_initializers.errors import TransferError
from trainer_initializers.file_names import unfinished
from trainer_initializers.file_store import LocalFile, RemoteFile
from trainer_initializers.index import FileIndex, digest_of
from trainer_initializers.options import TransferOptions
from trainer_initializers.shared_directory import FoundFile, SharedDirectory

_CHUNK = 1 << 20


class DirectoryStore:
    """Files below a directory, or one file."""

    def __init__(self, options: TransferOptions, path: str, mount: Path | None = None) -> None:
        """Take the path, which is in the mounted volume where there is one."""
        self._options, self._path, self._mount = options, path, mount

    def files(self) -> Iterator[RemoteFile]:
        """The files, in the order of their names."""
        directory, below = self._opened()
        try:
            status = directory.status(below)
        except FileNotFoundError:
            raise self._missing() from None
        if not stat.S_ISDIR(status.st_mode):
            if self._options.selects(name := PurePosixPath(below).name):
                yield _remote(name, status)
            return
        for file in directory.files(below):
            path = PurePosixPath(file.path).relative_to(below).as_posix()
            if not self._options.selects(path):
                continue
            if file.fault:
                raise TransferError(
                    f"{self._options.shown}: {path!r} {file.fault}: have it replaced by a file, or leave it out with "
                    "IGNORE_PATTERNS"
                )
            yield _remote(path, file.status)

    def read(self, file: RemoteFile, start: int, end: int | None) -> Iterator[bytes]:
        """The bytes of the range."""
        directory, below = self._opened()
        is_file = stat.S_ISREG(directory.status(below).st_mode)
        path = below if is_file else str(PurePosixPath(below, file.path))
        with directory.read_file(path, follow=not is_file) as opened:
            opened.seek(start)
            left = (file.size or 0) - start if end is None else end - start
            while left > 0 and (data := opened.read(min(_CHUNK, left))):
                left -= len(data)
                yield data

    def export(self, files: Sequence[LocalFile], report: Callable[[int], None]) -> int:
        """Copy what has changed; each file and at last the index appear whole."""
        directory, below = self._opened(create=True)
        known = self._known(directory, below)
        exported, count = [], 0
        for file in files:
            target = PurePosixPath(below, file.path)
            with file.open() as opened:
                digest = digest_of(opened, "sha256")
                old = known.get(file.path)
                if old is None or old.digest != digest or directory.size(str(target)) != file.size:
                    partial = str(target.with_name(unfinished(target.name)))
                    opened.seek(0)
                    with directory.write_file(partial) as copy:
                        shutil.copyfileobj(opened, copy, _CHUNK)
                    directory.replace(partial, str(target))
                    count += 1
            exported.append(RemoteFile(file.path, file.size, digest, digest))
            report(file.size)
        directory.make(below)
        FileIndex(self._options.shown, tuple(exported)).write(directory, below)
        return count

    def _known(self, directory: SharedDirectory, below: str) -> dict[str, RemoteFile]:
        """The files of the last export."""
        index = FileIndex.read(directory, below)
        return {} if index is None else index.by_path()

    def _opened(self, *, create: bool = False) -> tuple[SharedDirectory, str]:
        """The directory that nothing leads out of, and the path in it."""
        if self._mount is not None:
            return SharedDirectory.mounted(self._mount), self._path
        path = Path(self._path)
        try:
            return SharedDirectory.open(path, create=create), ""
        except FileNotFoundError:
            raise self._missing() from None
        except TransferError:
            if create:
                raise
        return SharedDirectory.open(path.parent), path.name

    def _missing(self) -> TransferError:
        path = self._path if self._mount is None else self._mount / self._path
        return TransferError(f"{self._options.shown}: {path} does not exist: mount the volume, check the path")


def files_to_export(options: TransferOptions) -> tuple[list[LocalFile], list[FoundFile]]:
    """The files of the directory that is exported, and what has the name of one and is none."""
    try:
        directory = SharedDirectory.open(options.directory)
    except FileNotFoundError:
        return [], []
    found = [file for file in directory.files() if options.selects(file.path)]
    files = [LocalFile(file.path, file.status.st_size, directory) for file in found if not file.fault]
    return files, [file for file in found if file.fault]


def open_file(options: TransferOptions) -> DirectoryStore:
    """The FileStore of a `file://` URI."""
    location = options.location
    if location.netloc not in {"", "localhost"} or not location.path.strip("/"):
        raise TransferError(f"STORAGE_URI {options.shown} names no path: write it as file:///path")
    return DirectoryStore(options, os.path.normpath(unquote(location.path)))


def open_claim(options: TransferOptions) -> DirectoryStore:
    """The FileStore of a `pvc://` URI."""
    claim = options.location.netloc
    if not claim or claim in {".", ".."}:
        raise TransferError(f"STORAGE_URI {options.shown} names no claim: write it as pvc://claim/path")
    mount = Path(options.variable("PVC_PATH") or "/mnt/pvc") / claim
    if not mount.is_dir():
        raise TransferError(
            f"the claim {claim} is not mounted: mount it at {mount} in this container with spec.podSpecOverrides"
        )
    path = os.path.normpath(unquote(options.location.path).lstrip("/"))
    if PurePosixPath(path).parts[:1] == ("..",):
        raise TransferError(f"STORAGE_URI {options.shown} leads out of the claim: remove the ..")
    return DirectoryStore(options, path, mount)


def _remote(path: str, status: os.stat_result) -> RemoteFile:
    return RemoteFile(path, status.st_size, f"{status.st_mtime_ns}-{status.st_size}")
