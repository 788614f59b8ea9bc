"""The base of all models: camelCase on the wire, strict or tolerant reading, errors that people can read."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, ValidationError, WithJsonSchema, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from trainer.api.invalid_object import InvalidObjectError
from trainer.kube.field_errors import FieldError
from trainer.kube.quantity import parse_quantity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pydantic import ValidationInfo
    from pydantic_core import ErrorDetails

    from trainer.kube.objects import Object

_STRICT = "refuse unknown fields"


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
    def _refuse_unknown_fields(cls, data: Any, info: ValidationInfo) -> Any:
        if not isinstance(data, dict) or not (info.context or {}).get(_STRICT) or cls.model_config["extra"] == "allow":
            return data
        known = [field.alias or name for name, field in cls.model_fields.items()]
        unknown = [key for key in data if key not in known]
        if unknown:
            raise PydanticCustomError("unknown_fields", "unknown fields", {"unknown": unknown, "known": known})
        return data

    @classmethod
    def from_object(cls, obj: Mapping[str, Any], *, strict: bool = False) -> Self:
        """Read decoded JSON or YAML.

        Args:
            obj: The decoded document; it is not changed.
            strict: Refuse unknown fields, for what a user wrote. What a server sends is read tolerantly, because it
                may be newer than this code.

        Raises:
            InvalidObjectError: fields are wrong; the message has a line for each.
        """
        try:
            return cls.model_validate(obj, context={_STRICT: strict})
        except ValidationError as error:
            raise InvalidObjectError(cls._subject(obj), tuple(_field_errors(error.errors()))) from None

    @classmethod
    def _subject(cls, obj: Mapping[str, Any]) -> str:
        metadata = obj.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        return f"{cls.__name__} {name}" if name else cls.__name__

    def to_object(self) -> Object:
        """The JSON form: camelCase keys, absent fields left out, nothing shared with the model."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


def _field_errors(details: Iterable[ErrorDetails]) -> Iterable[FieldError]:
    for detail in details:
        path = _path(detail["loc"])
        if detail["type"] == "unknown_fields":
            yield from _unknown_fields(path, detail["ctx"]["unknown"], detail["ctx"]["known"])
        else:
            yield FieldError(path, _message(detail))


def _unknown_fields(path: str, unknown: list[str], known: list[str]) -> Iterable[FieldError]:
    by_lower_case = {name.lower(): name for name in known}
    for key in unknown:
        similar = get_close_matches(str(key).lower(), list(by_lower_case), n=1)
        remedy = f"did you mean {by_lower_case[similar[0]]}?" if similar else f"known here: {', '.join(known)}"
        yield FieldError(f"{path}.{key}" if path else str(key), f"unknown field; {remedy}")


def _path(location: tuple[int | str, ...]) -> str:
    path = ""
    for step in location:
        if isinstance(step, int):
            path += f"[{step}]"
        else:
            path += f".{step}" if path else step
    return path


def _message(detail: ErrorDetails) -> str:
    """Pydantic's finding in the words of a Kubernetes user; the wrong value is quoted where it helps to find it."""
    context = detail.get("ctx", {})
    value = detail["input"]
    got = f", got {value!r}"
    match detail["type"]:
        case "missing":
            return "is required"
        case "int_type" | "int_from_float" | "int_parsing":
            return f"must be an integer{got}"
        case "bool_type":
            return f"must be true or false{got}"
        case "string_type":
            return f"must be a string{got}" + ("; put it in quotes" if isinstance(value, int | float) else "")
        case "dict_type" | "model_type" | "model_attributes_type":
            return f"must be a mapping of fields{got}"
        case "list_type":
            return f"must be a list{got}"
        case "literal_error":
            return f"must be {context['expected']}{got}"
        case "greater_than_equal":
            return f"must be at least {context['ge']}{got}"
        case "less_than_equal":
            return f"must be at most {context['le']}{got}"
        case "string_too_short" | "too_short":
            return "must not be empty"
        case "value_error":
            return str(context["error"])
        case _:
            return detail["msg"].replace("Input should", "must") + got


def list_map(key: str) -> dict[str, Any]:
    """Schema extension: a list whose items are told apart by `key`, so that several appliers can each own some."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]}


def cel_rule(rule: str, message: str) -> dict[str, Any]:
    """Schema extension: a validation rule in the Common Expression Language that the API server enforces."""
    return {"x-kubernetes-validations": [{"rule": rule, "message": message}]}


def _read_number_of_processes(value: Any) -> int | str:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError(f"must be auto, cpu, gpu or an integer, got {value!r}")  # noqa: TRY004 pydantic reads ValueError
    if isinstance(value, str) and value not in {"auto", "cpu", "gpu"} and not (value.isascii() and value.isdigit()):
        raise ValueError(f"must be auto, cpu, gpu or an integer, got {value!r}")
    if value not in {"auto", "cpu", "gpu"} and int(value) < 1:
        raise ValueError(f"must be at least 1, got {value!r}")
    return value


def _read_quantity(value: Any) -> int | float | str:
    parse_quantity(value)
    return value  # type: ignore[no-any-return]  # parse_quantity accepts only these types


JsonObject: TypeAlias = dict[str, Any]
"""Part of an object that we carry without looking at all of it, such as a pod template."""

Int32 = Annotated[int, Field(le=2**31 - 1, json_schema_extra={"format": "int32"})]
Int64 = Annotated[int, Field(json_schema_extra={"format": "int64"})]
Count = Annotated[int, Field(ge=0, le=2**31 - 1, json_schema_extra={"format": "int32"})]
Time = Annotated[str, Field(json_schema_extra={"format": "date-time"})]

NumberOfProcesses = Annotated[
    int | str,
    PlainValidator(_read_number_of_processes),
    WithJsonSchema(
        {
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "x-kubernetes-int-or-string": True,
            "minimum": 1,
            "pattern": "^(auto|cpu|gpu|[1-9][0-9]*)$",
        }
    ),
]
"""`auto`, `cpu`, `gpu` or a positive integer, which may be written as a string."""

Quantity = Annotated[
    int | float | str,
    PlainValidator(_read_quantity),
    WithJsonSchema(
        {
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "x-kubernetes-int-or-string": True,
            "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]"
            r"|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
        }
    ),
]
"""An amount of a resource (Kubernetes `resource.Quantity`), such as `2`, `500m` or `4Gi`."""
