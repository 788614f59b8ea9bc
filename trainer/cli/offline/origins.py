"""The origins of fields of built objects: the runtime, the TrainJob or a plugin, as comments in YAML."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Iterable, Iterator
from typing import TypeAlias, TypeGuard

import yaml

from trainer.framework.plugin_api.component import Component
from trainer.framework.plugin_api.runtime_info import by_mount_path, by_name, by_port, by_source, by_taint
from trainer.kube.objects import Object, ObjectKey, key_of
from trainer.kube.resource import Resource
from trainer.kubernetes_yaml import compose, dump

Path: TypeAlias = tuple[Hashable, ...]
"""Path of a leaf: names of fields, and keys of list items."""

_KEYS = {"volumeMounts": by_mount_path, "ports": by_port, "envFrom": by_source, "tolerations": by_taint}
"""Keys of list items; elsewhere it is their name."""

_TEMPLATE = "template"
"""Field that holds a Job template or a pod template, whose fields have origins."""


class Origins:
    """Which step of a build changed each field last, by what `Pipeline.steps` gives."""

    def __init__(self, steps: Iterable[tuple[str, list[Component]]]) -> None:
        self._leaves: dict[tuple[Resource, ObjectKey], dict[Path, object]] = {}
        self._origins: dict[tuple[Resource, ObjectKey], dict[Path, str]] = {}
        for origin, components in steps:
            for component in components:
                self._compare(origin, component)

    def _compare(self, origin: str, component: Component) -> None:
        identity = component.resource, key_of(component.object)
        before = self._leaves.get(identity, {})
        now = {path: copy.deepcopy(value) for path, value in _leaves(component.object)}
        origins = self._origins.setdefault(identity, {})
        for path, value in now.items():
            if path not in before or before[path] != value:
                origins[path] = origin
        self._leaves[identity] = now

    def annotated(self, component: Component) -> str:
        """The object as YAML, with origins as comments in its Job and pod templates."""
        text = dump(component.object)
        origins = self._origins.get((component.resource, key_of(component.object)), {})
        lines = text.splitlines()
        node = compose(text)
        assert node is not None, "an object is not an empty document"
        for path, line in _lines(node, component.object):
            if _TEMPLATE in path and path in origins:
                lines[line] += f"  # {' '.join(origins[path].split())}"
        return "\n".join(lines) + "\n"


def _leaves(value: object, path: Path = ()) -> Iterator[tuple[Path, object]]:
    """All values without fields. A list of texts is one value, since it is written as a whole."""
    if isinstance(value, dict) and value:
        for name, member in value.items():
            yield from _leaves(member, (*path, name))
    elif _holds_fields(value):
        for identity, item in zip(_steps(value, path), value, strict=True):
            yield from _leaves(item, (*path, identity))
    else:
        yield path, value


def _lines(node: yaml.Node, value: object, path: Path = ()) -> Iterator[tuple[Path, int]]:
    """The number of the line of each leaf; for a list that of its field."""
    if isinstance(node, yaml.MappingNode) and isinstance(value, dict) and value:
        for key, member in node.value:
            where = (*path, key.value)
            if _is_leaf(value[key.value]):
                yield where, key.start_mark.line
            else:
                yield from _lines(member, value[key.value], where)
    elif isinstance(node, yaml.SequenceNode) and _holds_fields(value):
        for item, identity, member in zip(node.value, _steps(value, path), value, strict=True):
            yield from _lines(item, member, (*path, identity))


def _is_leaf(value: object) -> bool:
    return not (isinstance(value, dict) and value) and not _holds_fields(value)


def _holds_fields(value: object) -> TypeGuard[list[Object]]:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) and item for item in value)


def _steps(items: list[Object], path: Path) -> list[Hashable]:
    """The keys of list items, else their positions."""
    key = _KEYS.get(str(path[-1]) if path else "", by_name)
    keys = [key(item) for item in items]
    if None in keys or len(set(keys)) < len(keys):
        return list(range(len(items)))
    return [("key", key) for key in keys]
