"""Checkpoints of Keras 3, with any of its backends: `fit` begins from the newest one, also within an epoch.

A checkpoint is saved as often as TRAINER_CHECKPOINT_SECONDS says, at the end of `fit`, and when the training must end.
It has the weights, the state of the optimizer and of the metrics, and the random numbers of Python, NumPy and PyTorch.
What Keras gives no access to begins anew: the state of other callbacks, the history of earlier epochs, and the order in
which TensorFlow shuffles. A `fit` in several processes, a BackupAndRestore of the script and its `initial_epoch` are
left alone.
"""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from keras import ops
from keras.callbacks import Callback

from trainer.checkpoints import RandomState, due, end, ending, release, writable
from trainer.checkpoints.frameworks import runs

_WEIGHTS, _SEEDS, _METRICS, _POSITION = "model.weights.h5", "seeds.npz", "metrics.npz", "position.json"
_running: list[_Run] = []
"""The training of this process that runs, if any does."""


def attach(module: Any) -> None:
    """Have each `fit` save and resume: its list of callbacks, which is the one with a history, gets one more."""
    original = module.CallbackList.__init__
    _watch_data(import_module("keras.src.trainers.epoch_iterator").EpochIterator)

    @functools.wraps(original)
    def init(self: Any, callbacks: Any = None, add_history: bool = False, *more: Any, **options: Any) -> None:
        if add_history:
            callbacks = _with_checkpoints(callbacks, sys._getframe(1))  # noqa: SLF001
        original(self, callbacks, add_history, *more, **options)

    module.CallbackList.__init__ = init


def _with_checkpoints(callbacks: Any, caller: Any) -> Any:
    try:
        given = list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks] if callbacks else []
        while caller is not None and caller.f_code.co_name != "fit":
            caller = caller.f_back
        fit = {} if caller is None else caller.f_locals
        has_own = any(type(each).__name__ == "BackupAndRestore" for each in given) or fit.get("initial_epoch")
        if "epoch_iterator" in fit and not has_own and not _is_one_of_several():
            directory = runs.next_run()
            if directory is not None and writable() is not None:
                _running[:] = [_Run(directory, fit["epoch_iterator"])]
                return [*given, _running[0]]
    except Exception as error:
        runs.complain(error)
    return callbacks


def _is_one_of_several() -> bool:
    """Whether other processes train the same model: Keras has no way to agree with them."""
    jax, distributed = sys.modules.get("jax"), sys.modules.get("torch.distributed")
    if os.environ.get("TF_CONFIG") or (jax is not None and jax.process_count() > 1):
        return True
    return distributed is not None and distributed.is_available() and distributed.is_initialized()


def _watch_data(kind: Any) -> None:
    """Leave out the batches of an epoch that were trained on, and look after each of the others."""
    original = kind._enumerate_iterator  # noqa: SLF001

    @functools.wraps(original)
    def enumerate_iterator(self: Any) -> Iterator[Any]:
        if _running and _running[0].data is self:
            return _running[0].steps(lambda: original(self))
        return original(self)  # type: ignore[no-any-return]

    kind._enumerate_iterator = enumerate_iterator  # noqa: SLF001


