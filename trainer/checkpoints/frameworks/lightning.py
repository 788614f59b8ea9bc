"""Checkpoints of Lightning, of both of its packages: `Trainer.fit` begins from the newest one unless it gets a path.

A checkpoint is saved when a ModelCheckpoint of the script saves one, as often as TRAINER_CHECKPOINT_SECONDS says, and
when the training must end. It has what those of Lightning have, and the random numbers of each rank. Lightning itself
would give a training that goes on within an epoch the batches of its beginning; here it gets those that are left.
"""

from __future__ import annotations

import functools
import inspect
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from trainer.checkpoints import RandomState, due, end, ending, ranks, release, writable
from trainer.checkpoints.frameworks import mounts, runs

_FILE = "lightning.ckpt"
_running: list[Any] = []
"""The training of this process that runs, if any does."""


def attach(module: Any) -> None:
    """Have each `fit` of a Trainer save and resume, unless the script says where it begins."""
    kind = module.Trainer
    original, package = kind.fit, kind.__module__.partition(".trainer.")[0]
    signature = inspect.signature(original)
    _watch_data(import_module(f"{package}.utilities.combined_loader").CombinedLoader)

    @functools.wraps(original)
    def fit(self: Any, *given: Any, **options: Any) -> Any:
        run, more = None, {}
        try:
            stated = signature.bind(self, *given, **options).arguments
            directory = runs.next_run() if stated.get("ckpt_path") is None and not _has_own(self) else None
            if directory is not None and not _running:
                run = _callback(package, self, directory)
                more = run.resumed(signature.parameters)
                given, options = (), {**stated, **more}
                options.pop("self")
        except Exception as error:
            runs.complain(error)
        try:
            return original(self, *given, **options)
        finally:
            if run is not None:
                run.end()

    kind.fit = fit


def _has_own(trainer: Any) -> bool:
    """Whether the script resumes by itself, does not train in earnest, or trains in copies of this process."""
    return bool(
        any(type(each).__name__ == "OnExceptionCheckpoint" for each in trainer.callbacks)
        or trainer.fast_dev_run
        or trainer._checkpoint_connector._user_managed  # noqa: SLF001
        or type(trainer.strategy.launcher).__name__ == "_MultiProcessingLauncher"
    )


def _watch_data(kind: Any) -> None:
    """Have the training know when the batches of an epoch begin."""
    original = kind.__iter__

    @functools.wraps(original)
    def begin(self: Any) -> Any:
        if _running and _running[0].is_data(self):
            return _running[0].iterate(self, original)
        return original(self)

    kind.__iter__ = begin


def _callback(package: str, trainer: Any, directory: Path) -> Any:
    """The callback of one training; it derives from the class of the package, of which there are two."""
    return type("CheckpointCallback", (_Run, import_module(package).Callback), {})(trainer, directory)


