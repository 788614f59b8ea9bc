"""How much each parameter of a sweep has to do with the value of its objective.

Another distribution may know better: the first one that announces itself in the entry-point group `trainer.importance`
is asked, with the `spec` of the OptimizationJob and its ended trials as `status.trials` has them. It blocks as long as
it likes, and gives shares that sum to 1, or None where it cannot tell. Else each parameter has an absolute correlation
of ranks, which knows nothing of parameters that matter together.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from typing import Final, TypeAlias

from trainer.api.optimization import MOST_TRIALS
from trainer.kube.logger import get_logger
from trainer.kube.objects import Object, mapping_at
from trainer_dashboard.sweep.rows import finite, parameters_of

log = get_logger(__name__)

Importances: TypeAlias = Callable[[Object, Sequence[Object]], "dict[str, float] | None"]

GROUP: Final = "trainer.importance"
LEAST_TRIALS: Final = 5
"""Succeeded trials below which nothing can be said."""


def importance_of(spec: Object, trials: Sequence[Object]) -> Object:
    """The importance of each parameter by name, from 0 to 1, and by which `method`; none with few trials. Blocks.

    Args:
        spec: of the OptimizationJob.
        trials: those that have ended, as in its status.
    """
    told = [
        each
        for each in trials[:MOST_TRIALS]
        if each.get("state") == "Succeeded" and finite(each.get("value")) is not None
    ]
    if len(told) < LEAST_TRIALS:
        return {"method": "", "least": LEAST_TRIALS, "of": {}}
    shares = _asked(spec, told)
    if shares is not None:
        return {"method": "share", "least": LEAST_TRIALS, "of": shares}
    return {"method": "correlation", "least": LEAST_TRIALS, "of": correlations(spec, told)}


def correlations(spec: Object, trials: Sequence[Object]) -> dict[str, float]:
    """The absolute correlation of the ranks of each parameter with those of the values.

    Of a categorical parameter it is the correlation ratio, less what so many choices would have by chance.
    """
    values = ranks([finite(each.get("value")) or 0.0 for each in trials])
    found: dict[str, float] = {}
    for index, parameter in enumerate(parameters_of(spec)):
        texts = [_at(each.get("parameterValues"), index) for each in trials]
        numbers = [finite(text) for text in texts]
        if mapping_at(parameter, "searchSpace").get("categorical") or None in numbers:
            found[str(parameter.get("name"))] = _ratio(texts, values)
        else:
            found[str(parameter.get("name"))] = _correlation(ranks([each or 0.0 for each in numbers]), values)
    return found


def ranks(values: Sequence[float]) -> list[float]:
    """The rank of each value, from 1; equal ones share the mean of their ranks."""
    order = sorted(range(len(values)), key=values.__getitem__)
    found = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end < len(order) and values[order[end]] == values[order[start]]:
            end += 1
        for place in order[start:end]:
            found[place] = (start + 1 + end) / 2
        start = end
    return found


def _asked(spec: Object, trials: Sequence[Object]) -> dict[str, float] | None:
    """What another distribution says; None where none does."""
    for point in entry_points(group=GROUP):
        try:
            importances: Importances = point.load()
            shares = importances(spec, trials)
        except Exception as error:  # of code of others: the page shows what it knows itself
            log.warning("could not ask for the importance of parameters", by=point.value, error=repr(error))
            continue
        if shares is not None and all(map(math.isfinite, shares.values())):
            return {name: min(max(float(share), 0.0), 1.0) for name, share in shares.items()}
    return None


def _correlation(first: Sequence[float], second: Sequence[float]) -> float:
    mean = (len(first) + 1) / 2
    both = sum((x - mean) * (y - mean) for x, y in zip(first, second, strict=True))
    scale = math.sqrt(sum((x - mean) ** 2 for x in first) * sum((y - mean) ** 2 for y in second))
    return min(abs(both / scale), 1.0) if scale else 0.0


def _ratio(choices: Sequence[str], values: Sequence[float]) -> float:
    by_choice: defaultdict[str, list[float]] = defaultdict(list)
    for choice, value in zip(choices, values, strict=True):
        by_choice[choice].append(value)
    mean = sum(values) / len(values)
    whole = sum((value - mean) ** 2 for value in values)
    if not whole or len(by_choice) in {1, len(values)}:
        return 0.0
    within = sum((value - sum(of) / len(of)) ** 2 for of in by_choice.values() for value in of)
    chance = (len(values) - 1) / (len(values) - len(by_choice))
    return math.sqrt(max(1 - within / whole * chance, 0.0))


def _at(values: object, index: int) -> str:
    return str(values[index]) if isinstance(values, list) and index < len(values) else ""
