"""Finding the old part that belongs to a new one."""

from __future__ import annotations

import pytest

from trainer.kube.api_semantics.json_values import ABSENT, same
from trainer_devcluster.apiserver.schema.list_items import item_key, old_items

BY_NAME = {
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name", "protocol"],
    "items": {"properties": {"name": {}, "protocol": {"default": "TCP"}}},
}


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        ({"a": [1]}, {"a": [1]}, True),
        ({"a": [1]}, {"a": [True]}, False),
        ({"a": None}, {}, False),
        ([1, 2], [2, 1], False),
        (None, None, True),
    ],
)
def test_same(left: object, right: object, equal: bool) -> None:
    """Equality is that of JSON: numbers by value, booleans are no numbers."""
    assert same(left, right) is equal


def test_items_correspond_by_their_keys() -> None:
    """Key fields find the old item, defaults included; other lists have no correspondence."""
    old = [{"name": "a", "protocol": "TCP", "v": 1}, {"name": "a", "protocol": "UDP", "v": 2}]
    new = [{"name": "a", "protocol": "UDP"}, {"name": "a"}, {"name": "b"}, "text"]
    assert old_items(new, old, BY_NAME) == [old[1], old[0], ABSENT, ABSENT]
    assert old_items(new, old, {"x-kubernetes-list-type": "set"}) == [ABSENT] * 4
    assert old_items(new, None, BY_NAME) == [ABSENT] * 4
    assert item_key("text", BY_NAME) is None
