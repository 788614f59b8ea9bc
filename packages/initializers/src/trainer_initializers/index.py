"""The index: which files a directory or an export has, written last, so that it vouches for all of them."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import BinaryIO

from trainer_initializers.errors import TransferError
from trainer_initializers.file_names import INDEX_NAME, fault_of
from trainer_initializers.file_store import RemoteFile
from trainer_initializers.shared_directory import SharedDirectory

_CHUNK = 1 << 20
SIZE_LIMIT = 256 << 20
"""Bytes of an index, which has a million files then."""


@dataclass(frozen=True, slots=True)
class FileIndex:
    """The files of a source, each with the facts by which a change is detected."""

    source: str
    """URI without secrets."""
    files: tuple[RemoteFile, ...]

    def by_path(self) -> dict[str, RemoteFile]:
        """The files by their path."""
        return {file.path: file for file in self.files}

    def encode(self) -> bytes:
        """The content of the file with the index."""
        files = [
            {"path": file.path, "size": file.size, "version": file.version, "digest": file.digest}
            for file in sorted(self.files, key=lambda file: file.path)
        ]
        return json.dumps({"source": self.source, "files": files}, indent=1).encode() + b"\n"

    @classmethod
    def decode(cls, content: bytes) -> FileIndex | None:
        """The index in a file; None when no initializer has written it, since others can write there, too."""
        if len(content) > SIZE_LIMIT:
            return None
        try:
            document = json.loads(content)
            return cls(str(document["source"]), tuple(_file(entry) for entry in document["files"]))
        except (ValueError, KeyError, TypeError, RecursionError):
            return None

    @classmethod
    def read(cls, directory: SharedDirectory, below: str = "") -> FileIndex | None:
        """The index in a directory; None when there is none.

        Raises:
            TransferError: there is one that no initializer has written.
        """
        path = str(PurePosixPath(below, INDEX_NAME))
        try:
            with directory.read_file(path) as opened:
                content = opened.read(SIZE_LIMIT + 1)
        except FileNotFoundError:
            return None
        index = cls.decode(content)
        if index is None:
            raise TransferError(
                f"{directory.path / path} is not what an initializer has written: empty the directory, or use another"
            )
        return index

    def write(self, directory: SharedDirectory, below: str = "") -> None:
        """Write the index into a directory, where it appears whole."""
        path = str(PurePosixPath(below, INDEX_NAME))
        with directory.write_file(f"{path}.fetching") as opened:
            opened.write(self.encode())
            opened.flush()
            os.fsync(opened.fileno())
        directory.replace(f"{path}.fetching", path)


def _file(entry: Mapping[str, object]) -> RemoteFile:
    """An entry of an index, whose names and types are checked as those of a server are.

    Raises:
        ValueError: it has others.
    """
    match entry:
        case {
            "path": str(path),
            "size": int() | None as size,
            "version": str(version),
            "digest": str() | None as digest,
        } if not fault_of(path):
            return RemoteFile(path, size, version, digest)
    raise ValueError("no entry of an index")


def digest_of(opened: BinaryIO, algorithm: str) -> str:
    """The digest of a file by `sha256` or `git-blob`, written as in RemoteFile."""
    if algorithm not in {"sha256", "git-blob"}:
        raise TransferError(f"the checksum {algorithm} is not known: use sha256")
    if algorithm == "sha256":
        state = hashlib.sha256()
    else:
        state = hashlib.sha1(b"blob %d\0" % os.fstat(opened.fileno()).st_size, usedforsecurity=False)
    opened.seek(0)
    while data := opened.read(_CHUNK):
        state.update(data)
    return f"{algorithm}:{state.hexdigest()}"
