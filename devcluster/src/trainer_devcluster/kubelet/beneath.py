"""Paths inside a volume, whose content is not trusted: a pod may have left symbolic links in it.

As kubelet and runc do it (CVE-2017-1002101, CVE-2021-25741), links are resolved first, a path that leaves the volume is
refused, and what is made is made step by step without following a link.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, suppress
from pathlib import Path


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
