"""hostPath volumes: files and directories of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainer_devcluster.kubelet.errors import VolumeError

if TYPE_CHECKING:
    from collections.abc import Mapping

_DIRECTORY_MODE = 0o755
_FILE_MODE = 0o644


def host_path(source: Mapping[str, Any]) -> Path:
    """The path of a hostPath source, made if its type says so, or if it has none; blocks.

    Without a type nothing is checked, and what is missing becomes an empty directory, as container runtimes do it.

    Raises:
        VolumeError: there is something else at the path, or nothing.
        OSError: it cannot be made.
    """
    path, kind = Path(source["path"]), source.get("type") or ""
    if kind in {"", "DirectoryOrCreate"} and not path.exists():
        path.mkdir(_DIRECTORY_MODE, parents=True)
    if kind == "FileOrCreate" and not path.exists():
        path.touch(_FILE_MODE)
    checks = {
        "": (path.exists, "file or directory"),
        "Directory": (path.is_dir, "directory"),
        "DirectoryOrCreate": (path.is_dir, "directory"),
        "File": (path.is_file, "file"),
        "FileOrCreate": (path.is_file, "file"),
        "Socket": (path.is_socket, "socket file"),
        "CharDevice": (path.is_char_device, "character device"),
        "BlockDevice": (path.is_block_device, "block device"),
    }
    if kind not in checks:
        raise VolumeError(f"{kind} is an invalid volume type")
    is_there, what = checks[kind]
    if not is_there():
        raise VolumeError(f"hostPath type check failed: {path} is not a {what}")
    return path
