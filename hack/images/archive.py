"""An image in an OCI archive: what it starts, and its files."""

from __future__ import annotations

import json
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any, Final

_WHITEOUT: Final = ".wh."
_OPAQUE: Final = ".wh..wh..opq"


@dataclass(frozen=True, slots=True)
class ImageSettings:
    """What the image says about its processes."""

    entrypoint: tuple[str, ...]
    command: tuple[str, ...]
    environment: Mapping[str, str]
    user: str
    directory: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Archive:
    """A file that `build` has written."""

    file: Path

    def settings(self) -> ImageSettings:
        """Read the configuration of the image."""
        with self._blobs() as blobs:
            document = _blob(blobs, self._manifest(blobs)["config"])
        section: dict[str, Any] = document["config"]
        return ImageSettings(
            tuple(section.get("Entrypoint") or ()),
            tuple(section.get("Cmd") or ()),
            dict(each.split("=", 1) for each in section.get("Env") or ()),
            section.get("User", ""),
            section.get("WorkingDir") or "/",
            section.get("Labels") or {},
        )

    def digest(self) -> str:
        """Of the manifest, computed from its bytes."""
        with self._blobs() as blobs:
            [only] = _index(blobs)
            return f"sha256:{sha256(_place(blobs, only).read_bytes()).hexdigest()}"

    def unpack(self, directory: Path) -> None:
        """Make a root file system of the layers, with their owners: only root can."""
        with self._blobs() as blobs:
            for layer in self._manifest(blobs)["layers"]:
                _apply(_place(blobs, layer), directory)

    @contextmanager
    def _blobs(self) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(prefix="image-") as directory:
            with tarfile.open(self.file) as archive:
                archive.extractall(directory, filter="data")
            yield Path(directory)

    def _manifest(self, blobs: Path) -> dict[str, Any]:
        [only] = _index(blobs)
        return _blob(blobs, only)


def _index(blobs: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((blobs / "index.json").read_text())["manifests"]
    return found


def _blob(blobs: Path, descriptor: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_place(blobs, descriptor).read_text())
    return found


def _place(blobs: Path, descriptor: Mapping[str, Any]) -> Path:
    return blobs / "blobs" / str(descriptor["digest"]).replace(":", "/")


def _apply(layer: Path, directory: Path) -> None:
    """Put a layer onto those below it: its whiteouts remove what they have."""
    with tarfile.open(layer) as listed:
        whiteouts = [
            PurePosixPath(each) for each in listed.getnames() if PurePosixPath(each).name.startswith(_WHITEOUT)
        ]
    for whiteout in whiteouts:
        folder = directory / whiteout.parent
        hidden = folder.iterdir() if whiteout.name == _OPAQUE else [folder / whiteout.name.removeprefix(_WHITEOUT)]
        for path in [*hidden]:
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
    extract = ["tar", "--extract", f"--file={layer}", f"--directory={directory}", "--numeric-owner", "--same-owner"]
    subprocess.run([*extract, "--preserve-permissions", f"--exclude={_WHITEOUT}*"], check=True)
