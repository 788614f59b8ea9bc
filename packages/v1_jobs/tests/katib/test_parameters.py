"""Parameters of Experiments as those of OptimizationJobs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from packages.v1_jobs.tests.katib.samples import experiment
from packages.v1_jobs.tests.katib.test_search import algorithm, converted, refusals
from trainer.api.invalid_object import InvalidObjectError
from trainer.kube.objects import Object
from trainer_sweeps.api.optimizationjob import OptimizationJob
from trainer_v1_jobs.katib import convert_experiment

LOST_STEP = (
    "spec.parameters[p].feasibleSpace.step: is left out: all values between the bounds are tried; where only some will "
    "do, write them as a list"
)


def searched(type_: str, space: Object, *, by: str = "random", name: str = "p") -> Object:
    """An Experiment with one parameter."""
    parameter = {"name": name, "parameterType": type_, "feasibleSpace": space}
    template = {"trialParameters": [{"name": "lr", "reference": name}]}
    return experiment(template=template, parameters=[parameter], algorithm=algorithm(by))


def categorical(*choices: str) -> Object:
    """A search space of choices."""
    return {"categorical": {"choices": [*choices]}}


def interval(least: str, most: str, type_: str = "Float", *, name: str = "uniform") -> Object:
    """A search space of numbers."""
    return {name: {"min": least, "max": most, "type": type_}}


@pytest.mark.parametrize(
    ("type_", "space", "by", "expected", "lost"),
    [
        pytest.param("double", {"min": "0.5", "max": "2"}, "tpe", interval("0.5", "2"), [], id="double"),
        pytest.param("int", {"min": "-3", "max": "7"}, "tpe", interval("-3", "7", "Int"), [], id="int"),
        pytest.param("double", {"min": ".5", "max": "+2."}, "tpe", interval("0.5", "2"), [], id="other digits"),
        pytest.param("double", {"min": "1e-5", "max": "1E+2"}, "tpe", interval("1e-5", "1E+2"), [], id="exponents"),
        pytest.param("double", {"min": ".1e-30", "max": "1"}, "tpe", interval("1E-31", "1"), [], id="small"),
        pytest.param("int", {"min": "007", "max": "08"}, "tpe", interval("7", "8", "Int"), [], id="leading zeros"),
        pytest.param("double", {"min": "1", "max": "1.0"}, "tpe", categorical("1"), [], id="one value"),
        pytest.param("double", {"min": "1", "max": f"1.{'0' * 30}1"}, "tpe", categorical("1"), [], id="one double"),
        pytest.param(
            "double",
            {"min": "0.1", "max": "1", "distribution": "logUniform"},
            "tpe",
            interval("0.1", "1", name="logUniform"),
            [],
            id="logarithmic",
        ),
        pytest.param(
            "int",
            {"min": "0", "max": "64", "distribution": "logUniform"},
            "tpe",
            interval("1", "64", "Int", name="logUniform"),
            [
                ("spec.parameters[p].feasibleSpace.min: becomes 1, as with Katib: bounds of a logarithmic distribution "
                "are greater than 0")
            ],
            id="logarithm of 0",
        ),
        pytest.param(
            "double",
            {"min": "0", "max": "1", "distribution": "logNormal"},
            "tpe",
            interval("0.0000000001", "1", name="logUniform"),
            [
                ("spec.parameters[p].feasibleSpace.distribution: becomes logUniform: values near the bounds are as "
                "likely as those between"),
                ("spec.parameters[p].feasibleSpace.min: becomes 0.0000000001, as with Katib: bounds of a logarithmic "
                "distribution are greater than 0"),
            ],
            id="nearest distribution",
        ),
        pytest.param("discrete", {"list": ["0.1", "0.2"]}, "tpe", categorical("0.1", "0.2"), [], id="discrete"),
        pytest.param("categorical", {"list": ["a", "b"]}, "grid", categorical("a", "b"), [], id="categorical"),
        pytest.param("int", {"min": "1", "max": "3", "step": "1"}, "tpe", interval("1", "3", "Int"), [], id="one"),
        pytest.param(
            "int", {"min": "8", "max": "30", "step": "8"}, "random", categorical("8", "16", "24"), [], id="random steps"
        ),
        pytest.param(
            "double", {"min": "0", "max": "0.3", "step": "0.1"}, "random",
            categorical("0", "0.1", "0.2", "0.3"), [], id="exact steps",
        ),
        pytest.param(
            "double", {"min": "0", "max": "1", "step": "0.001"}, "random", interval("0", "1"), [LOST_STEP],
            id="too many steps",
        ),
        pytest.param("int", {"min": "8", "max": "30", "step": "8"}, "tpe", interval("8", "30", "Int"), [LOST_STEP],
                     id="steps elsewhere"),
        pytest.param("int", {"min": "1", "max": "3"}, "grid", categorical("1", "2", "3"), [], id="grid of integers"),
        pytest.param(
            "double", {"min": "0.01", "max": "0.03", "step": "0.005", "distribution": "uniform"}, "grid",
            categorical("0.01", "0.015", "0.02", "0.025", "0.03"), [], id="grid",
        ),
        pytest.param("double", {"min": "0", "max": "1", "step": "0.4"}, "grid", categorical("0", "0.4", "0.8"), [],
                     id="grid that ends before"),
    ],
)  # fmt: skip
def test_spaces(type_: str, space: Object, by: str, expected: Object, lost: list[str]) -> None:
    """Values are the same as with Katib, and where they are not it is said."""
    spec, found = converted(searched(type_, space, by=by))

    assert (spec["parameters"][0]["searchSpace"], found) == (expected, lost)


@pytest.mark.parametrize(
    ("type_", "space", "by", "problem"),
    [
        pytest.param("double", {"min": "1"}, "tpe", "max: Required value: a parameter of type double has", id="no max"),
        pytest.param("double", {"min": "a", "max": "1"}, "tpe", 'min: Invalid value: "a": must be a number', id="text"),
        pytest.param("double", {"min": "1e400", "max": "1"}, "tpe", "min: Invalid value", id="infinite"),
        pytest.param("double", {"min": "nan", "max": "1"}, "tpe", "min: Invalid value", id="nan"),
        pytest.param("int", {"min": "1.0", "max": "2"}, "tpe", 'min: Invalid value: "1.0": must be an', id="int"),
        pytest.param("int", {"min": "3", "max": "2"}, "tpe", "min: Invalid value: \"3\": must not be", id="order"),
        pytest.param("int", {"min": "1", "max": "2", "step": "0"}, "tpe", "step: Invalid value: \"0\"", id="no step"),
        pytest.param("int", {"min": "1", "max": "2", "list": ["1"]}, "tpe", "list: Invalid value", id="list"),
        pytest.param("categorical", {"list": []}, "tpe", "list: Required value", id="no choice"),
        pytest.param("categorical", {"list": ["a"], "min": "1"}, "tpe", "min: Invalid value", id="bounds of choices"),
        pytest.param("categorical", {"list": ["a", "b", "a"]}, "tpe", 'list[2]: Duplicate value: "a"', id="twice"),
        pytest.param("discrete", {"list": [*map(str, range(101))]}, "tpe", "list: Too many: 101", id="choices"),
        pytest.param("double", {"min": "-2", "max": "-1", "distribution": "logUniform"}, "tpe",
                     'max: Invalid value: "-1": must be greater than 0', id="negative logarithm"),
        pytest.param("double", {"min": "1", "max": "2"}, "grid", "step: Required value: a grid tries", id="grid step"),
        pytest.param("int", {"min": "1", "max": "101"}, "grid",
                     'step: Invalid value: "1": gives 101 values, and a grid has at most 100', id="long grid"),
        pytest.param("int", {"min": "0", "max": "9007199254740992"}, "grid", "step: Invalid value", id="huge grid"),
        pytest.param("categorical", {"list": ["a", ""]}, "tpe", 'list: Invalid value: "": must not be', id="empty"),
        pytest.param("double", {"min": "0", "max": "1e300", "step": "1e-300"}, "grid", "step: Invalid value",
                     id="endless grid"),
    ],
)  # fmt: skip
def test_refused_spaces(type_: str, space: Object, by: str, problem: str) -> None:
    """They are named with the rule, and nothing is counted out that is longer than a grid can be."""
    (found,) = refusals(searched(type_, space, by=by))

    assert found.replace("[0]", "[p]").startswith(f"spec.parameters[p].feasibleSpace.{problem}")


@pytest.mark.parametrize(
    ("type_", "least", "most", "rule"),
    [
        pytest.param("int", "0", "9007199254740993", "integers must be between -2^53 and 2^53", id="integers"),
        pytest.param("int", "-" + "9" * 63, "9" * 64, "integers must be between -2^53 and 2^53", id="long integers"),
        pytest.param("double", "-1e308", "1e308", "max - min must be within the range of a double", id="width"),
    ],
)
def test_bounds(type_: str, least: str, most: str, rule: str) -> None:
    """Intervals that samplers cannot compute with are refused."""
    (found,) = refusals(searched(type_, {"min": least, "max": most}))

    assert found == f"spec.parameters[p].feasibleSpace: Invalid value: {rule}"


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        pytest.param(["a" * 65], "name: Too long: may not be more than 64 bytes", id="long"),
        pytest.param(
            ["batch-size", "Batch_Size"],
            'name: Invalid value: "Batch_Size": must differ from batch-size in more than case and signs: '
            "KUBEFLOW_TRAINER_OPT_BATCH_SIZE would be that of both",
            id="one variable",
        ),
    ],
)
def test_names(names: list[str], problem: str) -> None:
    """Each parameter needs a variable of its own."""
    parameters: list[Any] = [
        {"name": name, "parameterType": "int", "feasibleSpace": {"min": "1", "max": "2"}} for name in names
    ]
    template = {"trialParameters": [{"name": "lr", "reference": names[0]}]}
    (found,) = refusals(experiment(template=template, parameters=parameters))

    assert found == f"spec.parameters[{names[-1]}].{problem}"


def test_too_many() -> None:
    """More parameters than an OptimizationJob can have are one error."""
    one = {"parameterType": "int", "feasibleSpace": {"min": "1", "max": "2"}}
    many = [{"name": "lr"} | one, *({"name": f"p{index}"} | one for index in range(100))]

    assert refusals(experiment(parameters=many)) == ["spec.parameters: Too many: 101: must have at most 100 items"]


NUMBERS = st.one_of(
    st.integers(-(10**20), 10**20).map(str),
    st.floats().map(str),
    st.from_regex(r"[-+]?[0-9]{0,9}\.?[0-9]{0,9}(e[-+]?[0-9]{1,3})?", fullmatch=True),
)


@given(
    type_=st.sampled_from(["double", "int"]),
    by=st.sampled_from(["random", "grid", "tpe", "cmaes"]),
    space=st.fixed_dictionaries(
        {"min": NUMBERS, "max": NUMBERS},
        optional={
            "step": st.one_of(NUMBERS, st.just("1")),
            "distribution": st.sampled_from(["uniform", "logUniform", "normal", "logNormal"]),
        },
    ),
)
def test_any_numbers(type_: str, by: str, space: Object) -> None:
    """What is not refused is a valid OptimizationJob."""
    obj = searched(type_, space, by=by)
    try:
        result = convert_experiment(obj)
    except InvalidObjectError:
        return
    OptimizationJob.from_object(result.optimization_job, strict=True)
