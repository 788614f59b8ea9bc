"""Match conditions: what they see, and what happens when they cannot be evaluated."""

from __future__ import annotations

import pytest

from trainer.kube.resource import CONFIG_MAPS
from trainer_devcluster.apiserver.admission.attributes import Attributes, Operation, RuleTarget
from trainer_devcluster.apiserver.admission.conditions import ConditionError, MatchCondition, all_hold
from trainer_devcluster.apiserver.admission.review import request_of
from trainer_devcluster.apiserver.authentication.user import User

REQUEST = {
    "operation": "UPDATE",
    "name": "a",
    "userInfo": {"username": "jane", "groups": ["devs"]},
    "object": {"metadata": {"labels": {"team": "x"}}, "spec": {"replicas": 3}},
    "oldObject": None,
}


def conditions(*expressions: str) -> tuple[MatchCondition, ...]:
    return tuple(MatchCondition.compile(str(index), expression) for index, expression in enumerate(expressions))


@pytest.mark.parametrize(
    ("expressions", "expected"),
    [
        pytest.param(["object.spec.replicas > 2"], True, id="object"),
        pytest.param(["object.metadata.labels.all(k, k.startsWith('t'))"], True, id="macro"),
        pytest.param(["object.spec.missing == 1", "false"], False, id="one that is false decides"),
    ],
)
def test_conditions(expressions: list[str], expected: bool) -> None:
    """All of them have to be true."""
    assert all_hold(conditions(*expressions), REQUEST) is expected


@pytest.mark.parametrize(
    "expression",
    [
        "request.operation == 'UPDATE'",
        "request.operation in ['CREATE', 'UPDATE']",
        "request.userInfo.groups.exists(group, group == 'devs') && request.userInfo.username == 'jane'",
        "request.resource.resource == 'configmaps' && request.kind.kind == 'ConfigMap'",
        "request.namespace == 'ns' && request.name == 'a' && !request.dryRun",
        "request.options.kind == 'UpdateOptions'",
        "request.object.data.x == 'new' && request.oldObject.data.x == oldObject.data.x",
    ],
)
def test_conditions_see_the_request(expression: str) -> None:
    """Every field of the review that a webhook gets can be read, with the values that it gets."""
    attributes = Attributes(
        endpoint=RuleTarget(Operation.UPDATE, CONFIG_MAPS),
        namespace="ns",
        name="a",
        object={"data": {"x": "new"}},
        old={"data": {"x": "old"}},
        user=User("jane", ("devs",)),
        options={"kind": "UpdateOptions"},
        dry_run=False,
    )
    assert all_hold(conditions(expression), request_of(attributes, attributes.endpoint, "u"))


@pytest.mark.parametrize(
    ("expressions", "message"),
    [
        pytest.param(
            ["object.spec.missing == 1"],
            "expression 'object.spec.missing == 1' resulted in error: Key not found in map : \"missing\"",
            id="missing",
        ),
        pytest.param(
            ["object.spec.a == 1", "object.spec.b == 1"],
            "[expression 'object.spec.a == 1' resulted in error: Key not found in map : \"a\", "
            "expression 'object.spec.b == 1' resulted in error: Key not found in map : \"b\"]",
            id="several",
        ),
    ],
)
def test_conditions_that_cannot_be_evaluated(expressions: list[str], message: str) -> None:
    """The error names every expression that failed."""
    with pytest.raises(ConditionError) as caught:
        all_hold(conditions(*expressions), REQUEST)
    assert str(caught.value) == message


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
