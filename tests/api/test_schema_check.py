"""Checks of values against structural schemas."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

import pytest

from trainer.api import schema_check
from trainer.api.schema_check import Path, check_value, compile_schema
from trainer.kube.field_errors import MOST_ERRORS
from trainer.kube.objects import Object


def closed(**properties: Object) -> Object:
    """The schema of an object with these fields."""
    return {"type": "object", "properties": properties}


TEXT = {"type": "string"}
MANY = closed(**{f"field{index}": TEXT for index in range(13)})


@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        pytest.param(closed(), [], "Invalid value: []: must be a mapping of fields", id="object"),
        pytest.param({"type": "array", "items": TEXT}, "a", 'Invalid value: "a": must be a list', id="array"),
        pytest.param(TEXT, None, "Invalid value: null: must be a string", id="null"),
        pytest.param(TEXT, 1.5, "Invalid value: 1.5: must be a string; put it in quotes", id="quotes"),
        pytest.param(TEXT, {"a": "b" * 99}, None, id="long-value-is-cut"),
        pytest.param(
            TEXT,
            dt.date(2026, 1, 2),
            'Invalid value: "2026-01-02": must be a string',
            id="date",
        ),
        pytest.param({"type": "boolean"}, 1, "Invalid value: 1: must be true or false", id="boolean"),
        pytest.param({"type": "integer"}, True, "Invalid value: true: must be an integer", id="true-is-no-number"),
        pytest.param({"type": "integer"}, 1.0, "Invalid value: 1: must be an integer", id="float-is-no-integer"),
        pytest.param({"type": "number"}, "1", 'Invalid value: "1": must be a number', id="number"),
        pytest.param(
            {"type": "integer", "format": "int32"},
            2**31,
            "Invalid value: 2147483648: must be at most 2147483647",
            id="int32",
        ),
        pytest.param(
            {"type": "number", "exclusiveMinimum": 0}, 0, "Invalid value: 0: must be greater than 0", id="exclusive"
        ),
        pytest.param(TEXT | {"enum": ["a", "b"]}, "c", 'Unsupported value: "c": supported values: "a", "b"', id="enum"),
        pytest.param(TEXT | {"minLength": 1}, "", 'Invalid value: "": must not be empty', id="empty"),
        pytest.param(TEXT | {"minLength": 2}, "a", 'Invalid value: "a": must have at least 2 characters', id="short"),
        pytest.param(TEXT | {"maxLength": 2}, "abc", "Too long: may not be more than 2 bytes", id="long"),
        pytest.param(TEXT | {"pattern": "^x"}, "a", 'Invalid value: "a": must match ^x', id="pattern"),
        pytest.param(
            {"type": "array", "items": TEXT, "maxItems": 1},
            ["a", "b"],
            "Too many: 2: must have at most 1 items",
            id="many",
        ),
        pytest.param(
            {"type": "object", "additionalProperties": TEXT, "maxProperties": 1},
            {"a": "", "b": ""},
            "Too many: 2: must have at most 1 items",
            id="many-entries",
        ),
        pytest.param(
            {"x-kubernetes-int-or-string": True},
            True,
            "Invalid value: true: must be an integer or a string; put it in quotes",
            id="int-or-string",
        ),
        pytest.param(
            {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
            ["a", "a"],
            'Duplicate value: "a"',
            id="set",
        ),
        pytest.param(closed(a=TEXT), {"b": ""}, "Unknown field: known here: a", id="unknown"),
        pytest.param(closed(), {"b": ""}, "Unknown field: known here: nothing", id="nothing-known"),
        pytest.param(MANY, {"x": ""}, "Unknown field: there is no such field here", id="too-many-to-list"),
        pytest.param(closed(), {1: ""}, "Invalid value: 1: keys must be strings; put them in quotes", id="key"),
    ],
)
def test_refused(schema: Object, value: Any, message: str | None) -> None:
    """Each wrong value has one message."""
    (error,) = check_value(value, compile_schema(schema))
    assert message is None or error.message == message
    assert len(error.message) < 200


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        pytest.param({}, object(), id="no-type"),
        pytest.param({"anyOf": [TEXT, {"type": "integer"}]}, [], id="not-understood"),
        pytest.param(closed(a=TEXT), {"a": None}, id="null-is-absent"),
        pytest.param({"type": "object", "x-kubernetes-preserve-unknown-fields": True}, {"a": 1}, id="open"),
        pytest.param({"type": "number"}, 1, id="integer-is-a-number"),
        pytest.param({"x-kubernetes-int-or-string": True}, 1, id="int"),
    ],
)
def test_accepted(schema: Object, value: Any) -> None:
    """What a schema does not exclude fits."""
    assert check_value(value, compile_schema(schema)) == []


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        pytest.param(closed(a=TEXT), closed(a=TEXT | {"description": "b"}), True, id="described-otherwise"),
        pytest.param(closed(a=TEXT), closed(b=TEXT), False, id="another-field"),
        pytest.param(closed(a=TEXT), closed(a=TEXT) | {"required": ["a"]}, False, id="required"),
        pytest.param(TEXT, TEXT | {"maxLength": 0}, False, id="bound-of-zero"),
        pytest.param({"type": "number", "minimum": 1}, {"type": "number", "minimum": 1.0}, False, id="float"),
    ],
)
def test_what_says_the_same_is_compiled_once(one: Object, other: Object, shared: bool) -> None:
    """Three kinds hold pod templates, whose nodes take a megabyte and a half."""
    assert (compile_schema(one) is compile_schema(other)) is shared


def test_paths() -> None:
    """Fields, items and keys of maps differ in paths."""
    schema = closed(
        items={"type": "array", "items": closed(map={"type": "object", "additionalProperties": TEXT})},
    ) | {"required": ["name"]}
    value = {"items": [{"map": {"example.com/a": 1}}], "nam": 1}
    assert [error.field for error in check_value(value, compile_schema(schema), "spec")] == [
        "spec.name",
        "spec.items[0].map[example.com/a]",
        "spec.nam",
    ]


def test_keys_with_defaults_tell_items_apart() -> None:
    """An item that leaves out a defaulted key is the same as one that writes the default."""
    schema = {
        "type": "array",
        "items": closed(port={"type": "integer"}, protocol=TEXT | {"default": "TCP"}),
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["port", "protocol"],
    }
    value = [{"port": 1}, {"port": 1, "protocol": "UDP"}, {"port": 1, "protocol": "TCP"}]
    (error,) = check_value(value, compile_schema(schema), "ports")
    assert str(error) == 'ports[2]: Duplicate value: {"port":1,"protocol":"TCP"}'


ENTRIES = {"type": "array", "items": closed(name=TEXT) | {"required": ["name"]}, "x-kubernetes-list-type": "set"}


class Looked(dict[str, Any]):
    """An object that counts how much of it is looked at."""

    looks = 0

    def get(self, *arguments: Any) -> Any:
        Looked.looks += 1
        return super().get(*arguments)

    def items(self) -> Any:
        for item in super().items():
            Looked.looks += 1
            yield item


@pytest.mark.parametrize(
    ("schema", "value_of"),
    [
        pytest.param(MANY, lambda size: Looked({f"feild{index}": "" for index in range(size)}), id="unknown-fields"),
        pytest.param(ENTRIES, lambda size: [Looked()] * size, id="required-fields"),
        pytest.param({"type": "array", "items": MANY}, lambda size: [Looked(x=1)] * size, id="fields-of-items"),
        pytest.param(
            {"type": "object", "additionalProperties": {"type": "integer"}},
            lambda size: Looked({f"a{index}": "" for index in range(size)}),
            id="entries",
        ),
    ],
)
def test_the_check_ends_where_nobody_reads_on(
    schema: Object, value_of: Callable[[int], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred thousand errors cost as much as a hundred, only the first few with what was probably meant."""
    compared: list[str] = []

    def compare(name: str, *arguments: Any, **options: Any) -> list[str]:
        compared.append(name)
        return get_close_matches(name, *arguments, **options)

    monkeypatch.setattr("trainer.api.schema_check.get_close_matches", compare)
    looks = []
    for size in (100, 100_000):
        value = value_of(size)
        Looked.looks = 0
        compared.clear()
        errors = check_value(value, compile_schema(schema))
        looks.append(Looked.looks)
        assert len(errors) == MOST_ERRORS + 1
        assert str(errors[-1]) == f"there are more errors; these are the first {MOST_ERRORS}"
        assert len(compared) <= 5
    assert looks[0] == looks[1]


def test_a_long_name_is_compared_with_nothing() -> None:
    """Nobody has mistyped a name of a megabyte."""
    (error,) = check_value({"field0" * 200_000: ""}, compile_schema(MANY))
    assert error.message == "Unknown field: there is no such field here"


@pytest.mark.parametrize(
    ("value", "paths"),
    [
        pytest.param({"items": [{"map": {"a": "b"}}] * 100}, 0, id="fits"),
        pytest.param({"items": [{"map": {"a": "b"}}] * 99 + [{"map": {"a": 1}}]}, 1, id="one-error"),
    ],
)
def test_paths_are_built_for_errors_only(value: Object, paths: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A value that fits costs no text."""
    built: list[Path] = []
    text_of = schema_check.text_of

    def count(path: Path) -> str:
        built.append(path)
        return text_of(path)

    monkeypatch.setattr(schema_check, "text_of", count)
    schema = closed(items={"type": "array", "items": closed(map={"type": "object", "additionalProperties": TEXT})})
    assert len(check_value(value, compile_schema(schema))) == paths
    assert len(built) == paths
