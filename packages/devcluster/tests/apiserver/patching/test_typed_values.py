"""Values that no schema-bound comparison can take: wrong types, null containers, duplicate keys."""

from __future__ import annotations

from typing import Any

import pytest

from packages.devcluster.tests.apiserver.widgets import WIDGET_SCHEMA
from trainer_kube_testing.api_semantics import field_sets
from trainer_kube_testing.api_semantics.typed_values import (
    TypedValueError,
    compare,
    fields_of,
)

TYPE = WIDGET_SCHEMA.typing


def shown(paths: frozenset[tuple[str, ...]]) -> set[str]:
    return {field_sets.display(path) for path in paths}


ONE = ".spec.parts: element 0: associative list with keys"
"""How messages about the first item of a map list start."""


@pytest.mark.parametrize(
    ("value", "message"),
    [
        pytest.param({"spec": {"unknown": 1}}, ".spec.unknown: field not declared in schema", id="unknown"),
        pytest.param({"spec": {"size": "x"}}, '.spec.size: expected numeric (int or float), got "x"', id="type"),
        pytest.param({"spec": {"parts": [1]}}, f"{ONE} may not have non-map elements", id="number for an item"),
        pytest.param({"spec": {"parts": [None]}}, f"{ONE} may not have a null element", id="null for an item"),
        pytest.param(
            {"spec": {"parts": [{"weight": 1}]}},
            f'{ONE} has an element that omits all key fields ["name"] (and doesn\'t have default values for any key '
            "fields)",
            id="no key",
        ),
        pytest.param(
            {"spec": {"tags": [{}]}},
            ".spec.tags: element 0: associative list without keys has an element that's a map type",
            id="map in a set",
        ),
        pytest.param({"spec": {"tags": ["a", "a"]}}, '.spec.tags: duplicate entries for key [="a"]', id="duplicate"),
    ],
)
def test_configurations_that_do_not_fit(value: dict[str, Any], message: str) -> None:
    """Every mistake is named by path."""
    with pytest.raises(TypedValueError) as caught:
        fields_of(value, TYPE)
    assert str(caught.value) == message


def test_items_that_share_a_key_are_one_value() -> None:
    """Duplicates cannot be distinguished, so a change of one is a change of the key."""
    old = {"spec": {"parts": [{"name": "p", "weight": 1}, {"name": "p", "weight": 2}]}}
    new = {"spec": {"parts": [{"name": "p", "weight": 1}, {"name": "p", "weight": 3}]}}
    assert shown(compare(old, new, TYPE).modified) == {'.spec.parts[name="p"]'}
