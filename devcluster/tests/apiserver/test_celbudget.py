"""Budgets of rules: definitions that are refused because their rules are too expensive, and ours that are not."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, Any, Final

import pytest
import yaml

from trainer.api.crds import crds
from trainer_devcluster import apiserver
from trainer_devcluster.apiserver.cel.ranges import exactly
from trainer_devcluster.apiserver.celbudget import EXPRESSION_LIMIT, SCHEMA_LIMIT, Budget, times_below
from trainer_devcluster.apiserver.celrules import compile_rules

if TYPE_CHECKING:
    from trainer.kube.objects import Object

REMEDY: Final = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are "
    "declared)"
)
TOTAL: Final = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
TEXT: Final[dict[str, Any]] = {"type": "string"}
PATTERN: Final = {"rule": "self.matches('x')"}
"""Costs 314,574 on a text without a bound."""


def costly(path: str, factor: str, *, title: str = "rule") -> str:
    return f"{path}: Forbidden: estimated {title} cost exceeds budget by factor of {factor} {REMEDY}"


def charged(schema: dict[str, Any]) -> list[int]:
    budget = Budget()
    compile_rules(schema, budget=budget)
    return [charge.cost for charge in budget.charges]


CHECKED: Final[dict[str, Any]] = {**TEXT, "x-kubernetes-validations": [{"rule": "self.startsWith('b')"}]}
"""The rule costs 2 each time."""
MANY: Final = 3 * 1024 * 1024 // 3
"""How many empty texts, with a comma after each, fit into a request."""


@pytest.mark.parametrize(
    ("schema", "times"),
    [
        pytest.param(CHECKED, 1, id="once"),
        pytest.param({"type": "object", "properties": {"a": CHECKED}}, 1, id="field"),
        pytest.param({"type": "array", "maxItems": 5, "items": CHECKED}, 5, id="items"),
        pytest.param({"type": "object", "maxProperties": 6, "additionalProperties": CHECKED}, 6, id="values"),
        pytest.param(
            {"type": "array", "maxItems": 5, "items": {"type": "array", "maxItems": 6, "items": CHECKED}},
            30,
            id="items of items",
        ),
        pytest.param({"type": "array", "items": CHECKED}, MANY, id="as many as can be sent"),
        pytest.param(
            {"type": "array", "items": {"type": "array", "maxItems": 6, "items": CHECKED}},
            MANY,
            id="an inner bound does not help",
        ),
    ],
)
def test_how_often(schema: dict[str, Any], times: int) -> None:
    """A rule is charged as often as what it stands on can occur."""
    assert charged(schema) == [2 * times]


def test_nothing_occurs_in_an_empty_list() -> None:
    """A list that has to be empty makes everything below it free."""
    assert times_below({"type": "array", "maxItems": 0}, None) is None
    assert times_below({"type": "array", "maxItems": 0}, 3) == 0


@pytest.mark.parametrize(
    ("length", "factor"),
    [
        pytest.param(24_999_997, None, id="at the limit"),
        pytest.param(25_000_000, "1.000000x", id="just above it"),
        pytest.param(37_000_000, "1.480000x", id="a bit more"),
        pytest.param(60_000_000, "2.4x", id="twice as much"),
        pytest.param(2_400_000_000, "96.0x", id="much"),
        pytest.param(3_000_000_000, "more than 100x", id="far too much"),
    ],
)
def test_limit_of_an_expression(length: int, factor: str | None) -> None:
    """A rule that is too expensive by itself is refused with the factor by which it is."""
    schema = {**TEXT, "maxLength": length, "x-kubernetes-validations": [PATTERN]}
    _, causes = compile_rules(schema, "s", budget=Budget())
    refused = [str(cause) for cause in causes if "estimated rule cost exceeds" in str(cause)]
    assert refused == ([] if factor is None else [costly("s.x-kubernetes-validations[0].rule", factor)])


def test_message_expressions_count() -> None:
    """A message may be too expensive as well; what becomes a text has no bound."""
    entry = {"rule": "self > 0", "messageExpression": "'got ' + string(self)"}
    _, causes = compile_rules({"type": "integer", "x-kubernetes-validations": [entry]}, "s", budget=Budget())
    path = "s.x-kubernetes-validations[0].messageExpression"
    contributed = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
    assert [str(cause) for cause in causes] == [
        costly(path, "more than 100x", title="messageExpression"),
        f"{path}: Forbidden: {contributed}",
        f"s: Forbidden: {TOTAL} exceeds budget by factor of more than 100x {REMEDY}",
    ]


def test_limit_of_a_schema() -> None:
    """Rules that are cheap enough each may be too expensive together; the four most expensive ones are named."""
    budget = Budget()
    costs = [9_000_000] * 11 + [9_500_000, 999_999]
    assert not [
        cause for index, cost in enumerate(costs) for cause in budget.charge(f"r{index}", "rule", exactly(cost), 1)
    ]
    named = [cause.field for cause in budget.check_total("s")]
    assert named == ["r11", "r0", "r1", "r2", "s"]
    assert str(list(budget.check_total("s"))[-1]).startswith(
        "s: Forbidden: x-kubernetes-validations estimated rule cost"
    )
    assert "exceeds budget by factor of 1.095000x" in str(list(budget.check_total("s"))[-1])


def test_limit_of_a_schema_is_inclusive() -> None:
    """A schema may cost exactly what is allowed."""
    budget = Budget()
    assert list(budget.charge("r", "rule", exactly(EXPRESSION_LIMIT), 10)) != []
    assert (budget.total, list(budget.check_total("s"))) == (SCHEMA_LIMIT, [])


def test_rules_that_are_wrong_cost_nothing() -> None:
    """What cannot be compiled is refused for that, and not charged."""
    schema = {**TEXT, "x-kubernetes-validations": [{"rule": "self.nothing"}, {"rule": "self + 'x'"}]}
    assert charged(schema) == []


def test_accepted_schemas_are_compiled_at_any_cost() -> None:
    """Without a budget, nothing is too expensive: a definition that is stored is served."""
    schema = {**TEXT, "maxLength": 3_000_000_000, "x-kubernetes-validations": [PATTERN]}
    assert compile_rules(schema)[1] == []


def jobset_crd() -> Object:
    crd: Object = yaml.safe_load(resources.files(apiserver).joinpath("data/jobset_crd.yaml").read_text())
    return crd


@pytest.mark.parametrize("crd", [*crds(), jobset_crd()], ids=lambda crd: crd["metadata"]["name"])
def test_shipped_definitions_are_affordable(crd: Object) -> None:
    """An API server takes our definitions, and would if every rule cost three times and all together ten times as much.

    The nearest to a limit is the form of the name of a TrainJob at 22 % of it: names have no bound that the estimate
    knows, a long pattern is charged for each character that fits into a request.
    """
    for version in crd["spec"]["versions"]:
        budget = Budget()
        _, causes = compile_rules(version["schema"]["openAPIV3Schema"], is_resource=True, budget=budget)
        assert causes == []
        assert max(charge.cost for charge in budget.charges) * 3 <= EXPRESSION_LIMIT, budget.charges
        assert budget.total * 10 <= SCHEMA_LIMIT
