"""The checkpoints of this process: when one is due, writing it, finding the newest, and ending after a signal."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from trainer.checkpoints import ranks, settings, state, store
from trainer.checkpoints.stop_signal import StopSignal
from trainer.progress.report import report

SAVED_AND_ENDED = 75
"""Exit code of a training that has saved its state after a signal and ended (EX_TEMPFAIL of sysexits.h)."""
TERMINATED = 143
"""Exit code of one that has ended after a signal, and could save nothing (128 + SIGTERM)."""


@dataclass(frozen=True)
class Checkpoint:
    """A complete checkpoint."""

    step: int
    """Steps that were completed when it was written."""
    path: Path
    """Its directory."""

    def load(self, into: object = None, *, map_location: Any = "cpu", weights_only: bool = True) -> dict[str, Any]:
        """What was saved, by name: state_dicts of what had them, and all else as it was.

        Args:
            into: a state such as the one that was saved: its modules, optimizers and the like take what is theirs.
            map_location: where tensors are put, as for `torch.load`.
            weights_only: False loads objects of any class, which can run code.

        Raises:
            Exception: the checkpoint is not one of `save`, or does not fit.
        """
        values = state.read(self.path, map_location, weights_only)
        if into is not None:
            state.put(values, into)
        return values


class Training:
    """What this process knows of its checkpoints; times are those of `time.monotonic`."""

    def __init__(self) -> None:
        self._signal = StopSignal()
        self._is_ending = self._has_saved = False
        self._saved_at = time.monotonic()

    def latest(self) -> Checkpoint | None:
        """The newest complete checkpoint."""
        directory = settings.directory()
        found = None if directory is None else store.newest(directory)
        return None if found is None else Checkpoint(*found)

    def due(self, step: int) -> bool:  # noqa: ARG002 all ranks say it
        """Whether all ranks save now."""
        if not os.environ.get(settings.DIRECTORY):
            return False
        self._signal.watch()
        self._is_ending = self._is_ending or self._signal.has_come
        return self._is_ending or time.monotonic() - self._saved_at >= settings.seconds()

    def is_ending(self) -> bool:
        """Whether the training ends after the save that is due."""
        return self._is_ending

    def save(self, given: object, step: int) -> None:
        """Write a checkpoint, and delete old ones."""
        self._saved_at = time.monotonic()
        directory = settings.writable()
        if directory is None or ranks.rank():
            return
        try:
            with store.begin(directory, step) as path:
                state.write(given, path)
        except Exception as error:
            settings.complain("save", f"no checkpoint of step {step}: {settings.reason(error, directory)}")
            return
        finally:
            self._saved_at = time.monotonic()
        settings.resolved("save")
        self.saved(step, directory / store.step_name(step))
        store.prune(directory, settings.keep())

    def saved(self, step: int, path: Path) -> None:
        """Take note of a complete checkpoint, and report it."""
        self._saved_at = time.monotonic()
        self._has_saved = True
        report(checkpoint_step=step, checkpoint_path=str(path))

    def end(self) -> NoReturn:
        """End this process."""
        report(force=True)
        sys.exit(SAVED_AND_ENDED if self._has_saved else TERMINATED)
