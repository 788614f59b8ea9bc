"""Reports what Keras does: `model.fit(..., callbacks=[TrainJobCallback()])`, with any backend, and with `tf.keras`.

The file works beside a copy of `report.py`, too: `from keras_callback import TrainJobCallback`. A copy must not be
called keras.py, which would hide Keras.
"""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, SupportsFloat

if __name__.startswith("trainer.progress."):
    from trainer.progress.report import report
else:
    from report import report  # type: ignore[import-not-found, no-redef]

if TYPE_CHECKING:
    from keras.callbacks import Callback


def _callback_class() -> type:
    """The class that callbacks derive from: of Keras 3, or of Keras 2 where that is in use."""
    packages = sorted(("keras", "tf_keras", "tensorflow.keras"), key=lambda name: name.split(".")[0] not in sys.modules)
    reasons: list[str] = []
    for package in packages:
        try:
            found: type = importlib.import_module(f"{package}.callbacks").Callback
        except ImportError as error:
            reasons.append(str(error))
        else:
            return found
    raise ImportError(f"the callback for Keras needs keras ({'; '.join(reasons)}): pip install keras")


if not TYPE_CHECKING:
    Callback = _callback_class()

_lock = threading.Lock()
"""A lock of the module and not of a callback: tuners copy callbacks, and locks cannot be copied."""


class TrainJobCallback(Callback):
    """Reports steps, epochs, and the metrics that the model was compiled with.

    A step is a batch. Metrics of validation, whose names begin with val_, count as evaluation metrics. A training that
    begins with `initial_epoch` reports its steps from there on, and one that stops early ends with the steps that it
    has made.
    """

    async_safe = True
    """Keras need not wait for a batch in order to call this: it may come from other threads, and later."""

    def __init__(self) -> None:
        super().__init__()
        self._is_training = False
        self._epoch = self._batch = 0
        self._batches: int | None = None
        """Of an epoch; of data without a length, known after the first one."""

    def on_train_begin(self, logs: Mapping[str, SupportsFloat] | None = None) -> None:
        """Begin to count."""
        self._is_training, self._epoch, self._batch = True, 0, 0
        self._batches = (self.params or {}).get("steps")

    def on_epoch_begin(self, epoch: int, logs: Mapping[str, SupportsFloat] | None = None) -> None:
        """Report which epoch begins; the first one may be a later one."""
        self._epoch, self._batch = epoch, 0
        self._report()

    def on_train_batch_end(self, batch: int, logs: Mapping[str, SupportsFloat] | None = None) -> None:
        """Report a step."""
        with _lock:
            if batch >= self._batch:  # else another thread has overtaken this one
                self._batch = batch + 1
                self._report(train_metrics=logs)

    def on_epoch_end(self, epoch: int, logs: Mapping[str, SupportsFloat] | None = None) -> None:
        """Report the epoch, with what validation has measured after it."""
        if self._batches is None and not getattr(self.model, "stop_training", False):
            self._batches = self._batch
        if self._batches is not None and self._batch >= self._batches:  # else the training was stopped in the middle
            self._epoch, self._batch = epoch + 1, 0
        logs = logs or {}
        self._report(
            train_metrics={name: value for name, value in logs.items() if not name.startswith("val_")},
            eval_metrics={name: value for name, value in logs.items() if name.startswith("val_")},
        )

    def on_test_end(self, logs: Mapping[str, SupportsFloat] | None = None) -> None:
        """Report an evaluation apart from any training; within one, the end of the epoch does."""
        if not self._is_training:
            report(eval_metrics=logs, force=True)

    def on_train_end(self, logs: Mapping[str, SupportsFloat] | None = None) -> None:
        """Report where the training has ended, which may be early."""
        self._is_training = False
        self._report(force=True)

    def _report(
        self,
        *,
        train_metrics: Mapping[str, SupportsFloat] | None = None,
        eval_metrics: Mapping[str, SupportsFloat] | None = None,
        force: bool = False,
    ) -> None:
        batches, epochs = self._batches, (self.params or {}).get("epochs")
        known = batches is not None or self._epoch == 0
        report(
            current_step=self._epoch * (batches or 0) + self._batch if known else None,
            total_steps=batches * epochs if batches and epochs else None,
            current_epoch=self._epoch,
            total_epochs=epochs,
            train_metrics=train_metrics,
            eval_metrics=eval_metrics,
            force=force,
        )
