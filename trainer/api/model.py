"""The base class of all models: camelCase on the wire, strict or tolerant reading, errors in Kubernetes' words."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, ValidationError, WithJsonSchema, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from trainer.api import patterns
from trainer.api.bounds import bounds_of
from trainer.api.invalid_object import InvalidObjectError
from trainer.api.schema import model_schema
from trainer.api.schema_check import SchemaNode, check_value, compile_schema, must_be
from trainer.kube import field_errors
from trainer.kube.field_errors import FieldError
from trainer.kube.objects import Object
from trainer.kube.quantity import quantity_problem

_EXPECTED = re.compile(r"'([^']*)'")
"""How pydantic lists allowed values."""


class ApiModel(BaseModel):
    """A part of an API object.

    Field docstrings are the descriptions in the CustomResourceDefinitions. `None` means that a field is absent; it is
    never written. Values are not coerced: the string "2" is not a number, as for the API server.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        strict=True,
        extra="ignore",
        use_attribute_docstrings=True,
    )

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, fields: Any) -> Any:
        """Drop nulls, which the API server treats as absent fields."""
        if not isinstance(fields, dict) or None not in fields.values():
            return fields
        return {name: value for name, value in fields.items() if value is not None}

    @classmethod
    def from_object(cls, obj: Mapping[str, Any], *, strict: bool = False) -> Self:
        """Read decoded JSON or YAML.

        Args:
            obj: The decoded document; it is not changed.
            strict: Check it field by field as the API server would, for what a user wrote: unknown fields, limits and
                pod templates too. What a server sends is read tolerantly, because it may be newer than this code.

        Raises:
            InvalidObjectError: fields are wrong; the message has a line for each.
        """
        if strict:
            cls._refuse(obj, check_value(obj, _compiled(cls)))
        try:
            model = cls.model_validate(obj)
        except ValidationError as error:
            raise InvalidObjectError(cls._subject(obj), cls._errors_of(error, obj)) from None
        if strict:
            cls._refuse(obj, model.semantic_errors())
        return model

    @classmethod
    def check_bounds(cls, obj: Mapping[str, Any]) -> None:
        """Refuse a stored `spec` with a text, list or map beyond the present bounds, which tolerant reading accepts.

        Args:
            obj: what `from_object` has read.

        Raises:
            InvalidObjectError: names the fields that are too large.
        """
        cls._refuse(obj, check_value({"spec": obj.get("spec")}, _compiled_bounds(cls)))

    @classmethod
    def prepare(cls) -> None:
        """Compile the schemas now, which takes tens of milliseconds, and not when they are first needed."""
        _compiled(cls)
        _compiled_bounds(cls)

    def semantic_errors(self) -> Iterable[FieldError]:
        """Errors of an object that is valid by its schema; strict reading refuses it."""
        return ()

    @classmethod
    def _errors_of(cls, error: ValidationError, obj: Mapping[str, Any]) -> tuple[FieldError, ...]:
        if error.error_count() > field_errors.MOST_ERRORS:
            # Pydantic describes all or none, each with its input; the check of the schema ends at the first ones.
            found = check_value(obj, _compiled(cls))
            return tuple(found) or (FieldError("", f"{error.error_count()} fields are wrong"),)
        return tuple(_field_errors(error.errors()))

    @classmethod
    def _refuse(cls, obj: Mapping[str, Any], errors: Iterable[FieldError]) -> None:
        found = field_errors.first_errors(errors)
        if found:
            raise InvalidObjectError(cls._subject(obj), found)

    @classmethod
    def _subject(cls, obj: Mapping[str, Any]) -> str:
        metadata = obj.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        return f"{cls.__name__} {name}" if name else cls.__name__

    def to_object(self) -> Object:
        """The JSON form: camelCase keys, absent fields left out, nothing shared with the model."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


@functools.cache
def _compiled(model: type[ApiModel]) -> SchemaNode:
    return compile_schema(model_schema(model))


@functools.cache
def _compiled_bounds(model: type[ApiModel]) -> SchemaNode:
    return compile_schema(bounds_of(model_schema(model)))


def _field_errors(details: Iterable[ErrorDetails]) -> Iterable[FieldError]:
    for detail in details:
        yield _field_error(_path(detail["loc"]), detail)


def _path(location: tuple[int | str, ...]) -> str:
    path = ""
    for step in location:
        if isinstance(step, int):
            path += f"[{step}]"
        else:
            path += f".{step}" if path else step
    return path


_TYPES = {
    "int_type": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "bool_type": "true or false",
    "string_type": "a string",
    "dict_type": "a mapping of fields",
    "model_type": "a mapping of fields",
    "model_attributes_type": "a mapping of fields",
    "list_type": "a list",
}
_BOUNDS = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("greater than", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("less than", "lt"),
}


def _field_error(path: str, detail: ErrorDetails) -> FieldError:
    """Pydantic's error in the words of Kubernetes."""
    context = detail.get("ctx", {})
    kind, value = detail["type"], detail["input"]
    shown = field_errors.OMITTED if isinstance(value, dict | list) else value
    if kind in _TYPES:
        return must_be(path, value, _TYPES[kind])
    if kind in _BOUNDS:
        words, key = _BOUNDS[kind]
        return field_errors.invalid(path, shown, f"must be {words} {field_errors.number(context[key])}")
    match kind:
        case "missing":
            return field_errors.required(path)
        case "literal_error" | "enum":
            return field_errors.not_supported(path, value, _EXPECTED.findall(context["expected"]))
        case "string_too_short" | "too_short":
            return field_errors.invalid(path, value, "must not be empty")
        case "string_too_long":
            return field_errors.too_long(path, context["max_length"])
        case "too_long":
            return field_errors.too_many(path, len(value), context["max_length"])
        case "value_error":
            return field_errors.invalid(path, shown, str(context["error"]))
        case _:
            return field_errors.invalid(path, shown, detail["msg"].replace("Input should", "must"))


