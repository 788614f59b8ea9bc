"""The cache of what is slow to make: each thing in it is made once, by whichever process is first."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def cache_directory() -> Path:
    """`${XDG_CACHE_HOME:-~/.cache}/trainer-ci`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "trainer-ci"


@contextmanager
def locked(place: Path) -> Iterator[int]:
    """Hold the lock of a path while it is looked up or made, and give the descriptor of the lock.

    A program that has the descriptor holds the lock as well, until it ends. A process that has to wait says so on
    standard error.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.with_name(f"{place.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.stderr.write(f"waiting for another process to release {place}\n")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock.fileno()
