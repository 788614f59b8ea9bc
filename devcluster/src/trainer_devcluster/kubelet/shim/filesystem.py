"""Builds a container's root file system from a list of operations and moves into it."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from . import linux

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .spec import Operation


def build(new_root: str, operations: Iterable[Operation]) -> None:
    """Put the root together on `new_root` and make it the root of this process; needs own mount and PID namespaces.

    Raises:
        OSError: a mount failed; the message names its target.
    """
    linux.mount("none", "/", "none", linux.MS_REC | linux.MS_PRIVATE)
    linux.mount("tmpfs", new_root, "tmpfs", 0, "mode=755")
    # A recursive bind of the directory around new_root must not copy what is already mounted there.
    linux.mount("none", new_root, "none", linux.MS_UNBINDABLE)
    for operation in operations:
        try:
            _carry_out(operation, new_root + operation.target)
        except OSError as error:
            if not operation.optional:
                raise OSError(error.errno, f"{operation.kind} {operation.target}: {error.strerror}") from error
    linux.mount("none", new_root, "none", linux.MS_PRIVATE)
    linux.switch_root(new_root)


def _carry_out(operation: Operation, target: str) -> None:
    match operation.kind:
        case "directory":
            Path(target).mkdir(parents=True, exist_ok=True)
        case "symlink":
            Path(target).symlink_to(operation.source)
        case "tmpfs":
            # A directory that everybody may write to, such as /tmp, stays one.
            mode = stat.S_IMODE(Path(target).stat().st_mode)
            linux.mount("tmpfs", target, "tmpfs", 0, f"mode={mode:o}")
        case "proc":
            flags = linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC
            linux.mount("proc", target, "proc", flags)
        case "bind":
            _bind(operation, target)


def _bind(operation: Operation, target: str) -> None:
    if not os.path.lexists(target):
        if Path(operation.source).is_dir():
            Path(target).mkdir()
        else:
            Path(target).touch()
    linux.mount(operation.source, target, "none", linux.MS_BIND | linux.MS_REC)
    if operation.read_only:
        linux.make_read_only(target)
