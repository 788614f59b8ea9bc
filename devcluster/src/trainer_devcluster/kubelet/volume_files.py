"""The files of configMap, secret, downwardAPI and projected volumes, replaced all at once.

A program that reads several files must not see some old and some new. As a kubelet does it, the files are in a hidden
directory with a name of its own, the symbolic link `..data` points there, and what the program opens are links by way
of `..data`; one rename makes the change (Kubernetes documentation, "Mounted ConfigMaps are updated automatically").
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trainer_devcluster.kubelet.errors import VolumeError

if TYPE_CHECKING:
    from collections.abc import Sequence

_CURRENT = "..data"
_NEXT = "..data_tmp"
_DIRECTORY_MODE = 0o755


@dataclass(frozen=True, slots=True)
class VolumeFile:
    """A file of a volume."""

    path: str
    """Relative to the volume."""
    content: bytes
    mode: int


def write_files(volume: Path, files: Sequence[VolumeFile]) -> bool:
    """Make a directory hold these files and no others; whether that has changed anything. Blocks.

    Raises:
        VolumeError: a path leads out of the volume.
        OSError: the machine refuses.
    """
    for file in files:
        if ".." in Path(file.path).parts or Path(file.path).is_absolute():
            raise VolumeError(f"path {file.path!r} must be relative and must not contain '..'")
    wanted = {os.path.normpath(file.path): file for file in files}
    former = (volume / _CURRENT).resolve() if (volume / _CURRENT).is_symlink() else None
    if former is not None and _holds(former, wanted):
        return False
    payload = Path(tempfile.mkdtemp(prefix="..", dir=volume))
    payload.chmod(_DIRECTORY_MODE)
    for path, file in wanted.items():
        place = payload / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(file.content)
        place.chmod(file.mode)
    (volume / _NEXT).unlink(missing_ok=True)
    (volume / _NEXT).symlink_to(payload.name)
    (volume / _NEXT).replace(volume / _CURRENT)
    _link(volume, {path.split("/", 1)[0] for path in wanted})
    if former is not None:
        shutil.rmtree(former, ignore_errors=True)
    return True


def _holds(payload: Path, wanted: dict[str, VolumeFile]) -> bool:
    present = {str(path.relative_to(payload)) for path in payload.rglob("*") if path.is_file()}
    return present == wanted.keys() and all(_is_same(payload / path, file) for path, file in wanted.items())


def _is_same(path: Path, file: VolumeFile) -> bool:
    return stat.S_IMODE(path.stat().st_mode) == file.mode and path.read_bytes() == file.content


def _link(volume: Path, names: set[str]) -> None:
    """See to it that the volume shows these entries of the current payload."""
    for name in names:
        if not (volume / name).is_symlink():
            (volume / name).symlink_to(f"{_CURRENT}/{name}")
    for entry in volume.iterdir():
        if entry.is_symlink() and entry.name not in names and not entry.name.startswith(".."):
            entry.unlink()
