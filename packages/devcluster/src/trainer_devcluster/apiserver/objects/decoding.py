"""Decoding: bring an object of a built-in kind into the form in which the real server would write it.

The real server reads JSON into typed structures and writes them back: values of a wrong type do not get in, null means
absent, and empty lists and maps of optional fields disappear.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from trainer.kube.objects import Object
from trainer.kube.quantity import Quantity
from trainer_devcluster.apiserver.objects.built_in_types import built_in_type
from trainer_devcluster.apiserver.objects.durations import canonical_time
from trainer_devcluster.apiserver.objects.value_types import SchemaTyping
from trainer_kube_testing.api_semantics import statuses

_PYTHON_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
}
_JSON_NAMES = {str: "string", int: "number", float: "number", bool: "bool", list: "array", dict: "object"}
_GO_NAMES = {"string": "string", "boolean": "bool", "number": "float64"}
_MICRO_TIME = "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime"
_TIMES = frozenset({"io.k8s.apimachinery.pkg.apis.meta.v1.Time", _MICRO_TIME})
_EXPONENT = re.compile(r"[eE][+-]?[0-9]+$")
_NOT_A_QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


class WrongTypeError(ValueError):
    """A value is of another JSON type than its field; worded as Go's decoder does."""


def normalize(obj: Object, typing: SchemaTyping) -> None:
    """Drop what means nothing and write quantities as text, in place; fields beyond the type are left alone.

    Raises:
        WrongTypeError: a value has the wrong type; the message names the field.
    """
    _normalize_fields(obj, typing, _Place(typing))


def read_as(api_version: str, kind: str, body: Object) -> Object:
    """A body that holds options or a subresource, normalized in place; unknown fields are dropped.

    Raises:
        ApiError: 400, it is of another kind, or a value has the wrong type.
    """
    if body.get("kind") not in (None, "", kind):
        raise statuses.bad_request(f"the body must be of kind {kind}, not {body['kind']}")
    typing = built_in_type(api_version, kind)
    assert typing is not None
    try:
        typing.prune(body)
        normalize(body, typing)
    except WrongTypeError as error:
        raise statuses.bad_request(f"{kind}: {error}") from error
    return body


class _Place(NamedTuple):
    """Where a value stands, as Go tells it: keys of maps and positions in lists do not count."""

    struct: SchemaTyping
    """The innermost structure."""
    path: str = ""

    def field(self, struct: SchemaTyping, name: str) -> _Place:
        if struct.declares(name):
            return _Place(struct, f"{self.path}.{name}" if self.path else name)
        return self

    def wrong(self, value: Any, go_type: str) -> WrongTypeError:
        found = f"number {value}" if isinstance(value, float) and "int" in go_type else json_name(value)
        field = f"{_short(self.struct)}.{self.path}"
        return WrongTypeError(f"json: cannot unmarshal {found} into Go struct field {field} of type {go_type}")


def _normalize_fields(obj: Object, typing: SchemaTyping, place: _Place) -> None:
    required = typing.schema.get("required") or ()
    for name in list(obj):
        field = typing.field(name)
        if field is None or field.is_untyped:
            continue
        if obj[name] is None:
            del obj[name]
            continue
        obj[name] = _normalized(obj[name], field, place.field(typing, name))
        if name not in required and _is_droppable(obj[name], field):
            del obj[name]


def _normalized(value: Any, typing: SchemaTyping, place: _Place) -> Any:
    if typing.is_int_or_string:
        return _int_or_string(value, typing, place)
    expected = typing.schema["type"]
    python_type = _PYTHON_TYPES[expected]
    if not isinstance(value, python_type) or (isinstance(value, bool) and expected != "boolean"):
        raise place.wrong(value, _go_type(typing))
    if isinstance(value, list):
        item = typing.item
        if not item.is_untyped:
            value[:] = [_normalized(entry, item, place) for entry in value]
    elif isinstance(value, dict):
        _normalize_fields(value, typing, place)
    elif typing.name in _TIMES:
        return _time(str(value), typing)
    return value


def _time(text: str, typing: SchemaTyping) -> str:
    try:
        return canonical_time(text, micro=typing.name == _MICRO_TIME)
    except ValueError as error:
        raise WrongTypeError(str(error)) from error


def _int_or_string(value: Any, typing: SchemaTyping, place: _Place) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise place.wrong(value, "intstr.IntOrString")
    if typing.schema.get("format") != "quantity":
        return value
    return _canonical(f"{value:g}" if isinstance(value, float) else str(value))


def _canonical(text: str) -> str:
    """A quantity as Go writes it: `1000m` is `1`, `0.5Gi` is `512Mi`; exponents are kept."""
    try:
        quantity = Quantity.parse(text)
    except ValueError as error:
        raise WrongTypeError(_NOT_A_QUANTITY) from error
    return text if _EXPONENT.search(text) else str(quantity)


def _go_type(typing: SchemaTyping) -> str:
    if typing.name:
        return f"{typing.name.split('.')[-2]}.{_short(typing)}"
    kind = typing.schema.get("type")
    if kind == "array":
        return f"[]{_go_type(typing.item)}"
    if kind == "object":
        values = typing.schema.get("additionalProperties")
        return f"map[string]{_go_type(typing.field('x') or typing) if isinstance(values, dict) else 'interface {}'}"
    if kind == "integer":
        return str(typing.schema.get("format") or "int64")
    return _GO_NAMES.get(str(kind), "interface {}")


def _short(typing: SchemaTyping) -> str:
    return typing.name.rpartition(".")[2]


def _is_droppable(value: Any, typing: SchemaTyping) -> bool:
    if value == []:
        return True
    return value == {} and "additionalProperties" in typing.schema


def json_name(value: Any) -> str:
    """Go's name of the type of a JSON value."""
    return "null" if value is None else _JSON_NAMES.get(type(value), type(value).__name__)
