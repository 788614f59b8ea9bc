"""Chooses parameters and hopeless trials in a worker thread: both compute, and the first choice imports Optuna."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Final, TypeVar

import anyio
from anyio.to_thread import run_sync

from trainer.api.metric_curve import number_of
from trainer.kube.bounded_dict import BoundedDict
from trainer.kube.clock import Clock
from trainer.kube.objects import uid_of
from trainer_sweeps.api.optimizationjob import OptimizationJobSpec, SearchAlgorithm, TrialState
from trainer_sweeps.controllers.metrics import SweepSeries
from trainer_sweeps.controllers.sweep import Sweep
from trainer_sweeps.search.history import PastTrial
from trainer_sweeps.search.pruning import prune_reason
from trainer_sweeps.search.suggestion import suggestion
from trainer_sweeps.trials.trial import Trial

Suggest = Callable[[OptimizationJobSpec, int, Sequence[PastTrial], int], Mapping[str, str]]
PruneReason = Callable[[OptimizationJobSpec, PastTrial, Sequence[PastTrial]], str | None]

_THREADS: Final = 2
"""Computations at once; more would take turns with the event loop for the interpreter."""
_REMEMBERED: Final = 8192
"""Trials whose last decision is remembered; that of the oldest is made again."""
_T = TypeVar("_T")


class Choice:
    """The search of all sweeps.

    Args:
        clock: measures.
        series: get how long a suggestion takes.
        suggest: `search.suggestion.suggestion`, or another in tests.
        reason: `search.pruning.prune_reason`, or another in tests.
    """

    def __init__(
        self, clock: Clock, series: SweepSeries, suggest: Suggest = suggestion, reason: PruneReason = prune_reason
    ) -> None:
        self._clock = clock
        self._series = series
        self._suggest = suggest
        self._reason = reason
        self._turns = anyio.Semaphore(_THREADS)
        self._judged: BoundedDict[str, int | None] = BoundedDict(_REMEMBERED)

    async def parameters(self, sweep: Sweep, number: int) -> Mapping[str, str]:
        """The parameters of a trial, which depend on nothing but the seed, its number and the history.

        Raises:
            AlgorithmUnavailableError: a library of the algorithm is missing.
            ValueError: the parameters cannot be chosen from.
        """
        history = [_past(trial) for trial in (*sweep.ended.values(), *sweep.running.values()) if trial.number != number]
        history.sort(key=lambda past: past.number)
        call = partial(self._suggest, sweep.spec, sweep.seed, history, number)
        chosen = await self._in_thread(lambda: self._measured(call, algorithm_of(sweep.spec.search_algorithm)))
        return {each.name: chosen[each.name] for each in sweep.spec.parameters}

    async def hopeless(self, sweep: Sweep) -> dict[str, str]:
        """Why which trials are stopped, by uid; a trial is looked at again once it has reported another step."""
        if sweep.spec.prune_algorithm is None or sweep.spec.suspend or sweep.is_finished:
            return {}
        steps = {uid_of(sweep.train_jobs[number]): trial.step for number, trial in sweep.going.items()}
        asked = {uid for uid, step in steps.items() if step is not None and self._judged.get(uid) != step}
        if not asked:
            return {}
        found = await self._in_thread(partial(self._reasons, sweep, asked))
        for uid in asked - found.keys():
            self._judged[uid] = steps[uid]
        return found

    def _reasons(self, sweep: Sweep, asked: Collection[str]) -> dict[str, str]:
        trials = {each.number: _with_points(each) for each in (*sweep.ended.values(), *sweep.running.values())}
        found: dict[str, str] = {}
        for number in sweep.going:
            uid = uid_of(sweep.train_jobs[number])
            if uid not in asked:
                continue
            others = [other for other_number, other in sorted(trials.items()) if other_number != number]
            if (reason := self._reason(sweep.spec, trials[number], others)) is not None:
                found[uid] = reason
        return found

    def _measured(self, call: Callable[[], _T], algorithm: str) -> _T:
        started = self._clock.monotonic()
        try:
            return call()
        finally:
            self._series.suggestion_seconds.labels(algorithm).observe(self._clock.monotonic() - started)

    async def _in_thread(self, function: Callable[[], _T]) -> _T:
        async with self._turns:
            return await run_sync(function)


def algorithm_of(algorithm: SearchAlgorithm) -> str:
    """The name of the algorithm, as its field has it."""
    return next(iter(algorithm.to_object()), "random")


def _past(trial: Trial) -> PastTrial:
    """A trial as it counts for the next one: by what its end has shown, not by what it has reported until now.

    How far a trial is when another one is chosen depends on the moment, and so would the choice.
    """
    value = number_of(trial.value) if trial.value is not None and trial.has_ended else None
    points: tuple[tuple[int, float], ...] = ()
    if trial.state is TrialState.PRUNED and trial.step is not None and value is not None:
        points = ((trial.step, value),)
    return PastTrial(trial.number, trial.state, dict(trial.assignment), value, points)


def _with_points(trial: Trial) -> PastTrial:
    """A trial as it is compared with others."""
    points = tuple((point.step, number_of(point.value)) for point in trial.curve.points)
    value = number_of(trial.value) if trial.value is not None and trial.has_ended else None
    return PastTrial(trial.number, trial.state, dict(trial.assignment), value, points)