@runs.guard
class _Run:
    """One call of `fit`: where its checkpoints are, and what it goes on from."""

    def __init__(self, trainer: Any, directory: Path) -> None:
        self._trainer, self._directory = trainer, directory
        self._newest: Path | None = None
        self._random: dict[str, Any] | None = None
        self._at_epoch: dict[str, Any] = {}
        self._step, self._saved = -1, -1
        self._ends = False
        self._save = trainer.save_checkpoint
        _running.append(self)
        if writable() is not None:
            trainer.callbacks.insert(0, self)
            trainer.save_checkpoint = self.save_checkpoint

    def end(self) -> None:
        """Leave the Trainer as it was."""
        _running.clear()
        vars(self._trainer).pop("save_checkpoint", None)
        release()
        if self in self._trainer.callbacks:
            self._trainer.callbacks.remove(self)

    def resumed(self, parameters: Any) -> dict[str, Any]:
        """The arguments by which `fit` begins from the newest checkpoint; none without one."""
        found = runs.resume(self._directory)
        if found is None:
            return {}
        self._newest, self._saved = found.path, found.step
        # It is one of ours, and may hold hyperparameters of any class.
        trusted = {"weights_only": False} if "weights_only" in parameters else {}
        return {"ckpt_path": str(found.path / _FILE), **trusted}

    def is_data(self, loader: Any) -> bool:
        """Whether the batches are those of the training, and not of a validation."""
        return loader is self._trainer.fit_loop._combined_loader  # noqa: SLF001

    def iterate(self, loader: Any, begin: Callable[[Any], Any]) -> Any:
        """Begin with the batches of an epoch, in the order that they had and behind those that were trained on."""
        if self._newest is not None:
            self._read()
        if self._random is None:
            self._at_epoch = RandomState().state_dict()
            return begin(loader)
        count = self._count(loader)
        RandomState().load_state_dict(self._random["at_epoch" if count else "now"])
        self._at_epoch = RandomState().state_dict()
        for each in loader.flattened:
            _set_epoch(each, self._trainer.fit_loop.epoch_progress.current.processed)
        result = begin(loader)
        for _ in range(count):
            next(loader)
        if count:
            RandomState().load_state_dict(self._random["now"])
        return result

    def _read(self) -> None:
        """Read the random numbers of this rank; one that was not there before has none."""
        import torch  # noqa: PLC0415 it is there

        path, self._newest = self._newest, None
        try:
            if path is not None and _random_of(path).exists():
                self._random = torch.load(_random_of(path), weights_only=True)
        except Exception as error:
            runs.complain(error)

    def _count(self, loader: Any) -> int:
        """How many batches of the epoch were trained on; those of loaders with a state go on by themselves."""
        loop = self._trainer.fit_loop
        epoch, batches = loop.epoch_progress.current, loop.epoch_loop.batch_progress
        has_state = any(hasattr(each, "load_state_dict") for each in loader.flattened)
        if has_state or epoch.processed == epoch.ready or batches.is_last_batch:
            return 0
        return int(batches.current.ready)

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        """Keep the files of the script's callbacks, too: the best one may be of before the pod has come anew."""
        for number, callback in enumerate(trainer.checkpoint_callbacks):
            try:
                place = str(getattr(callback, "dirpath", None) or "")
                if place and "://" not in place and not mounts.is_lasting(Path(place)):
                    self._keep(Path(place), self._directory / f"files-{number}")
            except Exception as error:
                runs.complain(error)

    def _keep(self, place: Path, target: Path) -> None:
        """Let a directory of the script be one of the claim, as long as there is nothing in it."""
        target.mkdir(parents=True, exist_ok=True)
        if os.environ.get("LOCAL_RANK", "0") == "0" and not place.is_symlink():
            with suppress(OSError):  # there are files in it
                place.parent.mkdir(parents=True, exist_ok=True)
                if place.exists():
                    place.rmdir()
                place.symlink_to(target)

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Take the signal instead of Lightning, which would end the training without a checkpoint."""
        handler: Any = signal.getsignal(signal.SIGTERM)
        if type(handler).__name__ == "_HandlersCompose":
            others = [
                each for each in handler.signal_handlers if getattr(each, "__name__", "") != "_sigterm_notifier_fn"
            ]
            handler.signal_handlers = others
        self._step = trainer.global_step
        if due(self._step) and ending():
            end()

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        """The training goes on, unless it must end."""
        self._end_if()
        self._random = None

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Save when it is time, and end when the training must; gradients that add up are not cut in two."""
        if trainer.global_step == self._step:
            return
        self._step = trainer.global_step
        if due(self._step):
            self.save()
            self._ends = ending()

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        """Leave out the validation where the training must end."""
        self._end_if()

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """End after the last batch of an epoch where the training must."""
        self._end_if()

    def _end_if(self) -> None:
        """End once module and callbacks have seen the batch as well."""
        if self._ends:
            end()

    def save_checkpoint(self, filepath: Any, weights_only: Any = None, *given: Any, **options: Any) -> None:
        """Save what the script wants, and beside it what the training can go on from."""
        stated = () if weights_only is None else (weights_only,)
        self._save(filepath, *stated, *given, **options)
        if not weights_only and self._trainer.training:
            self.save()

    def save(self) -> None:
        """Save once per step."""
        step = self._trainer.global_step
        if step != self._saved:
            self._saved = step
            runs.write(self._directory, step, self._write)

    def _write(self, path: Path) -> None:
        import torch  # noqa: PLC0415 it is there

        self._save(path / _FILE)
        torch.save({"now": RandomState().state_dict(), "at_epoch": self._at_epoch}, _random_of(path))


def _set_epoch(loader: Any, epoch: int) -> None:
    """Tell samplers that shuffle by the number of the epoch; Lightning would tell them when the batches are read."""
    samplers: list[Any] = [getattr(loader, "sampler", None), getattr(loader, "batch_sampler", None)]
    samplers.append(getattr(samplers[1], "sampler", None))
    for sampler in samplers:
        if callable(getattr(sampler, "set_epoch", None)):
            sampler.set_epoch(epoch)


def _random_of(path: Path) -> Path:
    return path / f"random-{ranks.rank()}.pt"
