"""Reports what a Lightning Trainer does: `Trainer(..., callbacks=[TrainJobCallback()])`.

Both packages are served, `lightning` and `pytorch_lightning`. The file works beside a copy of `report.py`, too: `from
lightning_callback import TrainJobCallback`. A copy must not be called lightning.py, which would hide Lightning.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, SupportsFloat

if __name__.startswith("trainer.progress."):
    from trainer.progress.report import report
else:
    from report import report  # type: ignore[import-not-found, no-redef]

if TYPE_CHECKING:
    from lightning.pytorch import Callback, LightningModule, Trainer


def _callback_class() -> type:
    """The class that callbacks derive from, of the package that is in use if both are installed."""
    packages = sorted(("lightning.pytorch", "pytorch_lightning"), key=lambda package: package not in sys.modules)
    reasons: list[str] = []
    for package in packages:
        try:
            found: type = importlib.import_module(package).Callback
        except ImportError as error:
            reasons.append(str(error))
        else:
            return found
    raise ImportError(f"the callback for Lightning needs lightning ({'; '.join(reasons)}): pip install lightning")


if not TYPE_CHECKING:
    Callback = _callback_class()


class TrainJobCallback(Callback):
    """Reports steps, epochs, and what the module logs.

    What validation logs counts as evaluation metrics, everything else as training metrics; `log_every_n_steps` of the
    Trainer says how often. Steps are those of the optimizer, and batches where the module calls its optimizers by
    itself. A training that goes on from a checkpoint reports its steps from there on, and one that stops early ends
    with the steps that it has made.
    """

    def __init__(self) -> None:
        super().__init__()
        self._is_training = False
        self._total: int | None = None
        self._epoch = 0
        self._before: dict[str, object] = {}
        self._eval: set[str] = set()

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Report how many steps there are, and how many a checkpoint has already."""
        self._is_training, self._epoch = True, trainer.current_epoch
        self._total = _total_steps(trainer, pl_module)
        self._report(trainer, pl_module)

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Count the steps again: every epoch may have other data."""
        self._epoch = trainer.current_epoch
        self._total = _total_steps(trainer, pl_module)

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: object, batch: object, batch_idx: int
    ) -> None:
        """Report the step, with metrics if it is one that is logged."""
        is_logged = trainer.global_step % max(trainer.log_every_n_steps, 1) == 0
        self._report(trainer, pl_module, train_metrics=self._train_metrics(trainer) if is_logged else None)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Report the epoch, and the metrics of all its steps."""
        if trainer.is_last_batch:  # else the training was stopped in the middle
            self._epoch = trainer.current_epoch + 1
        self._report(trainer, pl_module, train_metrics=self._train_metrics(trainer))

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Remember the metrics of the training, to know those of the validation."""
        self._before = dict(trainer.callback_metrics)

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Report what the validation has logged."""
        # On all ranks, though one reports: to read a metric may be to add it up over all of them.
        metrics = trainer.callback_metrics
        if trainer.sanity_checking:
            return
        self._eval |= {name for name, value in metrics.items() if self._before.get(name) is not value}
        measured = {name: value for name, value in metrics.items() if name in self._eval}
        self._report(trainer, pl_module, eval_metrics=measured, force=not self._is_training)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Report where the training has ended, which may be early."""
        self._report(trainer, pl_module, force=True)
        self._is_training = False

    def _train_metrics(self, trainer: Trainer) -> dict[str, SupportsFloat]:
        return {name: value for name, value in trainer.callback_metrics.items() if name not in self._eval}

    def _report(
        self,
        trainer: Trainer,
        module: LightningModule,
        *,
        train_metrics: Mapping[str, SupportsFloat] | None = None,
        eval_metrics: Mapping[str, SupportsFloat] | None = None,
        force: bool = False,
    ) -> None:
        if not trainer.is_global_zero and trainer.local_rank > 0:
            return  # which of those that are left writes is up to report(): it is in the pod whose log is followed
        position: dict[str, int | None] = {}
        if self._is_training:  # else it only validates
            position = {
                "current_step": _step(trainer, module),
                "total_steps": self._total,
                "current_epoch": self._epoch,
                "total_epochs": trainer.max_epochs if (trainer.max_epochs or 0) > 0 else None,
            }
        report(**position, train_metrics=train_metrics, eval_metrics=eval_metrics, force=force)


def _step(trainer: Trainer, module: LightningModule) -> int:
    """Steps that are completed; a module with optimizers of its own makes several for each batch."""
    if module.automatic_optimization or trainer.max_steps > 0:
        return int(trainer.global_step)
    return int(trainer.fit_loop.total_batch_idx) + 1


def _total_steps(trainer: Trainer, module: LightningModule) -> int | None:
    """Steps of the whole training, in the same unit; None when only the training itself knows when it ends."""
    if module.automatic_optimization or trainer.max_steps > 0:
        try:
            total = trainer.estimated_stepping_batches
        except Exception:  # batches are accumulated differently from epoch to epoch
            return None
    else:
        total = trainer.num_training_batches * (trainer.max_epochs or -1)
    return int(total) if 0 < total < float("inf") else None
