"""The values of a parameter, as a command line and Python write them."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

import trainer
from trainer.cli.errors import BadInputError
from trainer.cli.run.sweep_api import Values
from trainer.kube.objects import Object
from trainer_sweeps.api.spec import SearchSpace
from trainer_sweeps.commands.parameters import parse_options, parse_space, space_text, typed


@pytest.mark.parametrize(
    ("text", "space", "shown"),
    [
        ("log(1e-5,1e-1)", {"logUniform": {"min": "1e-5", "max": "1e-1"}}, "log(1e-5,1e-1)"),
        ("log:1e-5,1e-1", {"logUniform": {"min": "1e-5", "max": "1e-1"}}, "log(1e-5,1e-1)"),
        (" Uniform( 0 , 1 ) ", {"uniform": {"min": "0", "max": "1"}}, "uniform(0,1)"),
        ("uniform(-.5,.5)", {"uniform": {"min": "-0.5", "max": "0.5"}}, "uniform(-0.5,0.5)"),
        ("int(-1,8)", {"uniform": {"min": "-1", "max": "8", "type": "Int"}}, "int(-1,8)"),
        ("logint(1,100)", {"logUniform": {"min": "1", "max": "100", "type": "Int"}}, "logint(1,100)"),
        ("choice(16, 32,sgd)", {"categorical": {"choices": ["16", "32", "sgd"]}}, "choice(16,32,sgd)"),
        ('choice("a,b",c)', {"categorical": {"choices": ["a,b", "c"]}}, 'choice("a,b",c)'),
        ("choice:(1),b", {"categorical": {"choices": ["(1)", "b"]}}, "choice((1),b)"),
    ],
)
def test_grammar(text: str, space: Object, shown: str) -> None:
    """A text becomes a search space, which is shown in the same grammar."""
    (found,) = parse_options([f"lr={text}"])

    assert found.to_object() == {"name": "lr", "searchSpace": space}
    assert space_text(SearchSpace.from_object(space)) == shown


@pytest.mark.parametrize(
    ("option", "problem"),
    [
        ("", "--param: : must be NAME=VALUES, such as --param 'lr=log(1e-5,1e-1)'"),
        ("lr", "--param: lr: must be NAME=VALUES"),
        ("1r=log(1,2)", "--param: 1r: the name of a parameter begins with a letter"),
        (f"{'a' * 65}=log(1,2)", "at most 64"),
        ("lr=", "lr: nothing is no set of values; write lr=log(1e-5,1e-1), lr=uniform(0,1)"),
        ("lr=0.1", "lr: 0.1 is no set of values; write lr=log(1e-5,1e-1)"),
        ("lr=log(1,2", "lr: log(1,2 is no set of values"),
        ("lr=unifrom(0,1)", "lr: unifrom is no kind of values: did you mean uniform; write lr=log("),
        ("lr=log(1)", "lr: log takes the least and the greatest value, such as log(1e-5,1e-1)"),
        ("lr=log(1,2,3)", "lr: log takes the least and the greatest value"),
        ("lr=log()", "lr: log takes the least and the greatest value"),
        ("lr=log(1,)", "lr: nothing is no number: write such as log(1e-5,1e-1)"),
        ("lr=log(1,inf)", "lr: inf is no number"),
        ("lr=uniform(0,1e999)", "lr: 1e999 is no number"),
        ("lr=log(0,1)", "lr: 0 has no logarithm: begin above 0, or take uniform"),
        ("lr=logint(0,8)", "lr: 0 has no logarithm: begin above 0, or take int"),
        ("lr=uniform(2,1)", "lr: 2 is greater than 1: write the least value first"),
        ("lr=int(0.5,2)", "lr: int takes integers, such as int(1,8)"),
        ("lr=choice()", "lr: has no choices: write lr=choice(16,32,64)"),
        ("lr=choice(a,b,a)", "lr: a is there twice"),
        (f"lr=choice({','.join(map(str, range(101)))})", "lr: has 101 choices, and can have 100"),
        (f"lr=choice({'a' * 65})", "a choice has at most 64 characters"),
        ('lr=choice("a)', "close the quotes"),
    ],
)
def test_mistakes(option: str, problem: str) -> None:
    """What is wrong is named with what is expected."""
    with pytest.raises(BadInputError, match=re.escape(problem)):
        parse_options([option])


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        pytest.param([], "--param: name what to search, such as --param 'lr=log(1e-5,1e-1)'", id="none"),
        pytest.param(["a=int(1,2)", "a=int(1,3)"], "--param: a is given twice", id="twice"),
        pytest.param(
            ["l-r=int(1,2)", "l.r=int(1,3)"],
            "l-r and l.r would both be the variable KUBEFLOW_TRAINER_OPT_L_R: rename one",
            id="one variable",
        ),
        pytest.param(
            [f"p{number}=int(1,2)" for number in range(101)], "has 101 parameters, and can have 100", id="many"
        ),
    ],
)
def test_mistakes_of_all(options: list[str], problem: str) -> None:
    """What parameters cannot be together is named."""
    with pytest.raises(BadInputError, match=re.escape(problem)):
        parse_options(options)


@pytest.mark.parametrize(
    ("values", "text", "value"),
    [
        pytest.param(trainer.log(1e-5, 1e-1), "3e-05", 3e-05, id="log"),
        pytest.param(trainer.uniform(0, 1), "0.5", 0.5, id="uniform"),
        pytest.param(trainer.integers(1, 8), "3", 3, id="integers"),
        pytest.param(trainer.integers(1, 100, log=True), "30", 30, id="integers by magnitude"),
        pytest.param([16, 32], "32", 32, id="numbers"),
        pytest.param((0.1, 0.5), "0.1", 0.1, id="tuple"),
        pytest.param(["sgd", "16"], "16", "16", id="a text that reads as a number"),
        pytest.param([True, False], "true", True, id="booleans"),
        pytest.param([None, "cosine"], "None", None, id="None"),
        pytest.param("choice(1,0.5,true,sgd)", "0.5", 0.5, id="a text of the grammar"),
    ],
)
def test_what_a_function_gets(values: Values, text: str, value: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """A value arrives with the type that it has in Python."""
    (found,) = parse_space({"lr": values})
    monkeypatch.setenv("KUBEFLOW_TRAINER_OPT_LR", text)

    got = eval(found.expression)

    assert (got, type(got)) == (value, type(value))


@pytest.mark.parametrize(
    ("space", "problem"),
    [
        pytest.param({}, "space: name what to search", id="empty"),
        pytest.param(
            {"lr": 0.1}, "space: lr: must be a list of choices, or such as trainer.log(1e-5, 1e-1)", id="number"
        ),
        pytest.param({"lr": [[1]]}, "space: lr: [1]: choices are texts, numbers, booleans and None", id="list"),
        pytest.param({"lr": [float("nan")]}, "space: lr: nan: choices are", id="nan"),
        pytest.param({"lr": [1, "1"]}, "space: lr: 1 is there twice", id="the same text"),
        pytest.param({1: [1]}, "space: 1: the name of a parameter", id="name"),
    ],
)
def test_mistakes_of_python(space: Mapping[str, Values], problem: str) -> None:
    """What Python gives is checked as well."""
    with pytest.raises(BadInputError, match=re.escape(problem)):
        parse_space(space)


@pytest.mark.parametrize(
    ("text", "value"), [("1", 1), ("1e-3", 0.001), ("false", False), ("007", "007"), ("nan", "nan")]
)
def test_typed(text: str, value: object) -> None:
    """What reads as a number or a truth value is one."""
    assert (typed(text), type(typed(text))) == (value, type(value))
