"""What is wrong with a sweep is found when it is read strictly."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from packages.sweeps.tests.samples import CATEGORICAL, REMOVED, UNIFORM, large_sweep, sweep
from tests.security.growth import work
from trainer.api.invalid_object import InvalidObjectError
from trainer.kube.objects import Object
from trainer_sweeps.api.optimizationjob import OptimizationJob

LR = "spec.parameters[0].searchSpace"


def errors_of(obj: Object) -> list[str]:
    """What strict reading says."""
    try:
        OptimizationJob.from_object(obj, strict=True)
    except InvalidObjectError as error:
        return str(error).splitlines()
    return []


def uniform(least: Any, most: Any, **more: str) -> tuple[str, Any]:
    """The first parameter between two bounds."""
    return "parameters.0.searchSpace", {"uniform": {"min": least, "max": most} | more}


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param([], id="default"),
        pytest.param([uniform("9", "10")], id="by-value-and-not-by-text"),
        pytest.param([uniform("-1e3", "1.5E+3")], id="exponents"),
        pytest.param([uniform("0.5", "1.5", type="Int")], id="one-integer"),
        pytest.param([uniform(f"-{2**53}", str(2**53), type="Int")], id="largest-integers"),
        pytest.param([("searchAlgorithm", {"tpe": {"seed": -(2**63), "startupTrials": 3}})], id="tpe"),
        pytest.param([("searchAlgorithm", {"gp": {}})], id="gp"),
        pytest.param([("searchAlgorithm", {"cmaEs": {}})], id="cma-es"),
        pytest.param([("searchAlgorithm", {"grid": {}}), ("parameters.0.searchSpace", CATEGORICAL)], id="grid"),
        pytest.param([("pruneAlgorithm", {"asha": {}})], id="asha"),
        pytest.param([("pruneAlgorithm", {"median": {"warmupSteps": 10, "intervalSteps": 5}})], id="median"),
        pytest.param([("suspend", True), ("ttlSecondsAfterFinished", 0), ("maxFailedTrials", 0)], id="others"),
        pytest.param([("objectives.0.aggregate", "Min"), ("objectives.0.direction", "Maximize")], id="objective"),
        pytest.param([("trainJobTemplate.metadata", {"labels": {"team": "a"}})], id="labels"),
    ],
)
@pytest.mark.parametrize("version", ["v1alpha1", "v2alpha1"])
def test_sweeps(changes: list[tuple[str, Any]], version: str) -> None:
    """What can be searched is read, in either version."""
    assert errors_of(sweep(*changes, version=version)) == []


ONE_SPACE = "Invalid value: exactly one of the fields in [uniform logUniform categorical] must be set"
ONE_ALGORITHM = "Invalid value: exactly one of the fields in [random grid tpe gp cmaEs] must be set"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param(
            [uniform("10", "9")],
            f'{LR}.uniform.min: Invalid value: "10": min must be strictly less than max, which is 9',
            id="order",
        ),
        pytest.param(
            [uniform("1.0", "1")],
            f'{LR}.uniform.min: Invalid value: "1.0": min must be strictly less than max, which is 1',
            id="equal",
        ),
        pytest.param(
            [uniform("0", "1e999")],
            f'{LR}.uniform.max: Invalid value: "1e999": must be within the range of a double: its magnitude is at most '
            "1.8e308",
            id="infinite",
        ),
        pytest.param(
            [uniform("-1e308", "1e308")],
            f"{LR}.uniform: Invalid value: max - min must be within the range of a double: its magnitude is at most "
            "1.8e308",
            id="too-wide",
        ),
        pytest.param(
            [uniform("0.1", "0.9", type="Int")],
            f"{LR}.uniform: Invalid value: there is no integer between min and max: widen the interval, or set type to "
            "Float",
            id="no-integer",
        ),
        pytest.param(
            [uniform("0", str(2**53 + 2), type="Int")],
            f"{LR}.uniform: Invalid value: bounds of integers must be between -2^53 and 2^53, within which doubles "
            "have every integer",
            id="inexact-integers",
        ),
        pytest.param(
            [("parameters.0.searchSpace", {"logUniform": {"min": "0", "max": "1"}})],
            f'{LR}.logUniform.min: Invalid value: "0": min must be strictly greater than 0',
            id="log-of-zero",
        ),
        pytest.param(
            [("parameters.0.searchSpace", {"logUniform": {"min": "1e-999", "max": "1"}})],
            f'{LR}.logUniform.min: Invalid value: "1e-999": min must be strictly greater than 0',
            id="log-of-what-is-zero-as-a-double",
        ),
        pytest.param(
            [uniform("low", "1")],
            f'{LR}.uniform.min: Invalid value: "low": must be a number such as 10, 0.5 or 1e-5',
            id="no-number",
        ),
        pytest.param(
            [uniform(0.1, "1")],
            f"{LR}.uniform.min: Invalid value: 0.1: must be a string; put it in quotes",
            id="without-quotes",
        ),
        pytest.param([("parameters.0.searchSpace", {})], f"{LR}: {ONE_SPACE}", id="no-space"),
        pytest.param([("parameters.0.searchSpace", UNIFORM | CATEGORICAL)], f"{LR}: {ONE_SPACE}", id="two-spaces"),
        pytest.param(
            [("parameters.1.searchSpace.categorical.choices", ["a", "a"])],
            'spec.parameters[1].searchSpace.categorical.choices[1]: Duplicate value: "a"',
            id="choice-twice",
        ),
        pytest.param(
            [("parameters.1.searchSpace.categorical.choices", ["a", ""])],
            'spec.parameters[1].searchSpace.categorical.choices[1]: Invalid value: "": must not be empty: results '
            "cannot have it; write a word such as none, which the program reads as empty",
            id="empty-choice",
        ),
        pytest.param(
            [("parameters.1.searchSpace.categorical.choices", ["\0"])],
            'spec.parameters[1].searchSpace.categorical.choices[0]: Invalid value: "\\u0000": must not have a NUL '
            "character: no environment variable can hold one",
            id="NUL",
        ),
        pytest.param(
            [("parameters.1.name", "lr")],
            'spec.parameters[1]: Duplicate value: {"name":"lr"}',
            id="parameter-twice",
        ),
        pytest.param(
            [("parameters.0.name", "learning-rate"), ("parameters.1.name", "Learning_Rate")],
            'spec.parameters[1].name: Invalid value: "Learning_Rate": has the same environment variable as '
            "learning-rate, which is KUBEFLOW_TRAINER_OPT_LEARNING_RATE; rename one of them",
            id="variable-twice",
        ),
        pytest.param(
            [("searchAlgorithm", {"grid": {}})],
            f"{LR}: Invalid value: Grid search requires all parameters to be Categorical; Uniform and LogUniform are "
            "not supported.",
            id="grid",
        ),
        pytest.param([("searchAlgorithm", {})], f"spec.searchAlgorithm: {ONE_ALGORITHM}", id="no-algorithm"),
        pytest.param(
            [("searchAlgorithm", {"tpe": {}, "gp": {}})], f"spec.searchAlgorithm: {ONE_ALGORITHM}", id="two-algorithms"
        ),
        pytest.param(
            [("searchAlgorithm", {"bayesian": {}})],
            "spec.searchAlgorithm.bayesian: Unknown field: known here: random, grid, tpe, gp, cmaEs",
            id="other-algorithm",
        ),
        pytest.param(
            [("pruneAlgorithm", {})],
            "spec.pruneAlgorithm: Invalid value: exactly one of the fields in [median asha] must be set",
            id="no-pruner",
        ),
        pytest.param(
            [("objectives", [{"metric": "loss"}, {"metric": "time"}])],
            "spec.objectives: Invalid value: only one objective can be optimized: name the metric that decides, and "
            "let trials report others beside it",
            id="two-objectives",
        ),
        pytest.param(
            [("parallelTrials", 5)],
            "spec.parallelTrials: Invalid value: 5: parallelTrials cannot exceed numTrials",
            id="parallel",
        ),
        pytest.param(
            [("numTrials", 101)], "spec.numTrials: Invalid value: 101: must be at most 100", id="too-many-trials"
        ),
        pytest.param(
            [("trainJobTemplate.metadata", {"name": "trial"})],
            "spec.trainJobTemplate.metadata: Forbidden: name and namespace cannot be set in a template.",
            id="name-of-a-template",
        ),
        pytest.param(
            [("trainJobTemplate.metadata", {"labels": {"a b": "c"}})],
            'spec.trainJobTemplate.metadata.labels: Invalid value: "a b": keys must be names of letters, digits, -, _ '
            "and ., such as team or example.com/team",
            id="label",
        ),
        pytest.param(
            [("trainJobTemplate.spec", {"runtimeRef": {"name": "torch"}, "ttlSecondsAfterFinished": 0})],
            "spec.trainJobTemplate.spec.ttlSecondsAfterFinished: Forbidden: cannot be set: a trial that is deleted "
            "before its value is known runs again; ttlSecondsAfterFinished of the sweep deletes it with its trials",
            id="trials-that-delete-themselves",
        ),
        pytest.param([("parameters", REMOVED)], "spec.parameters: Required value", id="no-parameters"),
    ],
)
def test_refusals(changes: list[tuple[str, Any]], expected: str) -> None:
    """What cannot be searched is refused with the field, the rule and the remedy."""
    assert errors_of(sweep(*changes)) == [expected]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("a" * 53, [], id="longest"),
        pytest.param(
            "a" * 54,
            [
                (
                    f'metadata.name: Invalid value: "{"a" * 54}": must have at most 53 characters, as trials are '
                    "called NAME-trial-1 and so on"
                )
            ],
            id="too-long",
        ),
        pytest.param(
            "1st",
            [
                (
                    'metadata.name: Invalid value: "1st": must consist of lower-case letters, digits and -, start with '
                    "a letter and end with a letter or digit"
                )
            ],
            id="digit",
        ),
        pytest.param("", [], id="generated"),
    ],
)  # fmt: skip
def test_names(name: str, expected: list[str]) -> None:
    """All trials can have names."""
    assert errors_of(sweep(name=name)) == expected


@pytest.mark.parametrize(
    ("parameters", "choices"), [pytest.param(True, False, id="parameters"), pytest.param(False, True, id="choices")]
)
def test_work_is_linear(parameters: bool, choices: bool) -> None:
    """A sweep with the most parameters and choices is read with work in proportion to its size."""
    assert errors_of(sweep()) == []  # compiles the schemas, once
    sweeps = [large_sweep(size if parameters else 10, size if choices else 10) for size in (20, 60, 100)]
    small, middle, large = (work(partial(errors_of, each)) for each in sweeps)
    assert large - middle <= 1.2 * (middle - small)


def test_the_largest_sweep() -> None:
    """100 parameters of 100 choices are read."""
    assert errors_of(large_sweep(100, 100)) == []
