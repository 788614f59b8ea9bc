"""Which names files of a dataset or model may have, wherever they are read: from a server, a volume or an index."""

from __future__ import annotations

import os
from pathlib import PurePosixPath

INDEX_NAME = ".trainer-index.json"
"""The file with the index, in the directory that was fetched and below the prefix of an export."""

_LONGEST = 255
"""Bytes of one part of a path, on the file systems of Linux."""
_LONGEST_PATH = 4095
"""Bytes of a path that a program can open on Linux."""


def unfinished(name: str) -> str:
    """The name under which a file or a directory is filled."""
    return f".{name}.fetching"


def is_reserved(name: str) -> bool:
    """Whether initializers keep a name for themselves: the index, and what is being filled."""
    name = name.lower()  # SMB takes them for one
    return name in {INDEX_NAME, f"{INDEX_NAME}.fetching"} or (name.startswith(".") and name.endswith(".fetching"))


def fault_of(path: str) -> str:
    """Why no file of a dataset can have this path, as the end of a sentence; empty where it can."""
    if len(path) > _LONGEST_PATH:
        return f"which has more than {_LONGEST_PATH} bytes"
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or str(pure) != path or path == "." or "\0" in path:
        return "which is no path in the target"
    try:
        is_too_long = any(len(os.fsencode(part)) > _LONGEST for part in pure.parts)
    except UnicodeEncodeError:
        return "which is no text"
    if is_too_long:
        return f"which has a part of more than {_LONGEST} bytes"
    if any(is_reserved(part) for part in pure.parts):
        return "a name that initializers keep for themselves: leave it out with IGNORE_PATTERNS"
    return ""
