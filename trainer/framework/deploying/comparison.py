"""Whether an object already has the fields that we would apply."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, TypeAlias

from trainer.kube.quantity import parse_quantity

_Place: TypeAlias = tuple["_Place | None", str]
"""Where a field is: its parent, and the step from there. Only the paths of differences are written, for a path may
be as long as all fields below it together."""

_LIST_KEYS = ("name", "type", "uid", "mountPath", "containerPort", "ip", "topologyKey")
"""The keys by which server-side apply identifies the items of lists in the kinds that we build."""

_DEEPEST = 64
"""Depth to which objects are compared; the fields of Kubernetes objects are less deep."""

_AMOUNT = re.compile(r"\.((requests|limits)\.[^\[\]]+|sizeLimit|divisor|target\.(averageValue|value))$")
"""What follows the last bracket in the path of an amount (`resource.Quantity`) in the kinds that we build."""


def differences(applied: Any, live: Any, path: str = "") -> Iterator[str]:
    """Paths of fields in `applied` that `live` lacks or has with another value.

    What `live` has besides, such as defaults and what others added, is no difference. Neither is what servers and
    webhooks written in Go make of an object: they leave out what is empty, false or zero, and write amounts of
    resources in another way (`0.5` as `500m`). What is nested more deeply than any field of Kubernetes counts as
    different.
    """
    for place in _differences(applied, live, (None, path), _DEEPEST):
        yield _written(place).removeprefix("." if not path else "")


def _differences(applied: Any, live: Any, place: _Place, depth: int) -> Iterator[_Place]:
    if isinstance(applied, dict | list) and not depth:
        yield place
    elif isinstance(applied, dict):
        yield from _mapping_differences(applied, live, place, depth)
    elif isinstance(applied, list):
        yield from _list_differences(applied, live, place, depth)
    elif not _is_same(applied, live, place):
        yield place


def _written(place: _Place) -> str:
    steps: list[str] = []
    here: _Place | None = place
    while here is not None:
        here, step = here
        steps.append(step)
    return "".join(reversed(steps))


def _is_same(applied: Any, live: Any, place: _Place) -> bool:
    if live is None:
        return not applied
    if type(applied) is bool or type(live) is bool:
        return applied is live
    return bool(applied == live) or (_is_same_amount(applied, live) and _is_amount(_written(place)))


def _is_amount(path: str) -> bool:
    # Behind the last bracket the first candidate matches; searching the whole path would read it once for each.
    return _AMOUNT.search(path, max(path.rfind("["), path.rfind("]")) + 1) is not None


def _is_same_amount(applied: Any, live: Any) -> bool:
    try:
        return parse_quantity(applied) == parse_quantity(live)
    except ValueError:
        return False


def _mapping_differences(applied: dict[str, Any], live: Any, place: _Place, depth: int) -> Iterator[_Place]:
    if not isinstance(live, dict):
        if applied or live is not None:
            yield place
        return
    for name, value in applied.items():
        yield from _differences(value, live.get(name), (place, f".{name}"), depth - 1)


def _list_differences(applied: list[Any], live: Any, place: _Place, depth: int) -> Iterator[_Place]:
    live = [] if live is None else live
    key = _list_key(applied)
    if not isinstance(live, list) or (key is None and len(live) != len(applied)):
        yield place
        return
    if key is None:
        for index, (wanted, present) in enumerate(zip(applied, live, strict=True)):
            yield from _differences(wanted, present, (place, f"[{index}]"), depth - 1)
        return
    by_key = {str(item.get(key)): item for item in live if isinstance(item, dict)}
    for item in applied:
        yield from _differences(item, by_key.get(str(item[key])), (place, f"[{item[key]}]"), depth - 1)


def _list_key(items: list[Any]) -> str | None:
    if not items or not all(isinstance(item, dict) for item in items):
        return None
    for key in _LIST_KEYS:
        values = [item.get(key) for item in items]
        if all(isinstance(value, str | int) for value in values) and len(set(values)) == len(values):
            return key
    return None
