"""The git revision of code that is sent from this machine."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Collection
from pathlib import Path
from typing import Final

from trainer.api.trainjob import DIRTY

_SECONDS: Final = 5
_ELSEWHERE: Final = frozenset({"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"})
"""Variables by which git looks into another repository, such as in its hooks."""
_DELETED: Final = "D"


def revision_of(folder: Path, files: Collection[str]) -> str:
    """The commit of a folder; with `DIRTY` where files are changed or new, or some of the folder are deleted.

    It is a note, so what git cannot say stays unsaid: the answer is empty where git is not installed, takes longer
    than five seconds or refuses to answer, and outside a repository.

    Args:
        folder: without links.
        files: names of what is sent, relative to the folder.
    """
    try:
        top, commit = _git(folder, "rev-parse", "--show-toplevel", "HEAD").splitlines()
        # No monitor of the repository is started for this; a folder in which all is new is named in place of its files.
        status = ("status", "--porcelain", "-z", "--no-renames", "--untracked-files=normal", "--", ".")
        changes = _git(folder, "-c", "core.fsmonitor=false", *status)
        place = folder.relative_to(Path(top).resolve())
    except (OSError, ValueError, subprocess.SubprocessError):
        return ""
    sent = {(place / name).as_posix() for name in files}
    sent |= {parent.as_posix() for name in sent for parent in Path(name).parents}
    entries = [(entry[:2], entry[3:]) for entry in changes.split("\0") if entry]
    is_dirty = any(_DELETED in states or path.rstrip("/") in sent for states, path in entries)
    return f"{commit}{DIRTY}" if is_dirty else commit


def _git(folder: Path, *arguments: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name not in _ELSEWHERE}
    answer = subprocess.run(
        ["git", "-C", str(folder), *arguments], capture_output=True, timeout=_SECONDS, check=True,
        env={**environment, "GIT_OPTIONAL_LOCKS": "0"},
    )  # fmt: skip
    return os.fsdecode(answer.stdout)
