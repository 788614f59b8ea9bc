"""Reports what the Trainer of Hugging Face transformers does: `Trainer(..., callbacks=[TrainJobCallback()])`.

The file works beside a copy of `report.py`, too: `from huggingface_callback import TrainJobCallback`, if the copy is
called so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, SupportsFloat

try:
    from transformers import TrainerCallback
except ImportError as error:
    reason = f"the callback for Hugging Face needs transformers ({error}): pip install transformers accelerate"
    raise ImportError(reason) from error

if __name__.startswith("trainer.progress."):
    from trainer.progress.report import report
else:
    from report import report  # type: ignore[import-not-found, no-redef]

if TYPE_CHECKING:
    from transformers import TrainerControl, TrainerState, TrainingArguments

_LIMIT = 2**31
"""Epochs of a data set without a length are as many as an integer can say."""


class TrainJobCallback(TrainerCallback):
    """Reports steps, epochs, and what the Trainer logs and evaluates.

    A training that goes on from a checkpoint reports its steps from there on, and one that stops early ends with the
    steps that it has made. How often metrics come is `logging_steps` of the training arguments.
    """

    def __init__(self) -> None:
        self._train: dict[str, SupportsFloat] = {}
        self._eval: dict[str, SupportsFloat] = {}

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **others: object
    ) -> None:
        """Report how many steps there are, and how many a checkpoint has already."""
        self._train, self._eval = {}, {}
        _report(state)

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **others: object
    ) -> None:
        """Report the step."""
        _report(state)

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: Mapping[str, SupportsFloat] | None = None,
        **others: object,
    ) -> None:
        """Report loss, learning rate and whatever else is logged; evaluations are logged as well, and come later."""
        logged = {name: value for name, value in (logs or {}).items() if not name.startswith("eval_")}
        logged.pop("epoch", None)
        if logged:
            # The last words are about the whole training; the loss of the last steps is to stay beside them.
            self._train.update(logged)
            _report(state, train_metrics=self._train)

    def on_evaluate(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        metrics: Mapping[str, SupportsFloat] | None = None,
        **others: object,
    ) -> None:
        """Report an evaluation, beside those of other data sets."""
        measured = {name: value for name, value in (metrics or {}).items() if name != "epoch"}
        if not measured:
            return
        self._eval.update(measured)
        # They were logged a moment ago, under a prefix of their own perhaps.
        self._train = {name: value for name, value in self._train.items() if name not in measured}
        _report(state, train_metrics=self._train or None, eval_metrics=self._eval)

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **others: object
    ) -> None:
        """Report where the training has ended, which may be early."""
        _report(state, force=True)


def _report(
    state: TrainerState,
    *,
    train_metrics: Mapping[str, SupportsFloat] | None = None,
    eval_metrics: Mapping[str, SupportsFloat] | None = None,
    force: bool = False,
) -> None:
    if not (state.is_world_process_zero or state.is_local_process_zero):
        return  # which of those that are left writes is up to report(): it is in the pod whose log is followed
    position: dict[str, int | None] = {}
    if state.max_steps > 0:  # else it only evaluates
        position = {
            "current_step": state.global_step,
            "total_steps": state.max_steps,
            "current_epoch": int(state.epoch) if state.epoch is not None else None,
            "total_epochs": state.num_train_epochs if state.num_train_epochs < _LIMIT else None,
        }
    report(**position, train_metrics=train_metrics, eval_metrics=eval_metrics, force=force)
