"""Match conditions: what they see, and what happens when they cannot be evaluated."""

from __future__ import annotations

import pytest

from trainer_devcluster.apiserver.admission.conditions import ConditionError, MatchCondition, all_hold

REQUEST = {
    "operation": "UPDATE",
    "name": "a",
    "userInfo": {"username": "jane", "groups": ["devs"]},
    "object": {"metadata": {"labels": {"team": "x"}}, "spec": {"replicas": 3}},
    "oldObject": None,
}


def conditions(*expressions: str) -> tuple[MatchCondition, ...]:
    return tuple(MatchCondition.compile(str(index), expression) for index, expression in enumerate(expressions))


def test_conditions_that_cost_too_much() -> None:
    """A condition that would scan a long list at every step is an error, and is not evaluated."""
    expression = "object.names.all(x, x in object.names)"
    with pytest.raises(ConditionError, match="costs too much for an object of this size"):
        all_hold(conditions(expression), {**REQUEST, "object": {"names": ["a"] * 9_000}})


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        pytest.param("1 +", "compilation failed: ERROR: <input>:1:4: Syntax error", id="syntax"),
        pytest.param("object.spec.replicas", "must evaluate to bool", id="perhaps no bool"),
    ],
)
def test_conditions_that_do_not_compile(expression: str, problem: str) -> None:
    """What will never be evaluated is found before it is stored."""
    with pytest.raises(ValueError, match=r"compilation failed|must evaluate") as caught:
        MatchCondition.compile("x", expression)
    assert problem in str(caught.value)