@runs.guard
class _Run(Callback):
    """One call of `fit`: where its checkpoints are, and how far it is."""

    def __init__(self, directory: Path, data: Any) -> None:
        super().__init__()
        self._directory, self.data = directory, data
        self._newest: Path | None = None
        self._random: dict[str, Any] = {}
        self._at_epoch: dict[str, Any] = {}
        self._step = self._epoch = self._batch = 0
        """Of the whole training, completed; the epoch and the batch of it that come next."""
        self._skipped = 0
        self._is_saved = True
        self._is_ending = False

    def on_train_begin(self, logs: Any = None) -> None:
        """Load the newest checkpoint."""
        found = runs.resume(self._directory)
        if found is not None:
            self._load(found.step, found.path)

    def _load(self, step: int, path: Path) -> None:
        position = json.loads((path / _POSITION).read_text(encoding="utf-8"))
        with suppress(Exception):  # then a model that has been built begins its metrics anew
            self.model._symbolic_build(iterator=self.data)  # noqa: SLF001 TensorFlow would do so at the first step
            self.data.reset()
        if self.model.optimizer is not None and not self.model.optimizer.built:
            self.model.optimizer.build(self.model.trainable_variables)
        self.model.load_weights(str(path / _WEIGHTS))
        _assign(path / _SEEDS, self._seeds())
        self._newest, self._random = path, position["random"]
        self._step, self._epoch, self._skipped = step, position["epoch"], position["batch"]
        self.model._initial_epoch = self._epoch  # noqa: SLF001

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Have the same random numbers as before."""
        self.model._initial_epoch = None  # noqa: SLF001 it would count for later calls, too
        self._epoch, self._batch = epoch, 0
        if self._random:
            RandomState().load_state_dict(self._random["at_epoch" if self._skipped else "now"])
            if self._skipped and self._newest is not None:
                _assign(self._newest / _METRICS, self.model.metrics_variables)
        self._at_epoch = RandomState().state_dict()

    def steps(self, original: Callable[[], Iterator[Any]]) -> Iterator[Any]:
        """The batches of an epoch that are left; each has been trained on when the next one is asked for."""
        count, self._skipped = self._skipped, 0
        if count:
            batches = original()
            if _skip(batches, count):
                self._batch = count
                RandomState().load_state_dict(self._random["now"])
            else:
                batches = original()  # there is less data than before
        else:
            batches = original()
        self._random = {}
        for first, last, iterator in batches:
            yield first, last, iterator
            self._step, self._batch, self._is_saved = self._step + last + 1 - first, last + 1, False
            if due(self._step):
                self._save()
                if ending() and not self._is_last(last):
                    end()
                self._is_ending = ending()

    def _is_last(self, batch: int) -> bool:
        return batch + 1 >= (self.data.num_batches or float("inf"))

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Save what belongs to the epoch, such as its validation, when the training must end after it."""
        self._epoch, self._batch = epoch + 1, 0
        if self._is_ending:
            self._save()
            end()

    def on_train_end(self, logs: Any = None) -> None:
        """Save the trained model: a script that trains others after it goes on with those."""
        _running.clear()
        self.model._initial_epoch = None  # noqa: SLF001
        if not self._is_saved:
            self._save()
        release()

    def _save(self) -> None:
        self._is_saved = True
        runs.write(self._directory, self._step, self._write)

    def _write(self, path: Path) -> None:
        if hasattr(self.model, "jax_state_sync"):
            self.model.jax_state_sync()
        self.model.save_weights(str(path / _WEIGHTS))
        np.savez(path / _SEEDS, *map(ops.convert_to_numpy, self._seeds()))
        np.savez(path / _METRICS, *map(ops.convert_to_numpy, self.model.metrics_variables))
        is_over = self._is_last(self._batch - 1)
        position = {
            "epoch": self._epoch + 1 if is_over else self._epoch,
            "batch": 0 if is_over else self._batch,
            "random": {"now": RandomState().state_dict(), "at_epoch": self._at_epoch},
        }
        (path / _POSITION).write_text(json.dumps(position), encoding="utf-8")

    def _seeds(self) -> list[Any]:
        """The generators of layers such as Dropout, which Keras leaves out of the weights."""
        others = {id(each) for each in (*self.model.weights, *self.model.metrics_variables)}
        return [each for each in self.model.variables if id(each) not in others]


def _assign(path: Path, variables: Sequence[Any]) -> None:
    """Give variables their values; those of another model stay as they are."""
    with np.load(path) as found:
        if len(variables) == len(found.files):
            for variable, name in zip(variables, found.files):  # noqa: B905 Python 3.8
                variable.assign(found[name])


def _skip(batches: Iterator[Any], count: int) -> bool:
    """Leave batches out; False where there are not as many."""
    try:
        while count > 0:
            first, last, iterator = next(batches)
            for _ in range(last + 1 - first):
                next(iterator)
            count -= last + 1 - first
    except (StopIteration, RuntimeError):
        return False
    return True
