"""Parameters of an Experiment as those of an OptimizationJob."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Final, NamedTuple

from trainer.api.optimization import LONGEST_TEXT, MOST_CHOICES, MOST_PARAMETERS, variable_of
from trainer.kube.field_errors import OMITTED, invalid, required, too_long, too_many
from trainer.kube.objects import Object
from trainer_v1_jobs.katib.experiment import Parameter
from trainer_v1_jobs.katib.findings import Findings
from trainer_v1_jobs.katib.numbers import count_of, number_in, values_of, written

_LEAST_LOG: Final = {True: Decimal(1), False: Decimal("1e-10")}
"""What Katib takes for bounds of 0 and less of a logUniform, by whether the values are integers."""
_LARGEST_INTEGER: Final = 2**53
"""Samplers compute with doubles, which have every integer up to it."""
_NEAREST: Final = {"normal": "uniform", "logNormal": "logUniform"}


class _Range(NamedTuple):
    """Numbers between two bounds."""

    least: Decimal
    most: Decimal
    step: Decimal | None
    is_integer: bool


def parameters_of(parameters: list[Parameter], algorithm: str, findings: Findings) -> list[Object]:
    """`spec.parameters`; those that are refused are left out.

    Args:
        parameters: of the Experiment.
        algorithm: the member of searchAlgorithm that is set.
        findings: losses and errors are added to them.
    """
    path = "spec.parameters"
    if not parameters:
        findings.refuse(required(path, "there must be one at least"))
    if len(parameters) > MOST_PARAMETERS:
        findings.refuse(too_many(path, len(parameters), MOST_PARAMETERS))
        return []
    found: list[Object] = []
    names: dict[str, str] = {}
    for parameter in parameters:
        field, name = f"{path}[{parameter.name}]", parameter.name
        variable = variable_of(name)
        if len(name) > LONGEST_TEXT:
            findings.refuse(too_long(f"{field}.name", LONGEST_TEXT))
        elif variable in names:
            rule = f"must differ from {names[variable]} in more than case and signs: {variable} would be that of both"
            findings.refuse(invalid(f"{field}.name", name, rule))
        names.setdefault(variable, name)
        space = _space(parameter, algorithm, f"{field}.feasibleSpace", findings)
        if space:
            found.append({"name": name, "searchSpace": space})
    return found


def size_of(parameters: list[Object]) -> int:
    """The combinations of a grid."""
    return math.prod(len(each["searchSpace"]["categorical"]["choices"]) for each in parameters)


def _space(parameter: Parameter, algorithm: str, path: str, findings: Findings) -> Object | None:
    space = parameter.feasible_space
    if parameter.parameter_type in {"categorical", "discrete"}:
        for name, value in (("min", space.min), ("max", space.max), ("step", space.step)):
            if value:
                rule = f"must not be there for parameterType {parameter.parameter_type}; use list"
                findings.refuse(invalid(f"{path}.{name}", value, rule))
        return _choices(space.choices or [], path, findings)
    if space.choices:
        findings.refuse(invalid(f"{path}.list", space.choices, f"must not be there for {parameter.parameter_type}"))
    if (found := _range(parameter, path, findings)) is None:
        return None
    if algorithm == "grid":
        return _grid(found, parameter, path, findings)
    return _interval(found, parameter, algorithm, path, findings)


def _choices(choices: list[str], path: str, findings: Findings) -> Object | None:
    if not choices:
        findings.refuse(required(f"{path}.list"))
    elif len(choices) > MOST_CHOICES:
        findings.refuse(too_many(f"{path}.list", len(choices), MOST_CHOICES))
    elif (wrong := next((each for each in choices if not each or "\0" in each), None)) is not None:
        rule = "must not be empty or have a NUL; write a word such as none, which the program reads as empty"
        findings.refuse(invalid(f"{path}.list", wrong, rule))
    else:
        return _categorical(choices)
    return None


def _range(parameter: Parameter, path: str, findings: Findings) -> _Range | None:
    space, is_integer = parameter.feasible_space, parameter.parameter_type == "int"
    numbers: dict[str, Decimal | None] = {}
    for name, text in (("min", space.min), ("max", space.max), ("step", space.step)):
        numbers[name] = number_in(text, is_integer=is_integer) if text else None
        if text and numbers[name] is None:
            findings.refuse(invalid(f"{path}.{name}", text, "must be an integer" if is_integer else "must be a number"))
            return None
        if not text and name != "step":
            findings.refuse(required(f"{path}.{name}", f"a parameter of type {parameter.parameter_type} has bounds"))
            return None
    least, most, step = numbers["min"], numbers["max"], numbers["step"]
    assert least is not None
    assert most is not None
    if least > most:
        findings.refuse(invalid(f"{path}.min", space.min, f"must not be greater than max, which is {space.max}"))
        return None
    if is_integer and max(abs(least), abs(most)) > _LARGEST_INTEGER:
        findings.refuse(invalid(path, OMITTED, "integers must be between -2^53 and 2^53"))
        return None
    if not math.isfinite(float(most) - float(least)):
        findings.refuse(invalid(path, OMITTED, "max - min must be within the range of a double"))
        return None
    if step is not None and step <= 0:
        findings.refuse(invalid(f"{path}.step", space.step, "must be greater than 0"))
        return None
    return _Range(least, most, step, is_integer)


def _grid(found: _Range, parameter: Parameter, path: str, findings: Findings) -> Object | None:
    """A grid has choices alone, so its numbers are counted out as Katib does."""
    step = found.step or (Decimal(1) if found.is_integer else None)
    if step is None:
        findings.refuse(required(f"{path}.step", "a grid tries values one after the other"))
        return None
    count = count_of(found.least, found.most, step)
    if count > MOST_CHOICES:
        rule = f"gives {count} values, and a grid has at most {MOST_CHOICES} of a parameter; write a greater one"
        findings.refuse(invalid(f"{path}.step", parameter.feasible_space.step or "1", rule))
        return None
    return _categorical([*values_of(found.least, step, count)])


def _interval(found: _Range, parameter: Parameter, algorithm: str, path: str, findings: Findings) -> Object | None:
    space = parameter.feasible_space
    distribution = _distribution(parameter, path, findings)
    is_log = distribution == "logUniform"
    is_stepped = found.step is not None and not (found.is_integer and found.step == 1)
    if found.step is not None and is_stepped:
        count = count_of(found.least, found.most, found.step)
        if algorithm == "random" and not is_log and count <= MOST_CHOICES:
            return _categorical([*values_of(found.least, found.step, count)])
        rule = "is left out: all values between the bounds are tried; where only some will do, write them as a list"
        findings.lose(f"{path}.step", rule)
    least, text = found.least, space.min or ""
    if is_log and float(least) <= 0:
        least, text = _LEAST_LOG[found.is_integer], ""
        if least > found.most:
            rule = "must be greater than 0 for a logarithmic distribution"
            findings.refuse(invalid(f"{path}.max", space.max, rule))
            return None
        rule = f"becomes {written(least)}, as with Katib: bounds of a logarithmic distribution are greater than 0"
        findings.lose(f"{path}.min", rule)
    if float(least) == float(found.most):
        return _categorical([written(least, text)])
    bounds: Object = {"min": written(least, text), "max": written(found.most, space.max or "")}
    bounds["type"] = "Int" if found.is_integer else "Float"
    return {distribution: bounds}


def _distribution(parameter: Parameter, path: str, findings: Findings) -> str:
    stated = parameter.feasible_space.distribution
    if stated in _NEAREST:
        nearest = _NEAREST[stated]
        rule = f"becomes {nearest}: values near the bounds are as likely as those between"
        findings.lose(f"{path}.distribution", rule)
        return nearest
    return "logUniform" if stated == "logUniform" else "uniform"


def _categorical(choices: list[str]) -> Object:
    return {"categorical": {"choices": choices}}
