"""Objects that grow: from a schema, one object for each text, list, map and number in it, of any size."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

import pytest

from trainer.api import patterns
from trainer.api.model import ApiModel
from trainer.kube.objects import Object

_TEXTS = {
    patterns.ABSOLUTE_PATH: "/a{}",
    patterns.STORAGE_URI: "s3://a/{}",
    patterns.QUANTITY: "1",
    patterns.NUMBER_OF_PROCESSES: "1",
    patterns.CONTAINER_RESOURCE: "limits.cpu",
}

_ITEMS: dict[str, Object] = {
    "containers": {"image": "i"},
    "initContainers": {"name": "i{}", "image": "i"},
    "envFrom": {"configMapRef": {"name": "a"}},
    "tolerations": {"key": "a{}"},
    "imagePullSecrets": {"name": "a{}"},
    "matchExpressions": {"values": ["a"]},
    "matchFields": {"values": ["a"]},
    "rules": {"onPodConditions": [{"type": "a", "status": "True"}], "succeededCount": 1},
}
"""What items of these lists need besides what their schema requires."""


@dataclass(frozen=True, slots=True)
class Growth:
    """A place in an object, and what is there."""

    path: tuple[str, ...]
    """Fields on the way; `[]` is the first item of a list, `{}` the first value of a map."""
    schema: Object
    root: Object
    """Schema of the object."""

    def of(self, size: int) -> Any:
        """The smallest object with this place, which has a size."""
        grown = _grown(self.schema, size)
        if isinstance(grown, list) and self.path[-1] in _ITEMS:
            known = self.schema["items"].get("properties") or {}
            needed = {name: value for name, value in _ITEMS[self.path[-1]].items() if name in known}
            grown = [item | _numbered(needed, index) for index, item in enumerate(grown)] if needed else grown
        return _placed(self.root, self.path, grown)

    def with_unknown(self, fields: dict[str, int]) -> Any:
        """The smallest object with this place, an object that has fields besides which its schema does not know."""
        return _placed(self.root, self.path, _smallest(self.schema, 0) | fields)

    @property
    def holds_many(self) -> bool:
        """Whether it is a list or a map."""
        return self.schema.get("type") == "array" or isinstance(self.schema.get("additionalProperties"), dict)

    @property
    def fields(self) -> tuple[str, ...]:
        """What the schema knows, if it is an object that has no other fields."""
        is_open = self.schema.get("x-kubernetes-preserve-unknown-fields")
        return () if is_open else tuple(self.schema.get("properties") or ())

    def __str__(self) -> str:
        return ".".join(self.path)


def growths(schema: Object) -> Iterator[Growth]:
    """Every place below a schema, those of equal schemas only where they come first."""
    seen: set[str] = set()

    def walk(node: Object, path: tuple[str, ...]) -> Iterator[Growth]:
        if path:
            yield Growth(path, node, schema)
        structure = json.dumps(_without_words(node), sort_keys=True)
        if structure in seen:
            return
        seen.add(structure)
        for name, child in (node.get("properties") or {}).items():
            yield from walk(child, (*path, name))
        for keyword, step in (("items", "[]"), ("additionalProperties", "{}")):
            if isinstance(node.get(keyword), dict):
                yield from walk(node[keyword], (*path, step))

    return walk(schema, ())


def work(function: Callable[[], object]) -> int:
    """Lines of Python that a call takes, and values that models are written as, whatever the speed of the machine.

    The garbage of other tests is not collected meanwhile: its finalizers would be counted.
    """
    count = 0
    original = ApiModel.to_object

    def counted(model: ApiModel) -> Object:
        nonlocal count
        written = original(model)
        count += _values(written)
        return written

    def trace(_frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    former = sys.gettrace()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ApiModel, "to_object", counted)
        gc.disable()
        sys.settrace(trace)
        try:
            function()
        finally:
            sys.settrace(former)
            gc.enable()
    return count


def _numbered(fields: Object, index: int) -> Object:
    return {name: value.format(index) if isinstance(value, str) else value for name, value in fields.items()}


def _word(path: list[str]) -> str:
    return "v" + "".join(character for character in "".join(path).lower() if character.isalnum())[-60:]


def _values(value: Any) -> int:
    if isinstance(value, dict | list):
        return 1 + sum(map(_values, value.values() if isinstance(value, dict) else value))
    return 1


def _without_words(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_words(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: _without_words(value)
        for name, value in schema.items()
        if not (name == "description" and isinstance(value, str))
    }


def _placed(schema: Object, path: tuple[str, ...], value: Any) -> Any:
    if not path:
        return value
    step, *rest = path
    if step == "[]":
        return [_placed(schema["items"], tuple(rest), value)]
    if (step, *rest[:1]) == ("volumes", "[]"):
        # A volume of its own: no volume may have two sources.
        return {
            "volumes": [_placed(schema["properties"][step]["items"], tuple(rest[1:]), value) | {"name": _word(rest)}]
        }
    if step == "{}":
        return {"a": _placed(schema["additionalProperties"], tuple(rest), value)}
    return _smallest(schema, 0) | {step: _placed(schema["properties"][step], tuple(rest), value)}


def _grown(schema: Object, size: int) -> Any:
    kind = schema.get("type")
    if kind == "array":
        return [_smallest(schema["items"], index) for index in range(min(size, schema["maxItems"]))]
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        values = schema["additionalProperties"]
        return {
            f"example.com/a{index}": _smallest(values, index) for index in range(min(size, schema["maxProperties"]))
        }
    if kind in {"integer", "number"}:
        return int(min(size, schema.get("maximum", size)))
    if (kind == "string" and "enum" not in schema) or schema.get("x-kubernetes-int-or-string"):
        return (
            (_smallest(schema, 0) + "1" * size)[: schema["maxLength"]] if kind == "string" else str(10 ** min(size, 17))
        )
    return _smallest(schema, 0)


def _smallest(schema: Object, index: int) -> Any:
    """A value that fits; items of a list differ by their index."""
    if "enum" in schema:
        return schema["enum"][0]
    if schema.get("x-kubernetes-int-or-string"):
        return "1"
    match schema.get("type"):
        case "string":
            return _TEXTS.get(schema.get("pattern", ""), "a{}").format(index)
        case "integer" | "number":
            return index + 1
        case "boolean":
            return True
        case "array":
            return [_smallest(schema["items"], each) for each in range(schema.get("minItems", 0))]
        case _:
            return {name: _smallest(schema["properties"][name], index) for name in schema.get("required", ())}
