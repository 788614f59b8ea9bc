"""What is wrong with a sweep although it fits the schema: the rules of the CRD, and what these cannot say."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from trainer.api.model import ApiModel
from trainer.api.optimization import variable_of
from trainer.kube.field_errors import OMITTED, FieldError, forbidden, invalid
from trainer_sweeps.api.spec import (
    GREATER_THAN_ZERO,
    GRID_CHOICES,
    LESS_THAN_MAX,
    NO_NAME,
    NO_TIME_TO_LIVE,
    ONE_OBJECTIVE,
    PARALLEL_TRIALS,
    Interval,
    OptimizationJobSpec,
    PositiveInterval,
    SearchSpace,
    exactly_one,
)

_LARGEST_INTEGER: Final = 2**53
"""Beyond it a double does not have every integer, and samplers compute with doubles."""
_NO_DOUBLE: Final = "must be within the range of a double: its magnitude is at most 1.8e308"
_TOO_WIDE: Final = "max - min must be within the range of a double: its magnitude is at most 1.8e308"
_NO_INTEGER: Final = "there is no integer between min and max: widen the interval, or set type to Float"
_INEXACT: Final = "bounds of integers must be between -2^53 and 2^53, within which doubles have every integer"
_EMPTY: Final = "must not be empty: results cannot have it; write a word such as none, which the program reads as empty"
_TIME_TO_LIVE: Final = "ttlSecondsAfterFinished"
_ZERO: Final = "must not have a NUL character: no environment variable can hold one"


def check_space(spec: OptimizationJobSpec) -> Iterator[FieldError]:
    """Errors of the parameters and of what is chosen for them, in time that is linear in their size."""
    if len(spec.objectives) > 1:
        yield invalid("spec.objectives", OMITTED, ONE_OBJECTIVE)
    yield from _one_member(spec.search_algorithm, "spec.searchAlgorithm")
    if spec.prune_algorithm is not None:
        yield from _one_member(spec.prune_algorithm, "spec.pruneAlgorithm")
    if spec.parallel_trials > spec.num_trials:
        yield invalid("spec.parallelTrials", spec.parallel_trials, PARALLEL_TRIALS)
    metadata = spec.train_job_template.metadata
    if metadata is not None and (metadata.name is not None or metadata.namespace is not None):
        yield forbidden("spec.trainJobTemplate.metadata", NO_NAME)
    if _TIME_TO_LIVE in spec.train_job_template.spec:
        yield forbidden(f"spec.trainJobTemplate.spec.{_TIME_TO_LIVE}", NO_TIME_TO_LIVE)
    is_grid = spec.search_algorithm.grid is not None
    others: dict[str, str] = {}
    for index, parameter in enumerate(spec.parameters):
        path = f"spec.parameters[{index}]"
        variable = variable_of(parameter.name)
        other = others.setdefault(variable, parameter.name)
        if other != parameter.name:
            rule = f"has the same environment variable as {other}, which is {variable}; rename one of them"
            yield invalid(f"{path}.name", parameter.name, rule)
        if is_grid and parameter.search_space.categorical is None:
            yield invalid(f"{path}.searchSpace", OMITTED, GRID_CHOICES)
        yield from _space_errors(parameter.search_space, f"{path}.searchSpace")


def _space_errors(space: SearchSpace, path: str) -> Iterator[FieldError]:
    yield from _one_member(space, path)
    for name, interval in (("uniform", space.uniform), ("logUniform", space.log_uniform)):
        if interval is not None and (error := _interval_error(interval, f"{path}.{name}")):
            yield error
    for index, choice in enumerate(space.categorical.choices if space.categorical is not None else ()):
        if not choice or "\0" in choice:
            yield invalid(f"{path}.categorical.choices[{index}]", choice, _ZERO if choice else _EMPTY)


def _interval_error(interval: Interval, path: str) -> FieldError | None:
    """The first error of an interval; the others follow from it."""
    least, most = float(interval.min), float(interval.max)
    for name, bound in (("min", least), ("max", most)):
        if not math.isfinite(bound):
            return invalid(f"{path}.{name}", getattr(interval, name), _NO_DOUBLE)
    if isinstance(interval, PositiveInterval) and least <= 0:
        return invalid(f"{path}.min", interval.min, GREATER_THAN_ZERO)
    if least >= most:
        return invalid(f"{path}.min", interval.min, f"{LESS_THAN_MAX}, which is {interval.max}")
    if interval.type == "Float":
        return None if math.isfinite(most - least) else invalid(path, OMITTED, _TOO_WIDE)
    if max(abs(least), abs(most)) > _LARGEST_INTEGER:
        return invalid(path, OMITTED, _INEXACT)
    return None if math.ceil(least) <= math.floor(most) else invalid(path, OMITTED, _NO_INTEGER)


def _one_member(choice: ApiModel, path: str) -> Iterator[FieldError]:
    """The error of an object that must have exactly one member."""
    fields = type(choice).model_fields
    if sum(getattr(choice, name) is not None for name in fields) != 1:
        yield invalid(path, OMITTED, exactly_one(tuple(str(field.alias) for field in fields.values())))
