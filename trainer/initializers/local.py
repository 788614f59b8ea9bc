"""`file://` and `pvc://`: directories that are mounted in the container.

`pvc://CLAIM/path` is the path in the claim, which must be mounted at /mnt/pvc/CLAIM, or at CLAIM in the directory that
PVC_PATH names.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from trainer.initializers.errors import TransferError
from trainer.initializers.file_store import LocalFile, RemoteFile
from trainer.initializers.index import INDEX_NAME, FileIndex, digest_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from trainer.initializers.options import TransferOptions

_CHUNK = 1 << 20


class DirectoryStore:
    """Files below a directory, or one file."""

    def __init__(self, path: Path, options: TransferOptions) -> None:
        self._path, self._options = path, options

    def files(self) -> Iterator[RemoteFile]:
        """The files, in the order of their names."""
        if self._path.is_file():
            yield self._file(self._path, self._path.name)
            return
        if not self._path.is_dir():
            raise TransferError(f"{self._options.shown}: {self._path} does not exist: mount the volume, check the path")
        for local in files_below(self._path):
            if self._options.selects(local.path):
                yield self._file(local.source, local.path)

    def read(self, file: RemoteFile, start: int, end: int | None) -> Iterator[bytes]:
        """The bytes of the range."""
        path = self._path if self._path.is_file() else self._path / file.path
        with path.open("rb") as opened:
            opened.seek(start)
            left = (file.size or 0) - start if end is None else end - start
            while left > 0 and (data := opened.read(min(_CHUNK, left))):
                left -= len(data)
                yield data

    def export(self, files: Sequence[LocalFile], report: Callable[[int], None]) -> int:
        """Copy what has changed; each file and at last the index appear whole."""
        self._path.mkdir(parents=True, exist_ok=True)
        index = FileIndex.read(self._path / INDEX_NAME)
        known = {} if index is None else index.by_path()
        exported, count = [], 0
        for file in files:
            digest = digest_of(file.source, "sha256")
            target = self._path / file.path
            old = known.get(file.path)
            if old is None or old.digest != digest or not target.is_file() or target.stat().st_size != file.size:
                _copy(file.source, target)
                count += 1
            exported.append(RemoteFile(file.path, file.size, digest, digest))
            report(file.size)
        FileIndex(self._options.shown, tuple(exported)).write(self._path / INDEX_NAME)
        return count

    @staticmethod
    def _file(path: Path, name: str) -> RemoteFile:
        status = path.stat()
        return RemoteFile(name, status.st_size, f"{status.st_mtime_ns}-{status.st_size}")


def files_below(directory: Path) -> Iterator[LocalFile]:
    """All files below a directory but those that initializers keep for themselves, in the order of their names."""
    for root, directories, names in os.walk(directory):
        directories[:] = sorted(name for name in directories if name != "lost+found" and not _is_ours(name))
        for name in sorted(names):
            path = Path(root, name)
            if path.is_file() and not _is_ours(name):
                yield LocalFile(path.relative_to(directory).as_posix(), path, path.stat().st_size)


def open_file(options: TransferOptions) -> DirectoryStore:
    """The FileStore of a `file://` URI."""
    location = options.location
    if location.netloc not in {"", "localhost"} or not location.path.strip("/"):
        raise TransferError(f"STORAGE_URI {options.shown} names no path: write it as file:///path")
    return DirectoryStore(Path(unquote(location.path)), options)


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
    path = Path(os.path.normpath(mount / unquote(options.location.path).lstrip("/")))
    if path != mount and mount not in path.parents:
        raise TransferError(f"STORAGE_URI {options.shown} leads out of the claim: remove the ..")
    return DirectoryStore(path, options)


def _is_ours(name: str) -> bool:
    return name == INDEX_NAME or (name.startswith(".") and name.endswith(".fetching"))


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.fetching")
    shutil.copyfile(source, partial)
    partial.replace(target)
