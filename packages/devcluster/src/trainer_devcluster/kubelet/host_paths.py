"""Paths of this machine: hostPath volumes, and where a container without a mount namespace works.

Volumes mounted at the workingDir of such a container or below it are found there. Relative paths then lead to the same
files as in a sandbox, so `python train.py` finds the script of its volume.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from trainer_devcluster.kubelet.errors import VolumeError


@dataclass(frozen=True, slots=True)
class SandboxMount:
    """A file or directory of the machine that the container sees somewhere else."""

    source: Path
    target: str
    read_only: bool = False
    owned: bool = False
    """Whether `source` belongs to the pod, so that mount points may be made inside it."""


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


def resolve_beneath(root: Path, inside: str) -> str | None:
    """The path relative to the root with all links resolved; None if it leads out. Blocks."""
    real = os.path.realpath(root)
    path = os.path.realpath(os.path.join(real, inside))  # noqa: PTH118 - Path.resolve raises RuntimeError at loops
    return os.path.relpath(path, real) if Path(path).is_relative_to(real) else None


def make_beneath(root: Path, inside: str, *, is_directory: bool) -> None:
    """Make a directory, or an empty file, with its missing parents. Blocks.

    Raises:
        OSError: part of the path is a file, or is a link; after `resolve_beneath` only one that was made meanwhile.
    """
    *parents, last = Path(inside).parts
    with ExitStack() as stack:
        descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
        stack.callback(os.close, descriptor)
        for name in [*parents, last] if is_directory else parents:
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=descriptor)
            descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=descriptor)
            stack.callback(os.close, descriptor)
        if not is_directory:
            flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW
            stack.callback(os.close, os.open(last, flags, 0o666, dir_fd=descriptor))


SERVICE_ACCOUNT = PurePosixPath("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where every container has the credentials of its pod, asked for or not."""


def unreachable_mount(container: Mapping[str, Any]) -> str | None:
    """Why a volume of the container cannot be where it should be; None if all can.

    The credentials of the pod do not count: most programs have no use for them, and nearly all pods have them.
    """
    directory = container.get("workingDir")
    targets = [PurePosixPath("/", mount["mountPath"]) for mount in container.get("volumeMounts") or []]
    targets = [target for target in targets if target != SERVICE_ACCOUNT]
    for target in targets:
        if not directory or not target.is_relative_to(directory):
            return f"{target} is not workingDir or below it"
    for target in targets:
        # A link to one volume would be made inside another, perhaps through a link that a pod has left there.
        if any(target in other.parents for other in targets):
            return f"{target} has other mounts below it"
    return None


def place_mounts(directory: str, scratch: Path, mounts: Iterable[SandboxMount]) -> Path:
    """The directory to start in: that of the volume mounted at `directory`, or `scratch` with links to those below.

    Blocks. Whether a mount is read-only is not enforced.
    """
    if not directory:
        return scratch
    below = [mount for mount in mounts if PurePosixPath(mount.target).is_relative_to(directory)]
    for mount in below:
        place = PurePosixPath(mount.target).relative_to(directory)
        if not place.parts:
            return mount.source
        link = scratch / place
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.is_symlink():
            link.symlink_to(mount.source)
    return scratch if below or not Path(directory).is_dir() else Path(directory)
