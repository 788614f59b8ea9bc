"""What keeps an image or a root of Debian from being made."""

from __future__ import annotations

import os
import shutil


class ImageError(RuntimeError):
    """A program failed or is missing; the message says which, and what to do."""


def require_root(purpose: str) -> None:
    """Make sure that this process may mount and change owners.

    Raises:
        ImageError: it is not root.
    """
    if os.geteuid():
        raise ImageError(f"only root can {purpose}: run it as root, in a virtual machine or a container of its own")


def require(programs: dict[str, str]) -> None:
    """Make sure that programs are on PATH.

    Args:
        programs: the package of Debian that has each, by the name of the program.

    Raises:
        ImageError: at least one is missing.
    """
    missing = {name: package for name, package in programs.items() if shutil.which(name) is None}
    if missing:
        packages = " ".join(sorted(set(missing.values())))
        raise ImageError(f"{', '.join(sorted(missing))} not found on PATH: apt-get install {packages}")
