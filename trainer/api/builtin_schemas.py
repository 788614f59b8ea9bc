"""Structural schemas of the built-in Kubernetes types that our objects contain, such as pod templates.

`hack/generate_pod_schema.py` makes them from the published API; models carry the values as plain JSON.
"""

from __future__ import annotations

import functools
import gzip
import json
from importlib import resources
from typing import Any, Final

from trainer.kube.objects import Object

BUILT_IN: Final = "x-built-in"
"""Keyword in the JSON schema of a model that stands for the schema of a built-in type."""

_PACKED: Final = resources.files(__package__).joinpath("builtin_schemas.json.gz").read_bytes()
"""Read at import, because the first caller may run on an event loop, which must not block on a file."""


def built_in(name: str) -> dict[str, Any]:
    """Schema extension: the value is of a built-in type, such as `PodTemplateSpec`."""
    return {BUILT_IN: name}


def built_in_schema(name: str) -> Object:
    """The structural schema of a built-in type, without references; a new object on each call.

    Raises:
        KeyError: the data file does not have the type.
    """
    schema: Object = _inlined({"$ref": name})
    return schema


def _inlined(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_inlined(entry) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    beside = {keyword: _inlined(value) for keyword, value in schema.items() if keyword != "$ref"}
    return _inlined(_definitions()[schema["$ref"]]) | beside if "$ref" in schema else beside


@functools.cache
def _definitions() -> Object:
    definitions: Object = json.loads(gzip.decompress(_PACKED))["definitions"]
    return definitions
