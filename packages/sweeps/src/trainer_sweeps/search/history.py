"""The trials of a sweep, as the search sees them."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from trainer_sweeps.api.optimizationjob import Direction, TrialState
from trainer_sweeps.search.space import Space

_FAR: Final = 10.0
"""How far values that are worse than the median are distinguished, as a multiple of its distance from the best one."""


@dataclass(frozen=True, slots=True)
class PastTrial:
    """A trial that was begun."""

    number: int
    state: TrialState
    assignment: Mapping[str, str]
    value: float | None = None
    """Value of the objective; None while it runs, and of one that has failed."""
    points: tuple[tuple[int, float], ...] = ()
    """Its curve, pairs of step and value, by step."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What an algorithm learns from one trial."""

    number: int
    state: TrialState
    """Running, Succeeded or Pruned."""
    places: tuple[float, ...]
    """Where it is in the space, for each dimension."""
    cost: float = math.inf
    """Its value, or with the direction Maximize the negative of it: a smaller one is better. Of a trial that was
    pruned, the last one that it has reported. Infinite while it runs."""
    step: int = 0
    """The last step that a pruned trial has reported."""

    @property
    def has_ended(self) -> bool:
        """Whether there is a value to learn from."""
        return self.state is not TrialState.RUNNING

    @property
    def rank(self) -> tuple[float, ...]:
        """What the better of two trials has the lesser of: those that succeeded by value, then the pruned by step."""
        return (0, self.cost) if self.state is TrialState.SUCCEEDED else (1, -self.step, self.cost)


def observations(space: Space, direction: Direction, history: Sequence[PastTrial]) -> list[Observation]:
    """What can be learned from the history, by the numbers of the trials, in whatever order they are given.

    Trials that have failed teach nothing: what they lacked may have been memory, or luck. Left out as well is a trial
    whose assignment was edited so that a parameter is missing or no value of the space, and one whose value is not
    finite. A number beyond its bounds counts as the bound; parameters that the space does not have are ignored.
    """
    learned = (_observation(space, direction, trial) for trial in sorted(history, key=lambda trial: trial.number))
    return [observation for observation in learned if observation is not None]


def cost_of(value: float, direction: Direction) -> float:
    """A number that is smaller for a better value; infinite for what is not a number."""
    if math.isnan(value):
        return math.inf
    return value if direction is Direction.MINIMIZE else -value


def tamed(learned: Sequence[Observation]) -> list[Observation]:
    """The trials with costs from 0 to 1, for models that see more than ranks; the pruned as if they had succeeded.

    All that are far worse than the median are alike: one training that diverges would leave no difference between the
    others.
    """
    costs = [observation.cost for observation in learned if observation.has_ended]
    best, median, worst = min(costs), statistics.median(costs), max(costs)
    if median > best:
        worst = min(worst, median + _FAR * (median - best))
    width = worst / 2 - best / 2  # the whole may be more than a float holds
    return [
        dataclasses.replace(
            observation,
            state=TrialState.SUCCEEDED,
            cost=min((observation.cost / 2 - best / 2) / width, 1.0) if width > 0 else 0.0,
        )
        if observation.has_ended
        else observation
        for observation in learned
    ]


def _observation(space: Space, direction: Direction, trial: PastTrial) -> Observation | None:
    if trial.state is TrialState.FAILED:
        return None
    texts = [trial.assignment.get(name) for name in space]
    places = [
        None if text is None else dimension.place_of(text)
        for dimension, text in zip(space.values(), texts, strict=True)
    ]
    known = tuple(place for place in places if place is not None)
    if len(known) < len(places):
        return None
    if trial.state is TrialState.RUNNING:
        return Observation(trial.number, trial.state, known)
    step, value = 0, trial.value
    if trial.state is TrialState.PRUNED and trial.points:
        step, value = trial.points[-1]
    if value is None or not math.isfinite(value):
        return None
    return Observation(trial.number, trial.state, known, cost_of(value, direction), step)
