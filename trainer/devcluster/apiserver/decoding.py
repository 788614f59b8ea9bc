"""Decoding: bring an object of a built-in kind into the form in which the real server would write it.

The real server reads JSON into typed structures and writes them back: values of a wrong type do not get in, null means
absent, and empty lists and maps of optional fields disappear.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainer.devcluster.apiserver import status
from trainer.devcluster.apiserver.listtypes import Typing

if TYPE_CHECKING:
    from trainer.kube.objects import Object

_PYTHON_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
}
_JSON_NAMES = {str: "string", int: "number", float: "number", bool: "boolean", list: "array", dict: "object"}


class WrongTypeError(ValueError):
    """A value is of another JSON type than its field."""


def normalize(obj: Object, typing: Typing) -> None:
    """Drop what means nothing and write quantities as text, in place; fields beyond the type are left alone.

    Raises:
        WrongTypeError: a value has the wrong type; the message names the field.
    """
    _normalize_fields(obj, typing, "")


def read_as(api_version: str, kind: str, body: Object) -> Object:
    """A body that holds options or a subresource, normalized in place; unknown fields are dropped.

    Raises:
        StatusError: 400, it is of another kind, or a value has the wrong type.
    """
    if body.get("kind") not in (None, "", kind):
        raise status.bad_request(f"the body must be of kind {kind}, not {body['kind']}")
    typing = Typing.for_built_in(api_version, kind)
    assert typing is not None
    try:
        typing.prune(body)
        normalize(body, typing)
    except WrongTypeError as error:
        raise status.bad_request(f"{kind}: {error}") from error
    return body


def _normalize_fields(obj: Object, typing: Typing, path: str) -> None:
    required = typing.schema.get("required") or ()
    for name in list(obj):
        field = typing.field(name)
        if field is None or field.is_untyped:
            continue
        child = f"{path}.{name}" if path else name
        if obj[name] is None:
            del obj[name]
            continue
        obj[name] = _normalized(obj[name], field, child)
        if name not in required and _is_droppable(obj[name], field):
            del obj[name]


def _normalized(value: Any, typing: Typing, path: str) -> Any:
    if typing.is_int_or_string:
        return _int_or_string(value, typing, path)
    expected = typing.schema["type"]
    python_type = _PYTHON_TYPES[expected]
    if not isinstance(value, python_type) or (isinstance(value, bool) and expected != "boolean"):
        raise WrongTypeError(f"{path}: expected {expected}, found {_json_name(value)}")
    if isinstance(value, list):
        item = typing.item
        if not item.is_untyped:
            value[:] = [_normalized(entry, item, f"{path}[{index}]") for index, entry in enumerate(value)]
    elif isinstance(value, dict):
        _normalize_fields(value, typing, path)
    return value


def _int_or_string(value: Any, typing: Typing, path: str) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise WrongTypeError(f"{path}: expected a number or string, found {_json_name(value)}")
    if typing.schema.get("format") == "quantity" and not isinstance(value, str):
        return f"{value:g}" if isinstance(value, float) else str(value)
    return value


def _is_droppable(value: Any, typing: Typing) -> bool:
    if value == []:
        return True
    return value == {} and "additionalProperties" in typing.schema


def _json_name(value: Any) -> str:
    return "null" if value is None else _JSON_NAMES.get(type(value), type(value).__name__)
