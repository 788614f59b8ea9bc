"""Checkpoints of a training that may be interrupted: saved in time, found again, and complete or not there at all.

    from trainer_reporter import checkpoints  # or: from trainer import checkpoints

    state = {"model": model, "optimizer": optimizer}
    newest = checkpoints.latest()
    if newest:
        newest.load(state)
    for step in range(newest.step + 1 if newest else 1, steps + 1):
        train(step)
        if checkpoints.due(step):
            checkpoints.save(state, step)
        if checkpoints.ending():
            checkpoints.end()

Everything does nothing where the variable TRAINER_CHECKPOINT_DIR is unset. All ranks call these functions at the same
places. Python 3.8 or later; nothing but the standard library is imported until a state needs more.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from trainer.checkpoints import ranks, store
from trainer.checkpoints.checkpoint import Checkpoint
from trainer.checkpoints.settings import directory, keep, writable
from trainer.checkpoints.state import RandomState
from trainer.checkpoints.training import SAVED_AND_ENDED, Training

__all__ = [
    "SAVED_AND_ENDED",
    "Checkpoint",
    "RandomState",
    "directory",
    "due",
    "end",
    "ending",
    "group",
    "keep",
    "latest",
    "newest",
    "release",
    "save",
    "saved",
    "writable",
]

_training = Training()


def latest() -> Checkpoint | None:
    """The newest complete checkpoint of this training; None without one, as at its first start.

    With several ranks whose process group is there it is the newest that all of them see.
    """
    return _training.latest()


def newest(directory: Path, names: Sequence[str] = store.STEPS) -> Checkpoint | None:
    """The newest complete checkpoint of a directory below `directory()`, which a framework writes; as `latest`.

    Args:
        directory: where to look; it need not exist.
        names: names of checkpoints, with `*` for the step.
    """
    return _training.newest(directory, names)


def due(step: int) -> bool:  # noqa: ARG001 a step is what it is called for; the ranks count the calls
    """Whether a checkpoint must be saved after this step: True on all ranks or on none.

    All ranks call it after each step. It is True when SIGTERM has come to one of them, and when the time between two
    checkpoints is over. Never raises.

    Args:
        step: steps that are completed, counted from the very beginning.
    """
    return _training.due()


def ending() -> bool:
    """Whether the training ends once the checkpoint that is due is saved: all ranks know it from the same `due` on."""
    return _training.is_ending()


def save(state: object, step: int) -> None:
    """Save the state after a step, and delete all but the newest checkpoints. All ranks call it.

    What cannot be saved is said in one sentence, once; the former checkpoints stay, and the training goes on.

    Args:
        state: modules, optimizers, schedulers and whatever else has `state_dict` and `load_state_dict`, tensors,
            numbers, texts, lists and dictionaries, by name.
        step: steps that are completed, counted from the very beginning.
    """
    _training.save(state, step)


def saved(step: int, path: Path) -> None:
    """Take note of a complete checkpoint that a framework has written: the time to the next begins, the status has it.

    Args:
        step: steps that were completed.
        path: its directory, below `directory()`.
    """
    _training.saved(step, path)


def end() -> NoReturn:
    """End this process so that the training is restarted: with code 75 after a save, else 143."""
    _training.end()


def group() -> ranks.Group | None:
    """All ranks, once they have met, with the numbers by which they agree; None for a process that is alone."""
    return _training.group()


def release() -> None:
    """Have SIGTERM do what it did before the first step: no more of them come."""
    _training.release()
