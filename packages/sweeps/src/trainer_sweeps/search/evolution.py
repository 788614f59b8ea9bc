"""CMA-ES, with the state of its distribution computed from the history again for each trial."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from trainer_sweeps.search.history import Observation
from trainer_sweeps.search.independent import number_from

_SIGMA: Final = 1 / 6
"""Deviation of the first distribution in each dimension, whose width is 1; Optuna's too."""


def cma_es_places(seed: int, number: int, learned: Sequence[Observation], startup: int) -> list[float]:
    """A place from the distribution as it is after the generations that the history fills.

    Optuna's sampler keeps its state in attributes of trials, which a TrainJob does not have: made of the history it
    would begin anew each time. Here the trials that have ended are the generations, by their numbers. The distribution
    begins at the best of the first ones, which were random: a sweep is short, and the middle of the space is seldom a
    good guess. It moves with each full generation of the others. A trial joins the generation of its number also when
    it ends late, so a distribution is moved by trials that are up to `parallelTrials` older than itself.

    Trials that run have no influence: the random numbers are made of seed and number, so each trial has others.
    """
    import numpy as np  # noqa: PLC0415 - slow to load, and needed by sweeps alone
    from cmaes import CMA  # noqa: PLC0415 - as above

    ended = [observation for observation in learned if observation.has_ended]
    first, others = ended[:startup], ended[startup:]
    mean = np.array(min(first, key=lambda observation: observation.rank).places)
    bounds = np.array([[0.0, 1.0]] * len(mean))
    distribution = CMA(mean, _SIGMA, bounds, n_max_resampling=10 * len(mean))
    size = distribution.population_size
    for begin in range(0, len(others) - size + 1, size):
        generation = sorted(others[begin : begin + size], key=lambda observation: observation.rank)
        distribution.tell([(np.array(observation.places), float(rank)) for rank, observation in enumerate(generation)])
    distribution.reseed_rng(number_from(seed, number) % 2**32)
    return [float(place) for place in distribution.ask()]
