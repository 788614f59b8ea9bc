"""Code that does not fit a ConfigMap: in a bucket or on a claim, below the hash of its content."""

from __future__ import annotations

import hashlib
import io
import os
import stat
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from trainer.api import patterns
from trainer.cli.console import printable
from trainer.cli.errors import BadInputError, CommandError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.resources.abc import Traversable

    from trainer.kube.objects import Object

ARCHIVE: Final = "code.tar.gz"
_INITIALIZERS: Final = "initializers.tar.xz"
"""Key of the ConfigMap: the programs that fetch from a bucket, which images of trainings do not have."""
_BUCKETS: Final = ("s3", "gs", "az")
_CLAIM: Final = "pvc"
_FORM: Final = "must be s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX or pvc://CLAIM/PATH"
_CLAIM_MOUNT, _SECRET_MOUNT = "/mnt/trainer/store", "/mnt/trainer/secret"
_VOLUME: Final = "trainer-store"


@dataclass(frozen=True, slots=True)
class CodeStore:
    """A bucket with a prefix, or a claim with a path."""

    uri: str
    """Without a slash at its end."""
    secret: str | None = None
    """The Secret with which nodes read a bucket. Default: none, they use the identity of their service account."""

    @property
    def claim(self) -> str:
        """The claim; empty for a bucket."""
        parts = urlsplit(self.uri)
        return parts.netloc if parts.scheme == _CLAIM else ""

    def companions(self) -> dict[str, bytes]:
        """What travels in the ConfigMap so that a node can fetch the code."""
        return {} if self.claim else {_INITIALIZERS: _initializers()}


@dataclass(frozen=True, slots=True)
class StoredCode:
    """One archive in a store."""

    store: CodeStore
    digest: str
    """SHA-256 of the archive, by which it is found and checked."""

    @classmethod
    def of(cls, store: CodeStore, archive: bytes) -> StoredCode:
        """The place of an archive."""
        return cls(store, hashlib.sha256(archive).hexdigest())

    @property
    def uri(self) -> str:
        """Where the archive is, as `ARCHIVE`."""
        return f"{self.store.uri}/{self.digest}"

    @property
    def options(self) -> list[str]:
        """The options of start.py that name the archive."""
        if not self.store.claim:
            return ["--fetch", self.uri, self.digest]
        path = PurePosixPath(_CLAIM_MOUNT, unquote(urlsplit(self.uri).path).lstrip("/"), ARCHIVE)
        return ["--archive", str(path), self.digest]

    @property
    def volume(self) -> Object | None:
        """The claim, or the Secret of a bucket."""
        if self.store.claim:
            return {"name": _VOLUME, "persistentVolumeClaim": {"claimName": self.store.claim}}
        return {"name": _VOLUME, "secret": {"secretName": self.store.secret}} if self.store.secret else None

    @property
    def mount(self) -> Object:
        """The read-only mount of the volume."""
        path = _CLAIM_MOUNT if self.store.claim else _SECRET_MOUNT
        return {"name": _VOLUME, "mountPath": path, "readOnly": True}


def code_store(uri: str, secret: str | None) -> CodeStore:
    """The store of `--code-store` and `--code-secret`.

    Raises:
        BadInputError: one of them is wrong, or has a password.
    """
    shown = printable(uri)[:200]
    parts = urlsplit(uri)
    if parts.scheme not in {*_BUCKETS, _CLAIM} or not parts.netloc or parts.query or parts.fragment or "*" in uri:
        raise BadInputError(f"--code-store: {shown if '?' not in uri else 'the URI'}: {_FORM}")
    if "@" in parts.netloc:
        raise BadInputError("--code-store: must have no user or password: name a Secret with --code-secret")
    if ".." in PurePosixPath(unquote(parts.path)).parts:
        raise BadInputError(f"--code-store: {shown}: must have no ..")
    if secret is not None and not patterns.compiled(patterns.OBJECT_NAME).search(secret):
        raise BadInputError(f"--code-secret: {printable(secret)[:80]}: must be the name of a Secret")
    return CodeStore(uri.rstrip("/"), secret)


def upload(code: StoredCode, archive: bytes) -> str:
    """Upload an archive unless it is there, with the credentials of this process; returns a line that says so.

    Raises:
        CommandError: the store does not take it.
    """
    claim = code.store.claim
    mounts = Path(os.environ.get("PVC_PATH") or "/mnt/pvc")
    if claim and not (mounts / claim).is_dir():
        raise CommandError(
            f"--code-store: the claim {claim} is not mounted here: run this where it is mounted at {mounts / claim}, "
            "such as in a notebook, name its mounts with PVC_PATH, or take a bucket"
        )
    if claim:
        _remove_damaged(code, mounts / claim)
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / ARCHIVE).write_bytes(archive)
        variables = {"STORAGE_URI": code.uri, "TRANSFER_PATH": os.path.realpath(directory)}  # the path of no link
        # A process of its own: the libraries for buckets have threads, and read the environment.
        done = subprocess.run(
            [sys.executable, "-m", "trainer.initializers", "export"],
            env={**os.environ, **variables, "TERMINATION_MESSAGE_PATH": f"{directory}/message"},
            capture_output=True, text=True, errors="replace", check=False,
        )  # fmt: skip
    if done.returncode:
        reason = done.stderr.strip().rpartition("\n")[2].removeprefix("error: export: ")
        raise CommandError(f"--code-store: the code cannot be uploaded to {code.uri}: {printable(reason)}")
    how = "is there already" if f"{code.uri}: 0 of 1 files" in done.stdout else "is uploaded"
    return f"the code {how}: {code.uri}; it stays there when the TrainJob is deleted"


def _remove_damaged(code: StoredCode, mount: Path) -> None:
    """Remove an archive that is not what its digest says: an export compares sizes, and every node would refuse it."""
    path = mount.resolve() / unquote(urlsplit(code.uri).path).lstrip("/") / ARCHIVE
    if path.parent.resolve() != path.parent:  # a training has made a link of a directory, which the export refuses
        return
    try:
        found = ""
        if stat.S_ISREG(path.lstat().st_mode):  # a training that writes the claim can have made a pipe or a link of it
            with path.open("rb") as opened:
                found = hashlib.file_digest(opened, "sha256").hexdigest()
        if found != code.digest:
            path.unlink()
    except FileNotFoundError:
        return
    except OSError as error:
        raise CommandError(f"--code-store: the code cannot be uploaded to {code.uri}: {error}") from error


def _initializers() -> bytes:
    """The programs of `trainer.initializers`, without what only tests need."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:xz") as archive:
        for name, content in sorted(_sources()):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def _sources() -> Iterator[tuple[str, bytes]]:
    package = resources.files("trainer")
    files: dict[str, Traversable] = {
        f"trainer/{name}": package.joinpath(name)
        for name in ("__init__.py", "progress/__init__.py", "progress/report.py")
    }
    for entry in package.joinpath("initializers").iterdir():
        if entry.name.endswith(".py"):
            files[f"trainer/initializers/{entry.name}"] = entry
    return ((name, entry.read_bytes()) for name, entry in files.items())
