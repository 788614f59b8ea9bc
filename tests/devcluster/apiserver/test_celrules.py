"""CEL rules of custom resources."""

from __future__ import annotations

from typing import Any

import pytest

from trainer.devcluster.apiserver.celrules import compile_rules
from trainer.devcluster.apiserver.correlation import ABSENT

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
        pytest.param(rule("self > 3"), [], id="holds"),
        pytest.param(rule("self > 5"), ["a: Invalid value: 4: failed rule: self > 5"], id="default message"),
        pytest.param(rule("self > 5", message=" too small "), ["a: Invalid value: 4: too small"], id="message"),
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
            rule("1 / 0 == self"), ["a: Invalid value: 4: division by zero evaluating rule: 1 / 0 == self"], id="error"
        ),
        pytest.param(
            rule("self"), ["a: Invalid value: 4: cel expression must evaluate to a bool: self"], id="no boolean"
        ),
    ],
)
def test_outcomes(rules: dict[str, Any], expected: list[str]) -> None:
    """A rule that does not hold, or fails, is a cause with the configured reason and message."""
    assert check(schema_of(rules, kind="integer"), 4) == expected


def test_values_of_objects_are_left_out_of_messages() -> None:
    """Only scalars are shown; fieldPath moves the complaint to a child."""
    schema = schema_of(rule("self.x == 'y'", message="wrong", fieldPath=".x"), properties={"x": {"type": "string"}})
    assert check(schema, {"x": "z"}) == ["a.x: Invalid value: wrong"]


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        pytest.param({"x": 1}, ABSENT, [], id="create"),
        pytest.param({"x": 1}, {"x": 1}, [], id="same"),
        pytest.param({"x": 2}, {"x": 1}, ["a: Invalid value: immutable"], id="changed"),
        pytest.param({"x": 1}, {}, ["a: Invalid value: immutable"], id="field added"),
        pytest.param(None, {"x": 1}, [], id="null is not checked"),
    ],
)
def test_transition_rules(new: object, old: object, expected: list[str]) -> None:
    """`oldSelf` rules run where there is an old value."""
    schema = schema_of(rule("self == oldSelf", message="immutable"), properties={"x": {"type": "integer"}})
    assert check(schema, new, old) == expected


def test_optional_old_self_runs_on_create_too() -> None:
    """With optionalOldSelf a transition rule decides itself what absence means."""
    schema = schema_of(rule("oldSelf.hasValue() || self == 1", optionalOldSelf=True), kind="integer")
    assert check(schema, 1) == []
    assert check(schema, 2) == ["a: Invalid value: 2: failed rule: oldSelf.hasValue() || self == 1"]
    assert check(schema, 2, 5) == []


@pytest.mark.parametrize(
    ("list_type", "expected"),
    [
        pytest.param(
            {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
            ["a[1]: Invalid value: size is immutable"],
            id="map list items are found by key",
        ),
        pytest.param({"x-kubernetes-list-type": "atomic"}, [], id="atomic items have no past"),
    ],
)
def test_old_items(list_type: dict[str, Any], expected: list[str]) -> None:
    """Items have an old self only in map lists."""
    schema = schema_of(kind="array", items=ITEM, **list_type)
    old = [{"name": "p", "size": 1}, {"name": "q", "size": 2}]
    new = [{"name": "q", "size": 2}, {"name": "p", "size": 9}, {"name": "r", "size": 1}]
    assert check(schema, new, old) == expected


def test_unchanged_values_are_not_checked_again() -> None:
    """A stored value that breaks a newer rule may stay; transition rules always run."""
    schema = schema_of(rule("self > 5"), rule("self < oldSelf"), kind="integer")
    assert check(schema, 4, 4) == ["a: Invalid value: 4: failed rule: self < oldSelf"]
    assert check(schema, 3, 4) == ["a: Invalid value: 3: failed rule: self > 5"]


def test_map_values_and_all_of() -> None:
    """Rules on map values name the key; rules inside allOf count as well."""
    schema = schema_of(
        kind="object",
        additionalProperties={"type": "string", "x-kubernetes-validations": [rule("self != 'x'", message="no x")]},
        allOf=[{"x-kubernetes-validations": [rule("self.size() < 2", message="too many")]}],
    )
    assert check(schema, {"k": "x", "l": "y"}) == ["a: Invalid value: too many", 'a[k]: Invalid value: "x": no x']


def test_the_root_sees_the_names_of_the_object() -> None:
    """At the root, self has apiVersion, kind and the names in metadata, but no labels."""
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object"}},
        "x-kubernetes-validations": [rule("self.metadata.name.startsWith('a') && self.kind == 'K'")],
    }
    rules, causes = compile_rules(schema, is_resource=True)
    assert causes == []
    assert rules.validate({"apiVersion": "v1", "kind": "K", "metadata": {"name": "abc"}}) == []
    schema["x-kubernetes-validations"] = [rule("has(self.metadata.labels)")]
    _, causes = compile_rules(schema, is_resource=True)
    assert "undefined field 'labels'" in causes[0].message


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        pytest.param({"rule": "self >"}, "x-kubernetes-validations[0].rule", id="syntax"),
        pytest.param({"rule": "self.nope > 1"}, "x-kubernetes-validations[0].rule", id="unknown field"),
        pytest.param(
            {"rule": "quantity(self.x).sign() == 1"}, "x-kubernetes-validations[0].rule", id="unsupported function"
        ),
        pytest.param({"rule": "self.?x.orValue(1) == 1"}, "x-kubernetes-validations[0].rule", id="unsupported syntax"),
        pytest.param({"rule": " "}, "x-kubernetes-validations[0].rule", id="empty"),
        pytest.param(
            {"rule": "self.x > 1", "messageExpression": "self.x +"},
            "x-kubernetes-validations[0].messageExpression",
            id="message",
        ),
    ],
)
def test_rules_that_cannot_be_compiled(entry: dict[str, Any], expected: str) -> None:
    """What we cannot evaluate is refused when the definition is made."""
    schema = schema_of(entry, properties={"x": {"type": "integer"}})
    _, (cause,) = compile_rules(schema, "root")
    assert cause.field == f"root.properties[a].{expected}"
