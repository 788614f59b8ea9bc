"""CEL rules of custom resources."""

from __future__ import annotations

from typing import Any

import pytest

from trainer_devcluster.apiserver.schema.structural import SchemaError, StructuralSchema
from trainer_devcluster.apiserver.schema.validation_rules import compile_rules
from trainer_kube_testing.api_semantics.json_values import ABSENT

ITEM = {
    "type": "object",
    "required": ["name"],
    "properties": {"name": {"type": "string"}, "size": {"type": "integer"}},
    "x-kubernetes-validations": [{"rule": "self.size == oldSelf.size", "message": "size is immutable"}],
}


def rule(expression: str, **more: Any) -> dict[str, Any]:
    return {"rule": expression, **more}


def schema_of(*rules: dict[str, Any], kind: str = "object", **keywords: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"a": {"type": kind, "x-kubernetes-validations": list(rules), **keywords}},
    }


def check(schema: dict[str, Any], value: object, old: object = ABSENT) -> list[str]:
    rules, causes = compile_rules(schema)
    assert causes == []
    return [str(cause) for cause in rules.validate({"a": value}, ABSENT if old is ABSENT else {"a": old})]


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        pytest.param(
            rule("self > 5", messageExpression="'got ' + string(self)"),
            ["a: Invalid value: 4: got 4"],
            id="message expression",
        ),
        pytest.param(
            rule("self > 5", message="m", messageExpression="string(1 / 0)"),
            ["a: Invalid value: 4: m"],
            id="failing message",
        ),
        pytest.param(
            rule("self > 5", message="no", reason="FieldValueForbidden"), ["a: Forbidden: no"], id="reason forbidden"
        ),
        pytest.param(
            rule("self > 5", message="no", reason="FieldValueRequired"), ["a: Required value: no"], id="reason required"
        ),
        pytest.param(rule("self > 5", reason="FieldValueDuplicate"), ["a: Duplicate value: 4"], id="reason duplicate"),
        pytest.param(
            rule("self > 5", message="m", messageExpression="dyn(self)"), ["a: Invalid value: 4: m"], id="no text"
        ),
    ],
)
def test_outcomes(rules: dict[str, Any], expected: list[str]) -> None:
    """A rule that does not hold, or fails, is a cause with the configured reason and message."""
    assert check(schema_of(rules, kind="integer"), 4) == expected


def test_optional_old_self_runs_on_create_too() -> None:
    """With optionalOldSelf a transition rule decides itself what absence means."""
    schema = schema_of(rule("oldSelf.hasValue() || self == 1", optionalOldSelf=True), kind="integer")
    assert check(schema, 1) == []
    assert check(schema, 2) == ["a: Invalid value: 2: failed rule: oldSelf.hasValue() || self == 1"]
    assert check(schema, 2, 5) == []


@pytest.mark.parametrize("list_type", ["atomic", "set", None])
def test_items_without_a_past(list_type: str | None) -> None:
    """What no old value can be found for may not ask for it, as in the real server."""
    schema = schema_of(kind="array", items=ITEM, **{"x-kubernetes-list-type": list_type})
    _, (cause,) = compile_rules(schema, "root")
    assert cause.field == "root.properties[a].items.x-kubernetes-validations[0].rule"
    assert (
        "oldSelf cannot be used on the uncorrelatable portion of the schema within root.properties[a]" in cause.message
    )


def test_map_values() -> None:
    """Rules on map values name the key."""
    schema = schema_of(
        kind="object",
        additionalProperties={"type": "string", "x-kubernetes-validations": [rule("self != 'x'", message="no x")]},
    )
    assert check(schema, {"k": "x", "l": "y"}) == ['a[k]: Invalid value: "x": no x']


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        pytest.param({"rule": "1"}, "x-kubernetes-validations[0].rule", id="no boolean"),
        pytest.param({"rule": " "}, "x-kubernetes-validations[0].rule", id="empty"),
        pytest.param({"rule": "true", "fieldPath": "x"}, "x-kubernetes-validations[0].fieldPath", id="no field path"),
        pytest.param(
            {"rule": "true", "optionalOldSelf": True}, "x-kubernetes-validations[0].optionalOldSelf", id="no old self"
        ),
    ],
)
def test_rules_that_cannot_be_compiled(entry: dict[str, Any], expected: str) -> None:
    """What we cannot evaluate is refused when the definition is made."""
    schema = schema_of(entry, properties={"x": {"type": "integer"}})
    with pytest.raises(SchemaError) as caught:
        StructuralSchema.from_crd(schema, "root")
    (cause,) = caught.value.causes
    assert cause.field == f"root.properties[a].{expected}"


FIELDS: dict[str, Any] = {
    "n": {"type": "integer"},
    "s": {"type": "string"},
    "list": {"type": "array", "items": {"type": "string"}},
    "port": {"x-kubernetes-int-or-string": True},
    "when": {"type": "string", "format": "date-time"},
    "a-b": {"type": "integer"},
}


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        pytest.param("self.nope == 1", 'Key not found in map : "nope"', id="unknown field"),
        pytest.param("self.list.all(x, self.list.all(y, x == y))", "Iteration budget exceeded", id="too many steps"),
    ],
)
def test_rules_that_cannot_be_evaluated(expression: str, problem: str) -> None:
    """What the schema or a value makes impossible is said when the rule is used, and the object is refused."""
    value = {"s": "a", "list": ["a"] * 500}
    (cause,) = check(schema_of(rule(expression), properties=FIELDS), value)
    assert problem in cause
    assert cause.endswith(f"evaluating rule: {expression}")


OUT_OF_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"
NUMBERS = {"type": "array", "items": {"type": "integer"}}
COSTLY = {
    "n": {"type": "integer"},
    "numbers": NUMBERS,
    "text": {"type": "string"},
    "groups": {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "script": {"type": "string"}, "numbers": NUMBERS},
        },
    },
    "lists": {
        "type": "array",
        "items": {**NUMBERS, "x-kubernetes-validations": [rule("self.all(x, self.exists(y, x == y))")]},
    },
}


@pytest.mark.parametrize(
    ("expression", "value", "path"),
    [
        pytest.param("self.numbers.map(x, x).size() > 0", {"numbers": list(range(9_000))}, "a", id="copies"),
        pytest.param("true", {"lists": [list(range(90))] * 1_000}, "a.lists[123]", id="many items"),
    ],
)
def test_rules_beyond_the_budget(expression: str, value: dict[str, Any], path: str) -> None:
    """One object cannot hold up the server: the rest of its rules are not evaluated, and it is refused."""
    later = rule("1 / 0 == self.n")
    (cause,) = check(schema_of(rule(expression), later if path == "a" else rule("true"), properties=COSTLY), value)
    assert cause.startswith(f"{path}: Invalid value")
    assert cause.endswith(OUT_OF_BUDGET)


@pytest.mark.parametrize("source", ["(" * 5000 + "1" + ")" * 5000, "1" + " + 1" * 1000, "1" + " + 1" * 100_000])
def test_deep_rules_are_refused(source: str) -> None:
    """No depth of brackets or length of sums brings the server down."""
    with pytest.raises(SchemaError):
        StructuralSchema.from_crd(schema_of(rule(source)), "root")
