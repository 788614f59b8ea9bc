"""The parameters of the next trial."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from trainer_sweeps.api.optimizationjob import OptimizationJobSpec, SearchAlgorithm, Sequential
from trainer_sweeps.search.evolution import cma_es_places
from trainer_sweeps.search.history import Observation, PastTrial, observations
from trainer_sweeps.search.independent import grid_size, grid_trial, number_from, random_places, texts_at
from trainer_sweeps.search.space import AlgorithmUnavailableError, Choices, Space, space_of
from trainer_sweeps.search.surrogate import gp_places, tpe_places

__all__ = ["AlgorithmUnavailableError", "number_of_trials", "seed_of", "suggestion"]

_STARTUP_TRIALS: Final = 10


def number_of_trials(spec: OptimizationJobSpec) -> int:
    """How many trials the sweep has: `numTrials`, or the combinations of a grid that has fewer.

    Raises:
        AlgorithmUnavailableError: see `suggestion`.
    """
    if spec.search_algorithm.grid is None:
        return spec.num_trials
    return min(spec.num_trials, grid_size(space_of(spec.parameters)))


def seed_of(spec: OptimizationJobSpec, uid: str) -> int:
    """The seed of the algorithm; else one that is made of the uid of the OptimizationJob."""
    algorithm = spec.search_algorithm
    seeded = algorithm.random or _sequential(algorithm)
    return number_from(uid) if seeded is None or seeded.seed is None else seeded.seed


def suggestion(spec: OptimizationJobSpec, seed: int, history: Sequence[PastTrial], number: int) -> dict[str, str]:
    """The assignment of trial `number`, in the order of `spec.parameters`.

    Of random search and grids it depends on seed and number alone; of the others on the history too, though not on the
    order in which it is given. Until `startupTrials` have ended with a value, they draw as random search does.

    Raises:
        AlgorithmUnavailableError: a library is missing, or the parameters are not what the algorithm can search.
    """
    space = space_of(spec.parameters)
    algorithm = spec.search_algorithm
    if algorithm.grid is not None:
        return grid_trial(space, number)
    assignment = texts_at(space, random_places(space, seed, number))
    sequential = _sequential(algorithm)
    searched = _searched(space, algorithm)
    if sequential is not None and searched:
        learned = observations(searched, spec.objectives[0].direction, history)
        startup = sequential.startup_trials or _STARTUP_TRIALS
        if sum(observation.has_ended for observation in learned) >= startup:
            places = _places(algorithm, searched, seed, number, learned=learned, startup=startup)
            assignment |= texts_at(searched, places)
    return assignment


def _sequential(algorithm: SearchAlgorithm) -> Sequential | None:
    return algorithm.tpe or algorithm.gp or algorithm.cma_es


def _searched(space: Space, algorithm: SearchAlgorithm) -> Space:
    """The dimensions that are not left to chance: those with more than one value, and for CMA-ES numbers alone."""
    return {
        name: dimension
        for name, dimension in space.items()
        if dimension.size != 1 and not (algorithm.cma_es is not None and isinstance(dimension, Choices))
    }


def _places(
    algorithm: SearchAlgorithm, space: Space, seed: int, number: int, *, learned: Sequence[Observation], startup: int
) -> list[float]:
    if algorithm.cma_es is not None:
        return cma_es_places(seed, number, learned, startup)
    sample = gp_places if algorithm.gp is not None else tpe_places
    return sample(space, seed, number, learned)
