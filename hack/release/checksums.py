"""SHA256SUMS, as `sha256sum --check` reads it."""

from __future__ import annotations

import hashlib
from pathlib import Path

NAME = "SHA256SUMS"


def sha256(path: Path) -> str:
    """Give the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write(folder: Path) -> Path:
    """Write the sums of all files of a folder into it, those of folders in it left out."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name != NAME)
    target = folder / NAME
    target.write_text("".join(f"{sha256(path)}  {path.name}\n" for path in files), encoding="utf-8")
    return target
