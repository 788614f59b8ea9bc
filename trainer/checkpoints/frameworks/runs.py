"""Trainings of a process, each with a directory of its own among the checkpoints of a TrainJob.

A TrainJob may run several programs, one after the other, and a program may train several models. None of them may
begin from the checkpoint of another one, so a directory is named after the program, its arguments, and the number of
the training in its process.
"""

from __future__ import annotations

import functools
import hashlib
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from trainer.checkpoints import Checkpoint, group, keep, newest, saved, saving, settings, store
from trainer.checkpoints import directory as all_checkpoints

_LIMIT = 16
"""Trainings of a process: a script that trains in a loop of thousands would fill the claim."""
_RANK = re.compile(r"--?(?:local|node|machine|global)[-_]?rank(=.*)?", re.IGNORECASE)
"""Options that differ from process to process."""

_count = [0]
Kind = TypeVar("Kind", bound=type)


def next_run() -> Path | None:
    """The directory of the next training of this process; None: it has no checkpoints of ours."""
    base = all_checkpoints()
    if base is None:
        return None
    _count[0] += 1
    if _count[0] > _LIMIT:
        settings.complain("runs", f"only the first {_LIMIT} trainings of a process get checkpoints")
        return None
    return base / (program() if _count[0] == 1 else f"{program()}-{_count[0]}")


def program() -> str:
    """A name for what this process runs: the same one after a restart, and on all ranks."""
    words = [Path(sys.argv[0]).name, *_arguments(sys.argv[1:])]
    if words[0] == "-c":
        words += getattr(sys, "orig_argv", ())
    digest = hashlib.sha256("\0".join(words).encode("utf-8", "surrogateescape")).hexdigest()
    stem = re.sub(r"[^A-Za-z0-9]+", "-", Path(words[0]).stem).strip("-")[:40] or "training"
    return f"{stem}-{digest[:8]}"


def _arguments(words: list[str]) -> list[str]:
    found, skips = [], False
    for word in words:
        match = _RANK.fullmatch(word)
        if match is None and not skips and not word.startswith("hydra."):
            found.append(word)
        skips = match is not None and match[1] is None
    return found


def guard(kind: Kind) -> Kind:
    """Have nothing that fails in the hooks of a callback reach the training."""
    for name, method in list(vars(kind).items()):
        if name.startswith("on_"):
            setattr(kind, name, _guarded(method))
    return kind


def _guarded(method: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(method)
    def guarded(*given: Any, **options: Any) -> None:
        try:
            method(*given, **options)
        except Exception as error:
            complain(error)

    return guarded


def complain(error: BaseException) -> None:
    """Say once that something has failed; the training goes on."""
    settings.complain("framework", f"checkpoints of this training: {error!r:.300}")


def resume(directory: Path, names: Sequence[str] = store.STEPS) -> Checkpoint | None:
    """The checkpoint that a training goes on from, which is said; None: it begins at step 0."""
    found = newest(directory, names)
    if found is not None:
        settings.say(f"goes on after step {found.step}, from {found.path}")
    return found


def write(directory: Path, step: int, writer: Callable[[Path], object]) -> None:
    """Have all ranks write a checkpoint, and delete all but the newest ones.

    What cannot be saved is said in one sentence, once; the former checkpoints stay, and the training goes on.
    """
    name, ours = store.step_name(step), group()
    try:
        saving.together(directory, name, ours, writer)
    except Exception as error:
        saving.say_failed(step, directory, error)
        return
    succeeded(step, directory / name)
    if ours is None or ours.rank == 0:
        store.prune(directory, keep(), spared=directory / name)


def succeeded(step: int, path: Path) -> None:
    """Take note of a complete checkpoint."""
    settings.resolved("save")
    saved(step, path)