def list_map(key: str, max_items: int | None = None) -> dict[str, Any]:
    """Schema extension: a list of type map with the key `key`, so that several field managers can each own items."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]} | _at_most(max_items)


def atomic_list(max_items: int | None = None, min_items: int = 0) -> dict[str, Any]:
    """Schema extension: an atomic list, which has one field manager."""
    least = {"minItems": min_items} if min_items else {}
    return {"x-kubernetes-list-type": "atomic"} | least | _at_most(max_items)


def set_list(max_items: int | None = None, min_items: int = 0) -> dict[str, Any]:
    """Schema extension: a list of type set, to which several field managers may add scalars."""
    return atomic_list(max_items, min_items) | {"x-kubernetes-list-type": "set"}


def text(*, pattern: str = "", longest: int | None = None) -> dict[str, Any]:
    """Schema extension: pattern and length of a string; `pattern` is one of `trainer.api.patterns`."""
    return ({"pattern": pattern} if pattern else {}) | ({"maxLength": longest} if longest is not None else {})


def _at_most(max_items: int | None) -> dict[str, Any]:
    return {} if max_items is None else {"maxItems": max_items}


def _read_number_of_processes(value: Any) -> int | str:
    words = patterns.WORDS[patterns.NUMBER_OF_PROCESSES]
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError(words)  # noqa: TRY004 pydantic reads ValueError
    if not patterns.compiled(patterns.NUMBER_OF_PROCESSES).search(str(value)):
        raise ValueError(words)
    return value


def _read_quantity(value: Any) -> int | float | str:
    problem = quantity_problem(value)
    if problem is not None:
        raise ValueError(problem)
    return value  # type: ignore[no-any-return]  # only these types have no problem


JsonObject: TypeAlias = dict[str, Any]
"""A part of an object without a model of its own, such as a pod template."""

Int32 = Annotated[int, Field(le=2**31 - 1, json_schema_extra={"format": "int32"})]
Int64 = Annotated[int, Field(json_schema_extra={"format": "int64"})]
Count = Annotated[int, Field(ge=0, le=2**31 - 1, json_schema_extra={"format": "int32"})]
Time = Annotated[str, Field(json_schema_extra={"format": "date-time"})]

_INTEGER_OR_STRING = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}

NumberOfProcesses = Annotated[
    int | str,
    PlainValidator(_read_number_of_processes),
    WithJsonSchema({**_INTEGER_OR_STRING, "minimum": 1, "pattern": patterns.NUMBER_OF_PROCESSES}),
]
"""`auto`, `cpu`, `gpu` or a positive integer, which may be written as a string."""

Quantity = Annotated[
    int | float | str,
    PlainValidator(_read_quantity),
    WithJsonSchema({**_INTEGER_OR_STRING, "pattern": patterns.QUANTITY}),
]
"""An amount of a resource (Kubernetes `resource.Quantity`), such as `2`, `500m` or `4Gi`."""
