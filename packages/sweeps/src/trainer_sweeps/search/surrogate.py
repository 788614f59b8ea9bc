"""TPE and Gaussian processes: Optuna's samplers, over a study that is made of the history for each trial."""

from __future__ import annotations

import importlib
import logging
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from trainer_sweeps.api.optimizationjob import TrialState
from trainer_sweeps.search.history import Observation, tamed
from trainer_sweeps.search.independent import number_from
from trainer_sweeps.search.space import AlgorithmUnavailableError, Choices, Dimension, Integers, Space

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler
    from optuna.study import Study
    from optuna.trial import FrozenTrial

_MOST_STEPS: Final = 10_000
"""Integers of a dimension for which the sampler sees each one; beyond, they are numbers without steps to it."""
_LOGGING: Final = threading.Lock()
_TORCH: Final = threading.Lock()


def tpe_places(space: Space, seed: int, number: int, learned: Sequence[Observation]) -> list[float]:
    """The tree-structured Parzen estimator; trials that run count as bad ones, so that others are not near them.

    Over all dimensions at once, as Optuna 5 does without arguments: it found better values than one dimension at a time
    where parameters depend on each other, and no worse ones elsewhere, in half of the time.
    """
    import optuna  # noqa: PLC0415 - slow to load, and needed by sweeps alone

    return _places(space, learned, optuna.samplers.TPESampler(seed=_seed(seed, number), n_startup_trials=1))


def gp_places(space: Space, seed: int, number: int, learned: Sequence[Observation]) -> list[float]:
    """A Gaussian process, which expects of trials that run what it predicts of them.

    It sees pruned trials with their last value.

    Raises:
        AlgorithmUnavailableError: its libraries are missing.
    """
    for library in ("scipy", "torch"):
        try:
            importlib.import_module(library)
        except ImportError:
            raise AlgorithmUnavailableError(
                f"the algorithm gp needs {library}, which is not installed beside the manager: "
                "pip install 'trainer-sweeps[gp]' there, or choose tpe"
            ) from None
    import optuna  # noqa: PLC0415 - as above

    sampler = optuna.samplers.GPSampler(seed=_seed(seed, number), n_startup_trials=1)
    with _one_thread():
        return _places(space, tamed(learned), sampler)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Has torch compute without threads of its own.

    Over such small matrices they wait for each other, on busy processors up to ten times as long as the work takes.
    Their number is that of the process, so suggestions by this algorithm are made one after the other.
    """
    import torch  # noqa: PLC0415 - as above

    with _TORCH:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)


def _seed(seed: int, number: int) -> int:
    return number_from(seed, number) % 2**32


def _places(space: Space, learned: Sequence[Observation], sampler: BaseSampler) -> list[float]:
    """What the sampler suggests after these trials."""
    distributions = {name: _distribution(dimension) for name, dimension in space.items()}
    study = study_of(_frozen(observation, space, distributions) for observation in learned)
    study.sampler = sampler
    asked = study.ask(distributions).params
    return [_place_of(dimension, asked[name]) for name, dimension in space.items()]


def study_of(trials: Iterable[FrozenTrial]) -> Study:
    """A study in memory, which Optuna would log. The level of its logs is that of all threads: hence the lock."""
    import optuna  # noqa: PLC0415 - as above

    logger = logging.getLogger("optuna")
    with _LOGGING:
        level = logger.level
        logger.setLevel(logging.WARNING)
        try:
            study = optuna.create_study(sampler=optuna.samplers.RandomSampler(0))
        finally:
            logger.setLevel(level)
    study.add_trials(trials)
    return study


def _frozen(observation: Observation, space: Space, distributions: Mapping[str, BaseDistribution]) -> FrozenTrial:
    from optuna.trial import TrialState as State  # noqa: PLC0415 - as above
    from optuna.trial import create_trial  # noqa: PLC0415 - as above

    params = {
        name: _value_of(dimension, place)
        for (name, dimension), place in zip(space.items(), observation.places, strict=True)
    }
    match observation.state:
        case TrialState.RUNNING:
            return create_trial(state=State.RUNNING, params=params, distributions=dict(distributions))
        case TrialState.PRUNED:
            reached = {observation.step: observation.cost}
            return create_trial(
                state=State.PRUNED, params=params, distributions=dict(distributions), intermediate_values=reached
            )
        case _:
            return create_trial(value=observation.cost, params=params, distributions=dict(distributions))


def _distribution(dimension: Dimension) -> BaseDistribution:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution  # noqa: PLC0415

    if isinstance(dimension, Choices):
        return CategoricalDistribution(range(dimension.size))
    steps = _steps(dimension)
    return FloatDistribution(0, 1) if steps is None else IntDistribution(0, steps - 1)


def _steps(dimension: Dimension) -> int | None:
    """The number of values where the sampler sees each of them by its index, else None: it sees places."""
    if isinstance(dimension, Choices):
        return dimension.size
    if isinstance(dimension, Integers) and not dimension.is_log and dimension.size <= _MOST_STEPS:
        return dimension.size
    return None


def _value_of(dimension: Dimension, place: float) -> int | float:
    steps = _steps(dimension)
    return place if steps is None else min(int(place * steps), steps - 1)


def _place_of(dimension: Dimension, value: float) -> float:
    steps = _steps(dimension)
    return value if steps is None else (value + 0.5) / steps
