"""Validation of values by the keywords of a structural schema.

Message texts are those of kube-openapi's validator as the API server reports them. What is unchanged since the stored
object is not checked again (KEP-4008, "CRD Validation Ratcheting"). Of the formats of texts those that definitions of
trainings need are checked; others of a real API server are refused in definitions, and what no API server knows is only
a comment.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from fractions import Fraction
from typing import Any, Final

from trainer.kube import field_errors
from trainer.kube.field_errors import FieldError
from trainer_devcluster.regular_expressions import is_found
from trainer_kube_testing.api_semantics.json_values import ABSENT, same

Schema = dict[str, Any]


def duplicates(value: Any, schema: Mapping[str, Any], path: str) -> list[FieldError]:
    """The items of sets and map lists in a value that are there already.

    Args:
        value: any JSON value.
        schema: its structural schema.
        path: where it is.
    """
    causes: list[FieldError] = []
    if isinstance(value, list):
        causes += _in_list(value, schema, path)
        items = schema.get("items") or {}
        for index, item in enumerate(value):
            causes += duplicates(item, items, f"{path}[{index}]")
    elif isinstance(value, dict):
        properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
        for name, child in value.items():
            nested = properties.get(name)
            if nested is not None:
                causes += duplicates(child, nested, f"{path}.{name}" if path else name)
            elif isinstance(additional, dict):
                causes += duplicates(child, additional, f"{path}[{name}]")
    return causes


def _in_list(items: list[Any], schema: Mapping[str, Any], path: str) -> list[FieldError]:
    list_type = schema.get("x-kubernetes-list-type")
    if list_type not in ("set", "map"):
        return []
    causes, seen = [], set()
    for index, item in enumerate(items):
        key = item_key(item, schema) if list_type == "map" else (field_errors.show(item),)
        if key is None:
            continue
        if key in seen:
            shown = item
            if list_type == "map":
                shown = {name: item[name] for name in schema["x-kubernetes-list-map-keys"] if name in item}
            causes.append(field_errors.duplicate(f"{path}[{index}]", shown))
        seen.add(key)
    return causes


def item_key(item: object, schema: Mapping[str, Any]) -> tuple[object, ...] | None:
    """The key of an item of a map list: its key fields, defaults filled in; None when it is no object."""
    if not isinstance(item, dict):
        return None
    properties = (schema.get("items") or {}).get("properties") or {}
    return tuple(
        repr(item.get(key, (properties.get(key) or {}).get("default")))
        for key in schema.get("x-kubernetes-list-map-keys") or ()
    )


def old_items(items: list[Any], old: object, schema: Mapping[str, Any]) -> list[Any]:
    """For every item of a list the corresponding old item, or `ABSENT`."""
    if schema.get("x-kubernetes-list-type") != "map" or not isinstance(old, list):
        return [ABSENT] * len(items)
    by_key = {item_key(item, schema): item for item in old}
    return [by_key.get(item_key(item, schema), ABSENT) for item in items]


_DATE_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_INTEGER_BITS: Final = {"int32": 32, "int64": 64}
UNSUPPORTED: Final = frozenset(
    (
        "bsonobjectid", "cidr", "creditcard", "duration", "email", "hexcolor", "hostname", "ipv4", "ipv6", "isbn",
        "isbn10", "isbn13", "k8s-long-name", "k8s-short-name", "mac", "rgbcolor", "ssn", "uri", "uuid", "uuid3",
        "uuid4", "uuid5",
    )
)  # fmt: skip
"""Formats of texts that a real API server checks and this one does not."""


def matches_format(text: str, name: str) -> bool:
    """Whether a text is of a string format; formats that the server does not know match everything."""
    check = _STRING_FORMATS.get(name)
    if check is None:
        return True
    try:
        return check(text)
    except (ValueError, binascii.Error):
        return False


def fits_format(value: float, name: str) -> bool:
    """Whether a number is in the range of `int32` or `int64`; other formats fit everything."""
    bits = _INTEGER_BITS.get(name)
    return bits is None or -(2 ** (bits - 1)) <= value < 2 ** (bits - 1)


def _is_date_time(text: str) -> bool:
    return bool(_DATE_TIME.fullmatch(text)) and bool(datetime.fromisoformat(text.upper()))


_STRING_FORMATS: Final[dict[str, Callable[[str], bool]]] = {
    "byte": lambda text: base64.b64decode(text, validate=True) is not None,
    "date": lambda text: len(text) == 10 and date.fromisoformat(text) is not None,
    "date-time": _is_date_time,
    "datetime": _is_date_time,
}


_NO_PATH: Final = "<nil>"


def validate_value(value: object, schema: Schema, *, prefix: str = "", old: object = ABSENT) -> list[FieldError]:
    """What is wrong with a value.

    Args:
        value: any JSON value.
        schema: its structural schema.
        prefix: path of the value in its object, for the fields of the causes (messages name fields relative to it).
        old: the value before the update; parts equal to it are not checked.
    """
    validator = _Validator(prefix)
    validator.check(value, schema, "", old)
    return validator.causes


@dataclass(slots=True)
class _Validator:
    prefix: str
    causes: list[FieldError] = field(default_factory=list)

    def check(self, value: object, schema: Schema, name: str, old: object) -> None:
        if old is not ABSENT and same(value, old):
            return
        if value is None:
            self._check_null(schema, name)
            return
        self._check_type(value, schema, name)
        self._check_combinations(value, schema, name)
        if isinstance(value, str):
            self._check_string(value, schema, name)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            self._check_number(value, schema, name)
        elif isinstance(value, list):
            self._check_list(value, schema, name, old)
        self._check_enum(value, schema, name)
        if isinstance(value, dict):
            self._check_object(value, schema, name, old)

    def _path(self, name: str) -> str:
        return ".".join(part for part in (self.prefix, name) if part).replace(".[", "[")

    def _invalid(self, name: str, value: object, text: str) -> None:
        self.causes.append(field_errors.invalid(self._path(name), value, f"{name} in body {text}"))

    def _type_invalid(self, name: str, expected: str, found: str) -> None:
        detail = f"{name} in body must be of type {expected}: {field_errors.show(found)}"
        self.causes.append(field_errors.type_invalid(self._path(name), found, detail))

    def _check_null(self, schema: Schema, name: str) -> None:
        if schema.get("nullable"):
            return
        expected = _types(schema)
        if expected:
            self._type_invalid(name, ",".join(expected), "null")
        self._check_enum(None, schema, name)

    def _check_type(self, value: object, schema: Schema, name: str) -> None:
        expected, found = _types(schema), _type_of(value)
        text_format = schema.get("format")
        if not expected:
            return
        if found == "string" and text_format and "string" in expected:
            return
        if found in expected or (found == "integer" and "number" in expected):
            return
        if isinstance(value, float) and "integer" in expected and value.is_integer():
            return
        self._type_invalid(name, ",".join(expected), found)

    def _check_string(self, value: str, schema: Schema, name: str) -> None:
        longest, shortest = schema.get("maxLength"), schema.get("minLength")
        if longest is not None and len(value) > longest:
            self.causes.append(field_errors.too_long(self._path(name), longest))
        elif shortest is not None and len(value) < shortest:
            self._invalid(name, value, f"should be at least {shortest} chars long")
        elif "pattern" in schema and not is_found(schema["pattern"], value):
            self._invalid(name, value, f"should match '{schema['pattern']}'")
        text_format = schema.get("format")
        if text_format and not matches_format(value, text_format):
            self._type_invalid(name, text_format, value)

    def _check_number(self, value: float, schema: Schema, name: str) -> None:
        factor = schema.get("multipleOf")
        if factor is not None and Fraction(str(value)) % Fraction(str(factor)) != 0:
            self._invalid(name, value, f"should be a multiple of {field_errors.number(factor)}")
        most, least = schema.get("maximum"), schema.get("minimum")
        if most is not None:
            exclusive = bool(schema.get("exclusiveMaximum"))
            if value > most or (exclusive and value == most):
                self._invalid(
                    name, value, f"should be less than {'' if exclusive else 'or equal to '}{field_errors.number(most)}"
                )
        if least is not None:
            exclusive = bool(schema.get("exclusiveMinimum"))
            if value < least or (exclusive and value == least):
                self._invalid(
                    name,
                    value,
                    f"should be greater than {'' if exclusive else 'or equal to '}{field_errors.number(least)}",
                )
        number_format = schema.get("format") or ""
        if not fits_format(value, number_format):
            self._invalid(name, value, f"must be of type {number_format}")

    def _check_enum(self, value: object, schema: Schema, name: str) -> None:
        allowed = schema.get("enum")
        if allowed and not any(same(value, option) for option in allowed):
            self.causes.append(field_errors.not_supported(self._path(name), value, allowed))

    def _check_list(self, value: list[Any], schema: Schema, name: str, old: object) -> None:
        most, least = schema.get("maxItems"), schema.get("minItems")
        items = schema.get("items")
        if isinstance(items, dict):
            olds = old_items(value, old, schema)
            for index, (item, old_item) in enumerate(zip(value, olds, strict=True)):
                self.check(item, items, f"{name}[{index}]", old_item)
        if least is not None and len(value) < least:
            self._invalid(name, len(value), f"should have at least {least} items")
        if most is not None and len(value) > most:
            self.causes.append(field_errors.too_many(self._path(name), len(value), most))
        if schema.get("uniqueItems") and any(same(a, b) for i, a in enumerate(value) for b in value[:i]):
            self._invalid(name, "", "shouldn't contain duplicates")

    def _check_object(self, value: dict[str, Any], schema: Schema, name: str, old: object) -> None:
        most, least = schema.get("maxProperties"), schema.get("minProperties")
        if least is not None and len(value) < least:
            self._invalid(name, least, f"should have at least {least} properties")
            return
        if most is not None and len(value) > most:
            self.causes.append(field_errors.too_many(self._path(name), len(value), most))
            return
        properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
        old_fields = old if isinstance(old, dict) else {}
        for key in sorted(value):
            child = properties.get(key, additional)
            if isinstance(child, dict):
                path = f"{name}.{key}" if name else key
                self.check(value[key], child, path, old_fields.get(key, ABSENT))
        for key in schema.get("required") or ():
            if key not in value:
                self.causes.append(field_errors.required(self._path(f"{name}.{key}" if name else key)))

    def _check_combinations(self, value: object, schema: Schema, name: str) -> None:
        quoted = field_errors.show(name)
        if "anyOf" in schema:
            failures = self._alternatives(value, schema["anyOf"], name)
            if all(failures):
                self._combination_fails(f"{quoted} must validate at least one schema (anyOf)")
                self.causes += _fewest(failures)
        if "oneOf" in schema:
            failures = self._alternatives(value, schema["oneOf"], name)
            valid = sum(not causes for causes in failures)
            if valid == 0:
                self._combination_fails(f"{quoted} must validate one and only one schema (oneOf). Found none valid")
                self.causes += _fewest(failures)
            elif valid > 1:
                text = f"{quoted} must validate one and only one schema (oneOf). Found {valid} valid alternatives"
                self._combination_fails(text)
        if "allOf" in schema:
            failures = self._alternatives(value, schema["allOf"], name)
            self.causes += [cause for causes in failures for cause in causes]
            if any(failures):
                none = ". None validated" if all(failures) else ""
                self._combination_fails(f"{quoted} must validate all the schemas (allOf){none}")
        if "not" in schema and not self._alternatives(value, [schema["not"]], name)[0]:
            self._combination_fails(f"{quoted} must not validate the schema (not)")

    def _alternatives(self, value: object, schemas: list[Schema], name: str) -> list[list[FieldError]]:
        outcomes = []
        for schema in schemas:
            validator = _Validator(self.prefix)
            validator.check(value, schema, name, ABSENT)
            outcomes.append(validator.causes)
        return outcomes

    def _combination_fails(self, text: str) -> None:
        # The server reports these without a field.
        self.causes.append(field_errors.invalid(self.prefix or _NO_PATH, "", text))


def _fewest(failures: list[list[FieldError]]) -> list[FieldError]:
    """The alternative that came closest, to say what would make it valid."""
    return failures[min(range(len(failures)), key=lambda index: len(failures[index]))]


def _types(schema: Schema) -> tuple[str, ...]:
    if schema.get("x-kubernetes-int-or-string"):
        return ("integer", "string")
    declared = schema.get("type")
    return (declared,) if declared else ()


def _type_of(value: object) -> str:
    if isinstance(value, bool):
        return "boolean"
    names: tuple[tuple[type, str], ...] = (
        (str, "string"), (int, "integer"), (float, "number"), (list, "array"), (dict, "object"),
    )  # fmt: skip
    return next((name for kind, name in names if isinstance(value, kind)), "null")
