"""Reports what XGBoost does: `xgboost.train(..., num_boost_round=100, callbacks=[TrainJobCallback(100)])`.

The file works beside a copy of `report.py`, too: `from xgboost_callback import TrainJobCallback`. A copy must not be
called xgboost.py, which would hide XGBoost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

try:
    from xgboost.callback import TrainingCallback
except ImportError as error:
    raise ImportError(f"the callback for XGBoost needs xgboost ({error}): pip install xgboost") from error

if __name__.startswith("trainer.progress."):
    from trainer.progress.report import report
else:
    from report import report  # type: ignore[import-not-found, no-redef]

if TYPE_CHECKING:
    from xgboost import Booster

_TRAIN = "train"


class TrainJobCallback(TrainingCallback):
    """Reports boosting rounds and what is evaluated after each.

    Metrics of data sets that are called `train...` count as training metrics, all others as evaluation metrics. A
    training that goes on from a model counts its rounds from there on.

    Args:
        rounds: of this call, as `num_boost_round` or `n_estimators` says.
    """

    def __init__(self, rounds: int) -> None:
        super().__init__()
        self._rounds = rounds
        self._done = self._total = 0

    def before_training(self, model: Booster) -> Booster:
        """Report how many rounds there are, and how many the model has already."""
        self._done = model.num_boosted_rounds()
        self._total = self._done + self._rounds
        report(current_step=self._done, total_steps=self._total)
        return model

    def after_iteration(
        self, model: Booster, epoch: int, evals_log: Mapping[str, Mapping[str, list[float] | list[tuple[float, float]]]]
    ) -> bool:
        """Report a round; never stops the training."""
        self._done += 1
        metrics: dict[bool, dict[str, float]] = {True: {}, False: {}}
        for data, values in evals_log.items():
            is_train = data.startswith(_TRAIN)
            for name, history in values.items():
                last = history[-1]
                shown = name if is_train or len(evals_log) <= 2 else f"{data}-{name}"
                metrics[is_train][shown] = last[0] if isinstance(last, tuple) else last
        report(
            current_step=self._done,
            total_steps=self._total,
            train_metrics=metrics[True] or None,
            eval_metrics=metrics[False] or None,
        )
        return False

    def after_training(self, model: Booster) -> Booster:
        """Report where the training has ended, which may be early."""
        report(current_step=self._done, total_steps=self._total, force=True)
        return model
