"""References between the schemas of an OpenAPI document, whatever its version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainer_devcluster.apiserver.objects.built_in_types import built_in_definitions

if TYPE_CHECKING:
    from collections.abc import Callable


def add_referenced(schemas: dict[str, Any], published: Callable[[Any], Any], prefix: str) -> None:
    """Add, in place, the built-in types that the schemas refer to, and those that these refer to.

    Args:
        schemas: by name.
        published: writes a type of the data file as the document has it.
        prefix: of references, before the name.
    """
    waiting = list(schemas.values())
    while waiting:
        for name in _references(waiting.pop(), prefix):
            definition = built_in_definitions().get(name)
            if name not in schemas and definition is not None:
                schemas[name] = published(definition)
                waiting.append(schemas[name])


def _references(schema: Any, prefix: str) -> set[str]:
    if isinstance(schema, list):
        return {name for entry in schema for name in _references(entry, prefix)}
    if not isinstance(schema, dict):
        return set()
    found = {name for entry in schema.values() for name in _references(entry, prefix)}
    reference = schema.get("$ref")
    return found | {reference.removeprefix(prefix)} if isinstance(reference, str) else found
