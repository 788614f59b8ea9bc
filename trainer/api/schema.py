"""Structural schemas from models (Kubernetes documentation, "Structural schema").

The same schema is in the CustomResourceDefinition and checks what users hand to the command line, so both refuse alike.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from trainer.api.bounds import bounded
from trainer.api.builtin_schemas import BUILT_IN, built_in_schema
from trainer.api.rules import RULES

JsonSchema = dict[str, Any]

_ROOT = {
    "apiVersion": "Version of the schema that this object is written in.",
    "kind": "Kind of the object.",
}


def model_schema(model: type[BaseModel]) -> JsonSchema:
    """The structural schema of a model, without references and nulls, and with a bound for every value."""
    generated = model.model_json_schema()
    return bounded(_Structure(generated.pop("$defs", {})).of(generated))


def structural_schema(model: type[BaseModel]) -> JsonSchema:
    """The schema of a root object in a CRD, without metadata and type, which the API server checks."""
    schema = model_schema(model)
    properties = schema["properties"]
    for name, description in _ROOT.items():
        properties[name] = {"type": "string", "description": description}
    properties["metadata"] = {"type": "object"}
    return schema


class _Structure:
    """Rewrites JSON schemas as pydantic writes them; a definition is copied wherever it is referenced."""

    def __init__(self, definitions: dict[str, JsonSchema]) -> None:
        self._definitions = definitions

    def of(self, schema: JsonSchema) -> JsonSchema:
        schema = self._resolved(schema)
        if BUILT_IN in schema:
            return self._built_in(schema)
        structural = {key: value for key, value in schema.items() if key not in {"title", "properties", "items"}}
        if "const" in structural:
            structural["enum"] = [structural.pop("const")]
        self._describe(structural, schema)
        if schema.get("properties"):  # the API server leaves empty ones out, so they would always differ
            structural["properties"] = {name: self.of(value) for name, value in schema["properties"].items()}
        if "items" in schema:
            structural["items"] = self.of(schema["items"])
        additional = structural.pop("additionalProperties", None)
        if additional is True:
            structural["x-kubernetes-preserve-unknown-fields"] = True
        elif isinstance(additional, dict):
            structural["additionalProperties"] = self.of(additional)
        return structural

    def _built_in(self, schema: JsonSchema) -> JsonSchema:
        structural = built_in_schema(schema[BUILT_IN])
        if RULES in schema:
            structural[RULES] = schema[RULES]
        self._describe(structural, schema)
        return structural

    @staticmethod
    def _describe(structural: JsonSchema, schema: JsonSchema) -> None:
        if "description" in schema:
            structural["description"] = " ".join(schema["description"].split())

    def _resolved(self, schema: JsonSchema) -> JsonSchema:
        """Without reference and without the alternative null; what stands beside them wins, as descriptions do."""
        beside = {key: value for key, value in schema.items() if not (key == "default" and value is None)}
        if "$ref" in beside:
            name = beside.pop("$ref").removeprefix("#/$defs/")
            return self._resolved(self._definitions[name]) | beside
        alternatives = [choice for choice in beside.get("anyOf", []) if choice.get("type") != "null"]
        if len(alternatives) == 1:
            del beside["anyOf"]
            return self._resolved(alternatives[0]) | beside
        return beside
