"""Fields of API objects and of the configuration, from the models that read them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from hack.reference.markdown import cell, code, link, prose, table
from trainer.api import patterns
from trainer.api.builtin_schemas import BUILT_IN
from trainer.api.model import ApiModel
from trainer.api.rules import RULES
from trainer.kube.objects import Object

JsonSchema = dict[str, Any]

_REFERENCE = "#/$defs/"
_INT32 = 2**31 - 1
_WITHOUT_SECTION = frozenset({"ObjectMetadata"})
"""What every Kubernetes object has, and the Kubernetes documentation describes."""
_METADATA = "Metadata of the object, as every object in Kubernetes has them."


class _Section(NamedTuple):
    name: str
    schema: JsonSchema
    paths: list[str]
    """Where it appears."""


class Fields:
    """The fields of a model and of all models in it, a section each.

    Args:
        model: the whole object.
        by_path: whether a section is headed by where it appears, and not by the name of its model; for an object in
            which no model appears twice. Default: no.
        defaults: an object of which nobody has said anything, for defaults that a schema cannot tell. Default: none.
    """

    def __init__(self, model: type[ApiModel], *, by_path: bool = False, defaults: Object | None = None) -> None:
        schema = model.model_json_schema()
        self._definitions: dict[str, JsonSchema] = schema.pop("$defs", {})
        self._by_path = by_path
        self._defaults = defaults
        self._sections: dict[str, _Section] = {}
        self._root = _Section(model.__name__, schema, [])
        self._find(schema, "")

    def root(self) -> str:
        """What the whole object has."""
        return self._table(self._root)

    def sections(self, level: int = 2) -> Iterator[str]:
        """A heading, what it is, where it appears, and its fields, for each model in the object."""
        for section in self._sections.values():
            yield f"{'#' * level} {self._heading(section.name)}"
            yield prose(section.schema.get("description", ""))
            yield "" if self._by_path else f"In {', '.join(map(code, section.paths))}."
            yield "\n".join(f"* {cell(message)}" for message in _messages(section.schema))
            yield self._table(section)

    def names(self) -> list[str]:
        """The sections, in the order in which a reader of the object comes to them."""
        return [self._heading(name) for name in self._sections]

    def _heading(self, name: str) -> str:
        return self._sections[name].paths[0] if self._by_path else name

    def _find(self, schema: JsonSchema, path: str) -> None:
        for name, value in schema.get("properties", {}).items():
            for reference, place in self._references(value, f"{path}.{name}" if path else name):
                definition = self._definitions[reference]
                if reference in self._sections:
                    self._sections[reference].paths.append(place)
                    continue
                self._sections[reference] = _Section(reference, definition, [place])
                self._find(definition, place)

    def _references(self, schema: JsonSchema, path: str) -> Iterator[tuple[str, str]]:
        """Models in the value of a field, each with its path."""
        resolved, name = self._resolved(schema)
        if name and self._has_section(name):
            yield name, path
        elif "items" in resolved:
            yield from self._references(resolved["items"], f"{path}[]")
        elif isinstance(resolved.get("additionalProperties"), dict):
            yield from self._references(resolved["additionalProperties"], f"{path}[NAME]")

    def _has_section(self, name: str) -> bool:
        definition = self._definitions[name]
        return bool(definition.get("properties")) and BUILT_IN not in definition and name not in _WITHOUT_SECTION

    def _table(self, section: _Section) -> str:
        required = section.schema.get("required", [])
        rows = []
        for name, value in section.schema.get("properties", {}).items():
            resolved, model = self._resolved(value)
            default = "required" if name in required else _literal(self._default(section, name, resolved))
            words = _METADATA if model in _WITHOUT_SECTION else resolved.get("description", "")
            what = " ".join([prose(words), *self._rules(value)]).strip()
            rows.append((code(name), self._type(value), default, what))
        return table(("field", "type", "default", "what it is"), rows)

    def _default(self, section: _Section, name: str, schema: JsonSchema) -> object:
        if self._defaults is None or any("[]" in path for path in section.paths):
            return schema.get("default")
        if schema.get("properties"):
            return None
        place: Any = self._defaults
        for step in filter(None, section.paths[0].split(".") if section.paths else []):
            place = place[step]
        return place.get(name)

    def _type(self, schema: JsonSchema) -> str:
        resolved, name = self._resolved(schema)
        if BUILT_IN in resolved:
            return f"Kubernetes' {resolved[BUILT_IN]}"
        if name and self._has_section(name):
            return link(self._heading(name))
        if "items" in resolved:
            return f"list of {self._type(resolved['items'])}"
        if isinstance(resolved.get("additionalProperties"), dict):
            return f"map of {self._type(resolved['additionalProperties'])}"
        if "x-kubernetes-int-or-string" in resolved:
            return "integer or string"
        if "anyOf" in resolved:
            return " or ".join(dict.fromkeys(self._type(choice) for choice in resolved["anyOf"]))
        return {"date-time": "time", "duration": "duration"}.get(
            resolved.get("format", ""), str(resolved.get("type", "object"))
        )

    def _rules(self, schema: JsonSchema) -> Iterator[str]:
        """What a value must be, in sentences."""
        resolved, name = self._resolved(schema)
        choices = [*resolved.get("enum", []), *([resolved["const"]] if "const" in resolved else [])]
        if len(choices) > 1:
            yield f"One of {', '.join(map(_choice, choices))}."
        yield from _limits(resolved)
        if not (name and self._has_section(name)):
            yield from (f"Rule: {cell(message)}." for message in _messages(resolved))

    def _resolved(self, schema: JsonSchema) -> tuple[JsonSchema, str]:
        """A schema without reference and without the alternative null, and the name of the model that it is of."""
        if "$ref" in schema:
            name = schema["$ref"].removeprefix(_REFERENCE)
            beside = {key: value for key, value in schema.items() if key != "$ref"}
            return self._definitions[name] | beside, name
        alternatives = [choice for choice in schema.get("anyOf", []) if choice.get("type") != "null"]
        if len(alternatives) == 1:
            beside = {key: value for key, value in schema.items() if key != "anyOf"}
            resolved, name = self._resolved(alternatives[0])
            return resolved | beside, name
        return schema, ""


def rules_of_change(rules: Iterable[JsonSchema]) -> str:
    """A table of rules about a whole object."""
    rows = {(code(rule.get("fieldPath", ".metadata.name").removeprefix(".")), cell(rule["message"])) for rule in rules}
    return table(("field", "rule"), sorted(rows))


def _messages(schema: JsonSchema) -> Iterator[str]:
    for rule in schema.get(RULES, []):
        yield rule["message"]


def _limits(schema: JsonSchema) -> Iterator[str]:
    is_number = schema.get("type") in {"integer", "number"}
    if is_number and "minimum" in schema:
        yield f"At least {schema['minimum']:g}."
    if is_number and "exclusiveMinimum" in schema:
        yield f"More than {schema['exclusiveMinimum']:g}."
    if is_number and schema.get("maximum", _INT32) < _INT32:
        yield f"At most {schema['maximum']:g}."
    if "maxLength" in schema:
        yield f"At most {schema['maxLength']} characters."
    if "maxItems" in schema:
        yield f"At most {schema['maxItems']} entries."
    if "x-kubernetes-list-map-keys" in schema:
        yield f"No two entries have the same {', '.join(map(code, schema['x-kubernetes-list-map-keys']))}."
    if "pattern" in schema:
        words = patterns.WORDS.get(schema["pattern"])
        yield f"{cell(words[:1].upper() + words[1:])}." if words else f"Matches {code(schema['pattern'])}."


def _literal(value: object) -> str:
    if value in (None, "", [], {}):
        return ""
    if isinstance(value, dict):
        return ", ".join(code(f"{key}: {entry}") for key, entry in value.items())
    if isinstance(value, float):
        return code(f"{value:g}")
    return code(str(value).lower() if isinstance(value, bool) else value)


def _choice(value: object) -> str:
    return code(value) if value != "" else "nothing"
