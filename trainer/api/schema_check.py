"""Checks of JSON values against structural schemas, worded as Kubernetes words its refusals.

A schema is compiled once into nodes; checking an object then takes some tens of microseconds. As in the API server, a
null is an absent field. What the API server would silently prune is an error here: it is a typing mistake.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, Final, TypeAlias

from trainer.api import patterns
from trainer.kube import field_errors
from trainer.kube.field_errors import FieldError
from trainer.kube.quantity import quantity_problem

_LONGEST_SHOWN: Final = 80
_NO_FIELD: Final = "there is no such field here"
_SUGGESTIONS: Final = 5
"""Limit of the unknown fields that get a suggestion: comparing one with all known fields costs more than the rest of
the check."""
_RANGES: Final = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}


Path: TypeAlias = "str | tuple[Path, str | int, bool]"
"""Where a value is: a text, or the path of the parent, the step from there, and whether that is an entry of a list or
map. Joined by `text_of` once there is an error: most values have none."""


def check_value(value: Any, node: SchemaNode, path: str = "") -> list[FieldError]:
    """Errors of a value, in bounded number; empty when it fits.

    Args:
        value: decoded JSON or YAML; not changed.
        node: the compiled schema.
        path: where the value is in its object; "" for the object itself.
    """
    findings = Findings()
    # One more than is shown: then there are more.
    with suppress(EnoughFoundError):
        node.check(value, path, findings)
    return list(field_errors.first_errors(findings.errors)) if findings.errors else []


def text_of(path: Path) -> str:
    """A path as messages show it, such as `spec.items[0].labels[example.com/a]`."""
    steps: list[str] = []
    while not isinstance(path, str):
        path, step, is_entry = path
        steps.append(f"[{step}]" if is_entry else f".{step}")
    return (path + "".join(reversed(steps))).removeprefix("" if path else ".")


class EnoughFoundError(Exception):
    """Ends the check, because the limit of findings is reached."""


class Findings:
    """Collects errors until their limit is reached."""

    def __init__(self) -> None:
        self.errors: list[FieldError] = []

    def add(self, error: FieldError) -> None:
        """Add an error.

        Raises:
            EnoughFoundError: there are more than are shown.
        """
        self.errors.append(error)
        if len(self.errors) > field_errors.MOST_ERRORS:
            raise EnoughFoundError

    def add_invalid(self, path: Path, value: object, rule: str) -> None:
        """Add the error of a value that breaks a rule.

        Raises:
            EnoughFoundError: there are more than are shown.
        """
        self.add(field_errors.invalid(text_of(path), value, rule))

    def add_unknown(self, path: str, name: str, known: Iterable[str]) -> None:
        """Add an unknown field `name` at `path`; only the first few get a suggestion.

        Raises:
            EnoughFoundError: there are more than are shown.
        """
        if len(self.errors) < _SUGGESTIONS and len(name) <= _LONGEST_SHOWN:
            self.add(unknown_field(path, name, known))
        else:
            self.add(field_errors.FieldError(path, f"Unknown field: {_NO_FIELD}"))


def unknown_field(path: str, name: str, known: Iterable[str]) -> FieldError:
    """The error of an unknown field `name` at `path`, with a suggestion."""
    by_lower_case = {entry.lower(): entry for entry in known}
    similar = get_close_matches(name.lower(), list(by_lower_case), n=1)
    if similar:
        remedy = f"did you mean {by_lower_case[similar[0]]}?"
    elif len(by_lower_case) > 12:
        remedy = _NO_FIELD
    else:
        remedy = f"known here: {', '.join(by_lower_case.values()) or 'nothing'}"
    return field_errors.FieldError(path, f"Unknown field: {remedy}")


def must_be(path: str, value: object, expected: str) -> FieldError:
    """The error of a value of a wrong type; it suggests quotes where they would help."""
    remedy = "; put it in quotes" if "string" in expected and isinstance(value, bool | int | float) else ""
    return field_errors.type_invalid(path, _shown(value), f"must be {expected}{remedy}")


@dataclass(slots=True, eq=False)
class SchemaNode:
    """A compiled schema; made by `compile_schema` and never changed after, since several schemas may share it."""

    kind: str = ""
    """JSON type; `int-or-string`; or "" for any type."""
    properties: dict[str, SchemaNode] = field(default_factory=dict)
    values: SchemaNode | None = None
    """The schema of the values, if it is a map."""
    items: SchemaNode | None = None
    is_open: bool = False
    """Whether unknown fields are allowed."""
    required: tuple[str, ...] = ()
    list_type: str = ""
    keys: tuple[tuple[str, Any], ...] = ()
    """Keys of a list of type map, with their defaults."""
    enum: tuple[Any, ...] = ()
    pattern: str = ""
    expression: re.Pattern[str] | None = None
    """The pattern, compiled."""
    shortest: int = 0
    """Characters, items or entries."""
    longest: int | None = None
    least: float | None = None
    most: float | None = None
    more_than: float | None = None

    check: Callable[[Any, Path, Findings], None] = field(init=False, repr=False, compare=False)
    """Appends the errors of a value."""

    def __post_init__(self) -> None:
        """Choose the check once, which is quicker than at each value."""
        checks = {
            "object": self._check_object,
            "array": self._check_list,
            "string": self._check_string,
            "boolean": self._check_boolean,
            "integer": self._check_number,
            "number": self._check_number,
            "int-or-string": self._check_int_or_string,
        }
        self.check = checks.get(self.kind, _accept)

    @staticmethod
    def _check_boolean(value: Any, path: Path, errors: Findings) -> None:
        if not isinstance(value, bool):
            errors.add(must_be(text_of(path), value, "true or false"))

    def _check_object(self, value: Any, path: Path, errors: Findings) -> None:
        if not isinstance(value, dict):
            errors.add(must_be(text_of(path), value, "a mapping of fields"))
            return
        for name in self.required:
            if value.get(name) is None:
                errors.add(field_errors.required(text_of((path, name, False))))
        if self.longest is not None and len(value) > self.longest:
            errors.add(field_errors.too_many(text_of(path), len(value), self.longest))
        for name, child in value.items():
            if not isinstance(name, str):
                errors.add(field_errors.invalid(text_of(path), name, "keys must be strings; put them in quotes"))
            elif self.values is not None:
                self.values.check(child, (path, name, True), errors)
            elif name in self.properties:
                if child is not None:
                    self.properties[name].check(child, (path, name, False), errors)
            elif not self.is_open:
                errors.add_unknown(text_of((path, name, False)), name, self.properties)

    def _check_list(self, value: Any, path: Path, errors: Findings) -> None:
        if not isinstance(value, list):
            errors.add(must_be(text_of(path), value, "a list"))
            return
        if len(value) < self.shortest:
            errors.add(_too_short(text_of(path), value, self.shortest, "items"))
        if self.longest is not None and len(value) > self.longest:
            errors.add(field_errors.too_many(text_of(path), len(value), self.longest))
        if self.items is not None:
            for index, item in enumerate(value[: self.longest]):
                self.items.check(item, (path, index, True), errors)
        if self.list_type in {"set", "map"}:
            for error in self._duplicates(value[: self.longest], path):
                errors.add(error)

    def _duplicates(self, items: list[Any], path: Path) -> Iterable[FieldError]:
        seen: set[str] = set()
        for index, item in enumerate(items):
            if self.list_type == "set":
                key = repr(item)
            elif isinstance(item, dict):
                key = repr([item.get(name, default) for name, default in self.keys])
            else:
                continue
            if key in seen:
                yield field_errors.duplicate(text_of((path, index, True)), self._identity(item))
            seen.add(key)

    def _identity(self, item: Any) -> Any:
        if self.list_type == "set":
            return item
        values = {name: item.get(name, default) for name, default in self.keys}
        return {name: value for name, value in values.items() if value is not None}

    def _check_string(self, value: Any, path: Path, errors: Findings) -> None:
        if not isinstance(value, str):
            errors.add(must_be(text_of(path), value, "a string"))
        elif self.enum:
            if value not in self.enum:
                errors.add(field_errors.not_supported(text_of(path), value, self.enum))
        elif len(value) < self.shortest:
            errors.add(_too_short(text_of(path), value, self.shortest, "characters"))
        elif self.longest is not None and len(value) > self.longest:
            errors.add(field_errors.too_long(text_of(path), self.longest))
        elif self.expression is not None and not self.expression.search(value):
            errors.add_invalid(path, value, patterns.WORDS.get(self.pattern) or f"must match {self.pattern}")

    def _check_number(self, value: Any, path: Path, errors: Findings) -> None:
        whole = self.kind == "integer"
        if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
            errors.add(must_be(text_of(path), value, "an integer" if whole else "a number"))
        else:
            self._check_range(value, path, errors)

    def _check_range(self, value: float, path: Path, errors: Findings) -> None:
        if self.least is not None and value < self.least:
            errors.add_invalid(path, value, f"must be at least {field_errors.number(self.least)}")
        elif self.most is not None and value > self.most:
            errors.add_invalid(path, value, f"must be at most {field_errors.number(self.most)}")
        elif self.more_than is not None and value <= self.more_than:
            errors.add_invalid(path, value, f"must be greater than {field_errors.number(self.more_than)}")

    def _check_int_or_string(self, value: Any, path: Path, errors: Findings) -> None:
        if isinstance(value, bool) or not isinstance(value, int | str):
            errors.add(must_be(text_of(path), value, "an integer or a string"))
        elif self.pattern == patterns.QUANTITY:
            if problem := quantity_problem(value):
                errors.add_invalid(path, value, problem)
        elif isinstance(value, str):
            self._check_string(value, path, errors)
        else:
            self._check_range(value, path, errors)


def _accept(_value: Any, _path: Path, _errors: Findings) -> None:
    """The check of a schema that accepts any value."""


def compile_schema(schema: Mapping[str, Any]) -> SchemaNode:
    """Compile a structural schema, or any JSON schema without references; unknown keywords are ignored."""
    properties = tuple((name, compile_schema(child)) for name, child in (schema.get("properties") or {}).items())
    additional, items = schema.get("additionalProperties"), schema.get("items")
    least, most = schema.get("minimum"), schema.get("maximum")
    lowest, highest = _RANGES.get(str(schema.get("format")), (None, None))
    item_properties = (items or {}).get("properties") or {}
    kind = "int-or-string" if schema.get("x-kubernetes-int-or-string") else schema.get("type", "")
    facts = {
        "kind": kind if isinstance(kind, str) else "",
        "values": compile_schema(additional) if isinstance(additional, dict) else None,
        "items": compile_schema(items) if isinstance(items, dict) else None,
        "is_open": bool(schema.get("x-kubernetes-preserve-unknown-fields")),
        "required": tuple(schema.get("required") or ()),
        "list_type": schema.get("x-kubernetes-list-type", ""),
        "keys": tuple(
            (key, item_properties.get(key, {}).get("default")) for key in schema.get("x-kubernetes-list-map-keys") or ()
        ),
        "enum": tuple(schema.get("enum") or ()),
        "pattern": schema.get("pattern", ""),
        "shortest": schema.get("minLength", schema.get("minItems", 0)),
        "longest": schema.get("maxLength", schema.get("maxItems", schema.get("maxProperties"))),
        "least": lowest if least is None else least,
        "most": highest if most is None else most,
        "more_than": schema.get("exclusiveMinimum"),
    }
    return _shared(properties, **{name: fact for name, fact in facts.items() if fact is not None and fact != ""})


# 1 and 1.0 are told apart in messages.
@lru_cache(maxsize=None, typed=True)
def _shared(properties: tuple[tuple[str, SchemaNode], ...], **facts: Any) -> SchemaNode:
    """One node for all schemas that say the same: three kinds hold pod templates, each of hundreds of fields."""
    pattern = facts.get("pattern")
    return SchemaNode(properties=dict(properties), expression=patterns.compiled(pattern) if pattern else None, **facts)


def _too_short(path: str, value: Any, least: int, what: str) -> FieldError:
    if not value:
        return field_errors.invalid(path, value, "must not be empty")
    return field_errors.invalid(path, value, f"must have at least {least} {what}")


def _shown(value: object) -> object:
    """A value for a message: short, and only of JSON types (YAML has dates)."""
    if not isinstance(value, dict | list):
        return value if value is None or isinstance(value, str | int | float) else str(value)
    try:
        text = str(value)
    except RecursionError:
        return "..."
    if len(text) <= _LONGEST_SHOWN:
        return value
    return f"{text[:_LONGEST_SHOWN]}..."
