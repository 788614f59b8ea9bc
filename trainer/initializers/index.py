"""The index: which files a directory or an export has, written last, so that it vouches for all of them."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainer.initializers.errors import TransferError
from trainer.initializers.file_store import RemoteFile

if TYPE_CHECKING:
    from pathlib import Path

INDEX_NAME = ".trainer-index.json"
"""The file with the index, in the directory that was fetched and below the prefix of an export."""
_CHUNK = 1 << 20


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
        """The index in a file; None when it is none of ours."""
        try:
            document = json.loads(content)
            files = tuple(
                RemoteFile(str(file["path"]), file["size"], str(file["version"]), file["digest"])
                for file in document["files"]
            )
            return cls(str(document["source"]), files)
        except (ValueError, KeyError, TypeError):
            return None

    @classmethod
    def read(cls, path: Path) -> FileIndex | None:
        """The index at a path; None when there is none."""
        try:
            return cls.decode(path.read_bytes())
        except FileNotFoundError:
            return None

    def write(self, path: Path) -> None:
        """Write the index, which appears whole."""
        partial = path.with_name(f"{path.name}.fetching")
        with partial.open("wb") as opened:
            opened.write(self.encode())
            opened.flush()
            os.fsync(opened.fileno())
        partial.replace(path)


def digest_of(path: Path, algorithm: str) -> str:
    """The digest of a file by `sha256` or `git-blob`, written as in RemoteFile."""
    if algorithm not in {"sha256", "git-blob"}:
        raise TransferError(f"{path.name}: the checksum {algorithm} is not known: use sha256")
    with path.open("rb") as opened:
        if algorithm == "sha256":
            state = hashlib.sha256()
        else:
            state = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
        while data := opened.read(_CHUNK):
            state.update(data)
    return f"{algorithm}:{state.hexdigest()}"
