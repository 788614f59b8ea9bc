"""Checkpoints of the Trainer of Hugging Face transformers, and of what derives from it, such as the Trainers of TRL.

The Trainer writes `checkpoint-N` in place. Where its output directory goes with the pod, it writes to a hidden place
below the directory of checkpoints instead, and what is complete gets its name there. On a volume it writes where the
script says, and a link below the directory of checkpoints says that one is complete.
"""

from __future__ import annotations

import functools
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from trainer.checkpoints import due, end, ending, group, keep, release, saving, store, writable
from trainer.checkpoints.frameworks import mounts, runs

_NAMES = ("checkpoint-*",)
_HIDDEN = ".transformers"
_STATE = "trainer_state.json"


def attach(module: Any) -> None:
    """Have each training of a Trainer begin from its newest checkpoint, unless the script says where it begins."""
    kind = module.Trainer
    original = kind.train

    @functools.wraps(original)
    def train(self: Any, resume_from_checkpoint: Any = None, *given: Any, **options: Any) -> Any:
        run = None
        # A search for parameters trains many times, and who passes False wants to begin anew.
        if resume_from_checkpoint is None and not given and options.get("trial") is None:
            run = _begin(self)
        if run is not None:
            resume_from_checkpoint = run.newest and str(run.newest.path.resolve())
        try:
            return original(self, resume_from_checkpoint, *given, **options)
        finally:
            if run is not None:
                run.end()

    kind.train = train


def _begin(trainer: Any) -> _Run | None:
    try:
        directory = runs.next_run()
        return None if directory is None else _Run(trainer, directory)
    except Exception as error:
        runs.complain(error)
        return None


@runs.guard
class _Run(TrainerCallback):
    """One training of a Trainer: where its checkpoints are, and which of them are complete."""

    def __init__(self, trainer: Any, directory: Path) -> None:
        self._trainer, self._directory = trainer, directory
        self._is_ending = False
        self.newest = runs.resume(directory, _NAMES)
        """The checkpoint that it goes on from; None: it begins at step 0."""
        self._save = trainer._save_checkpoint  # noqa: SLF001
        output = Path(trainer.args.output_dir).absolute()
        self._is_moved = hasattr(trainer, "_get_output_dir") and not mounts.is_lasting(output)
        self._place = directory / _HIDDEN if self._is_moved else output
        if writable() is None:
            return
        if self._is_moved:
            trainer._get_output_dir = lambda *_, **__: str(self._place)  # noqa: SLF001
        trainer._save_checkpoint = self.save  # noqa: SLF001
        trainer.add_callback(self)

    def end(self) -> None:
        """Leave the Trainer as it was."""
        for name in ("_get_output_dir", "_save_checkpoint"):
            vars(self._trainer).pop(name, None)
        self._trainer.remove_callback(self)
        release()

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """Have the Trainer save and stop when the training must end; after its last step it ends by itself."""
        if due(state.global_step) and ending() and state.global_step < state.max_steps:
            self._is_ending = True
            control.should_save, control.should_evaluate, control.should_training_stop = True, False, True

    def on_epoch_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """End, now that it is saved."""
        if self._is_ending:
            end()

    def save(self, model: Any, trial: Any = None, *given: Any, **options: Any) -> None:
        """Save as the Trainer does, give it its name when it is complete, and delete the oldest ones only then."""
        arguments, step = self._trainer.args, self._trainer.state.global_step
        name, ours = f"checkpoint-{step}", group()
        key = saving.turn(ours)
        changed: dict[str, Any] = {"save_total_limit": None}
        if self._is_moved:
            changed["save_only_model"] = False  # else the training could not go on from it
        stated = {each: getattr(arguments, each, None) for each in changed}
        own: list[Exception] = []

        def save() -> None:
            _set(arguments, changed)
            try:
                self._save(model, trial, *given, **options)
            except Exception as error:
                own.append(error)
                raise
            finally:
                _set(arguments, stated)

        try:
            saving.first(ours, f"{key}/begin", lambda: self._forget(name))
            saving.every(ours, f"{key}/write", save)
            saving.first(ours, f"{key}/end", lambda: self._name(name))
        except Exception as error:
            if own and not self._is_moved:
                raise  # it is where the script wants it; elsewhere, it must not end the training
            saving.say_failed(step, self._directory, error)
            if self._is_moved and (ours is None or ours.rank == 0):
                shutil.rmtree(self._place, ignore_errors=True)  # others may need the space
        else:
            self._conclude(step, name)

    def _conclude(self, step: int, name: str) -> None:
        trainer, final = self._trainer, self._directory / name
        if trainer.state.best_model_checkpoint == str(self._place / name):
            trainer.state.best_model_checkpoint = str(final)
        runs.succeeded(step, final)
        with suppress(OSError):
            if trainer.args.should_save:
                self._rotate()
            if self._is_moved and trainer.args.local_process_index == 0:
                self._link(final)

    def _forget(self, name: str) -> None:
        """See to it that what is written in place is not taken for complete."""
        self._directory.mkdir(parents=True, exist_ok=True)
        if self._is_moved:
            shutil.rmtree(self._place, ignore_errors=True)
        else:
            with suppress(FileNotFoundError):
                (self._directory / name).unlink()

    def _name(self, name: str) -> None:
        """Say that a checkpoint is complete.

        Raises:
            OSError: it cannot be made lasting.
        """
        written, final = self._place / name, self._directory / name
        if not self._is_moved:
            store.sync_tree(written)
            final.symlink_to(written)
            return
        state = self._trainer.state
        best = state.best_model_checkpoint
        if best == str(written):
            state.best_model_checkpoint = str(final)
            state.save_to_json(str(written / _STATE))
            state.best_model_checkpoint = best
        written.rename(store.partial(self._directory, name))
        store.finish(self._directory, name)

    def _rotate(self) -> None:
        """Delete old checkpoints with the function of the Trainer, and keep the best one as it does."""
        trainer, arguments = self._trainer, self._trainer.args
        limit, stated = arguments.save_total_limit, {"save_total_limit": arguments.save_total_limit}
        place = self._directory if self._is_moved else self._place
        if limit is None and self._is_moved:
            limit = keep()
        module = sys.modules["transformers.trainer"]
        if hasattr(module, "rotate_checkpoints"):
            best = trainer.state.best_model_checkpoint
            module.rotate_checkpoints(str(place), limit, best, use_mtime=not self._is_moved)
            return
        _set(arguments, {"save_total_limit": limit})
        try:
            trainer._rotate_checkpoints(use_mtime=not self._is_moved, output_dir=str(place))  # noqa: SLF001
        finally:
            _set(arguments, stated)

    def _link(self, path: Path) -> None:
        """Have the script find the checkpoint where it expects it."""
        output = Path(self._trainer.args.output_dir)
        output.mkdir(parents=True, exist_ok=True)
        for each in output.glob(_NAMES[0]):
            if each.is_symlink() and (each.name == path.name or not each.exists()):
                each.unlink()
        (output / path.name).symlink_to(path)


def _set(arguments: Any, values: dict[str, Any]) -> None:
    """Set arguments of the Trainer, which some versions freeze."""
    for name, value in values.items():
        object.__setattr__(arguments, name, value)
