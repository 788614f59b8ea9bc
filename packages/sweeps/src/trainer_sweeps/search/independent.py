"""Random and grid search, whose trials depend on nothing but the seed and their number."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence

from trainer_sweeps.search.space import AlgorithmUnavailableError, Choices, Space


def number_from(*parts: int | str) -> int:
    """A number of 64 bits that is made of the parts, the same in each process, and of others otherwise."""
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:8], "big")


def random_places(space: Space, seed: int, number: int) -> list[float]:
    """A random place in each dimension."""
    generator = random.Random(number_from(seed, number))  # noqa: S311 - to be reproduced
    return [generator.random() for _ in space]


def texts_at(space: Space, places: Sequence[float]) -> dict[str, str]:
    """The assignment of a trial at these places."""
    return {name: dimension.text_at(place) for (name, dimension), place in zip(space.items(), places, strict=True)}


def grid_trial(space: Space, number: int) -> dict[str, str]:
    """A combination of the grid: number - 1 in a system of numerals whose digits are the choices, the last one first.

    A grid is walked once; a number beyond its size begins from the start.
    """
    index, assignment = number - 1, dict[str, str]()
    for name, choices in reversed(_choices(space).items()):
        index, digit = divmod(index, choices.size)
        assignment[name] = choices.texts[digit]
    return {name: assignment[name] for name in space}


def grid_size(space: Space) -> int:
    """How many combinations there are."""
    size = 1
    for choices in _choices(space).values():
        size *= choices.size
    return size


def _choices(space: Space) -> dict[str, Choices]:
    choices = {name: dimension for name, dimension in space.items() if isinstance(dimension, Choices)}
    for name in sorted(space.keys() - choices.keys()):
        raise AlgorithmUnavailableError(
            f"a grid is made of categorical parameters, and {name} is none: list its values in a new sweep, or choose "
            "another algorithm"
        )
    return choices
