"""The data directory: private files, and one server at a time."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

LOCK_FILE = "lock"


@contextmanager
def exclusive(directory: Path) -> Iterator[None]:
    """Keep other servers out of a directory, which is made when missing, until the context closes or the process ends.

    Raises:
        OSError: another server uses it, or it cannot be made or written.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(directory / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            message = "another dev cluster uses this directory: stop it, or choose another directory"
            raise OSError(errno.EBUSY, message, str(directory)) from error
        yield
    finally:
        os.close(descriptor)


def write_private(path: Path, content: bytes) -> None:
    """Replace a file with one that only its owner can read, at no moment anything else.

    Raises:
        OSError: it cannot be written; the error names the file or the directory.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def refuse_content(path: Path, problem: object) -> NoReturn:
    """Say that a file of the directory holds what no server wrote.

    Raises:
        OSError: always; nobody retries, a person deletes the file.
    """
    message = f"cannot be used ({problem}): delete it, and a new one is made"
    raise OSError(errno.EINVAL, message, str(path))
