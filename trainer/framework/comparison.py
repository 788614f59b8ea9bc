"""Whether an object already has the fields that we would apply."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from trainer.kube.quantity import parse_quantity

if TYPE_CHECKING:
    from collections.abc import Iterator

_LIST_KEYS = ("name", "type", "uid", "mountPath", "containerPort", "ip", "topologyKey")
"""By which server-side apply tells apart the items of lists in the kinds that we build."""

_AMOUNT = re.compile(r"\.((requests|limits)\.[^\[\]]+|sizeLimit|divisor)$")
"""What follows the last bracket in the path of an amount (`resource.Quantity`) in the kinds that we build."""


def differences(applied: Any, live: Any, path: str = "") -> Iterator[str]:
    """Paths of fields in `applied` that `live` lacks or has with another value.

    What `live` has besides, such as defaults and what others added, is no difference. Neither is what servers and
    webhooks written in Go make of an object: they leave out what is empty, false or zero, and write amounts of
    resources in another way (`0.5` as `500m`).
    """
    if isinstance(applied, dict):
        yield from _mapping_differences(applied, live, path)
    elif isinstance(applied, list):
        yield from _list_differences(applied, live, path)
    elif not _is_same(applied, live, path):
        yield path


def _is_same(applied: Any, live: Any, path: str) -> bool:
    if live is None:
        return not applied
    if type(applied) is bool or type(live) is bool:
        return applied is live
    return bool(applied == live) or (_is_amount(path) and _is_same_amount(applied, live))


def _is_amount(path: str) -> bool:
    # Behind the last bracket the first candidate matches; searching the whole path would read it once for each.
    return _AMOUNT.search(path, max(path.rfind("["), path.rfind("]")) + 1) is not None


def _is_same_amount(applied: Any, live: Any) -> bool:
    try:
        return parse_quantity(applied) == parse_quantity(live)
    except ValueError:
        return False


def _mapping_differences(applied: dict[str, Any], live: Any, path: str) -> Iterator[str]:
    if not isinstance(live, dict):
        if applied or live is not None:
            yield path
        return
    for name, value in applied.items():
        yield from differences(value, live.get(name), f"{path}.{name}" if path else name)


def _list_differences(applied: list[Any], live: Any, path: str) -> Iterator[str]:
    live = [] if live is None else live
    key = _list_key(applied)
    if not isinstance(live, list) or (key is None and len(live) != len(applied)):
        yield path
        return
    if key is None:
        for index, (wanted, present) in enumerate(zip(applied, live, strict=True)):
            yield from differences(wanted, present, f"{path}[{index}]")
        return
    by_key = {item.get(key): item for item in live}
    for item in applied:
        yield from differences(item, by_key.get(item[key]), f"{path}[{item[key]}]")


def _list_key(items: list[Any]) -> str | None:
    if not items or not all(isinstance(item, dict) for item in items):
        return None
    for key in _LIST_KEYS:
        values = [item.get(key) for item in items]
        if None not in values and len(set(values)) == len(values):
            return key
    return None
