"""Which trial is stopped before its end, by the curves of all.

It is Optuna's `MedianPruner` and `SuccessiveHalvingPruner`, decided again each time, from the curves alone. Optuna
compares at each report with what was known then; here a trial is judged at one step, until it reaches the next step of
decision, by the trials that succeeded or by those that began before it. So the answer does not depend on when it is
asked for, and does not change with what begins later.

Trials need not report at the same steps, and long curves are thinned, so a value between two points of a curve lies on
the line between them. A value that is not a number is worse than any other.
"""

from __future__ import annotations

import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from operator import itemgetter

from trainer_sweeps.api.optimizationjob import (
    Aggregate,
    AshaPruning,
    MedianPruning,
    Objective,
    OptimizationJobSpec,
    TrialState,
)
from trainer_sweeps.search.history import PastTrial, cost_of

_step_of = itemgetter(0)


def prune_reason(spec: OptimizationJobSpec, trial: PastTrial, others: Sequence[PastTrial]) -> str | None:
    """Why a running trial is hopeless, in one sentence for people; None: it goes on.

    Args:
        spec: of the sweep.
        trial: the running one.
        others: all trials of the sweep, in any state; the trial itself among them does not count twice.
    """
    pruning = spec.prune_algorithm
    if pruning is None or not trial.points:
        return None
    curves = _Curves(spec.objectives[0], trial, [other for other in others if other.number != trial.number])
    if pruning.median is not None:
        return _by_median(pruning.median, curves)
    return None if pruning.asha is None else _by_halving(pruning.asha, curves)


def _by_median(pruning: MedianPruning, curves: _Curves) -> str | None:
    """As `MedianPruner` of Optuna: the best value so far against the median of those that succeeded, at that step."""
    finished = [other for other in curves.others if other.state is TrialState.SUCCEEDED]
    last = curves.trial.points[-1][0]
    if len(finished) < pruning.startup_trials or last < pruning.warmup_steps:
        return None
    passed = (last - pruning.warmup_steps) // pruning.interval_steps * pruning.interval_steps
    step = curves.first_step_from(pruning.warmup_steps + passed)
    values = [
        curves.value_at(other, step)
        for other in finished
        if other.points and other.points[0][0] <= step <= other.points[-1][0]
    ]
    if not values:
        return None
    best, median = curves.best_value(step), statistics.median(values)
    if curves.cost_of(best) <= curves.cost_of(median):
        return None
    return (
        f"The best {curves.metric} up to step {step}, {best:.6g}, is worse than the median {median:.6g} "
        f"of {len(values)} trial{'s' * (len(values) > 1)}"
    )


def _by_halving(pruning: AshaPruning, curves: _Curves) -> str | None:
    """As `SuccessiveHalvingPruner` of Optuna: the value at a rung against those of the trials that were there before.

    A trial is judged at the last rung that it has reached, and there only, by those with lower numbers. When all trials
    are equally fast, these are the decisions of Optuna. Otherwise one that overtakes an earlier trial does not count
    against it; so the first of those that run goes on in any case, and later ones never take all others with them.

    Where nothing was reported up to a rung, the first value counts there, as Optuna has it.
    """
    last, rung = curves.trial.points[-1][0], pruning.warmup_steps
    if last < rung:
        return None
    while (following := max(rung * pruning.reduction_factor, rung + pruning.interval_steps)) <= last:
        rung = following
    value = curves.value_at(curves.trial, rung)
    before = (other for other in curves.others if other.number < curves.trial.number)
    rivals = [other for other in before if other.points and other.points[-1][0] >= rung]
    values = sorted([value, *(curves.value_at(rival, rung) for rival in rivals)], key=curves.cost_of)
    promoted = max(len(values) // pruning.reduction_factor, 1)
    if curves.cost_of(value) <= curves.cost_of(values[promoted - 1]):
        return None
    among = "the best" if promoted == 1 else f"among the best {promoted}"
    return f"{curves.metric} {value:.6g} at step {rung} is not {among} of {len(values)} trials"


class _Curves:
    """The curve of the trial that is judged, and those of the others."""

    def __init__(self, objective: Objective, trial: PastTrial, others: Sequence[PastTrial]) -> None:
        self.metric = objective.metric
        self.trial = trial
        self.others = others
        self._direction = objective.direction
        self._aggregate = objective.aggregate

    def first_step_from(self, step: int) -> int:
        """The first step at or after this one with a value of the trial; there is one."""
        return self.trial.points[bisect_left(self.trial.points, step, key=_step_of)][0]

    def best_value(self, step: int) -> float:
        """The best value of the trial up to a step."""
        return min((value for at, value in self.trial.points if at <= step), key=self.cost_of)

    def value_at(self, trial: PastTrial, step: int) -> float:
        """The value of a trial that has got there, had it ended at this step; before its first point, that of it."""
        index = bisect_right(trial.points, step, key=_step_of)
        if index == 0:
            return trial.points[0][1]
        match self._aggregate:
            case Aggregate.MIN:
                return min(value for _, value in trial.points[:index])
            case Aggregate.MAX:
                return max(value for _, value in trial.points[:index])
            case Aggregate.LAST:
                before, value = trial.points[index - 1]
                after, following = trial.points[min(index, len(trial.points) - 1)]
                return value if before == step else value + (following - value) * (step - before) / (after - before)

    def cost_of(self, value: float) -> float:
        """A number that is smaller for a better value."""
        return cost_of(value, self._direction)
