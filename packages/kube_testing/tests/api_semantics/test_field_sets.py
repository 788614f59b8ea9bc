"""Field sets and the FieldsV1 format."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer_kube_testing.api_semantics import field_sets

elements = st.one_of(
    st.text(max_size=4).map(field_sets.field),
    st.dictionaries(st.text(max_size=3), st.text(max_size=3) | st.integers(), min_size=1, max_size=2).map(
        field_sets.key
    ),
    (st.text(max_size=3) | st.integers() | st.booleans()).map(field_sets.value),
    st.integers(0, 9).map(field_sets.index),
)
paths = st.lists(elements, min_size=1, max_size=4).map(tuple)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"f:spec": {"f:size": {}}}, {("f:spec", "f:size")}, id="leaf"),
        pytest.param({"f:data": {".": {}, "f:a": {}}}, {("f:data",), ("f:data", "f:a")}, id="container itself"),
    ],
)
def test_fields_v1(fields: dict[str, Any], expected: set[tuple[str, ...]]) -> None:
    """The format is read and written as the API documents it."""
    assert field_sets.parse(fields) == expected
    assert field_sets.render(frozenset(expected)) == fields


@given(st.frozensets(paths))
def test_round_trip(owned: frozenset[tuple[str, ...]]) -> None:
    """Writing and reading gives the same set."""
    assert field_sets.parse(field_sets.render(owned)) == owned


def test_unknown_elements_are_skipped() -> None:
    """Nonsense in stored entries does no harm."""
    assert field_sets.parse({"x": {}, "f:a": "text", "f:b": {}}) == {("f:b",)}


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        (("f:spec", "f:size"), ".spec.size"),
        (("f:spec", "f:parts", 'k:{"name":"p"}', "f:weight"), '.spec.parts[name="p"].weight'),
        (("f:ports", 'k:{"port":80,"protocol":"TCP"}'), '.ports[port=80,protocol="TCP"]'),
        (("f:tags", 'v:"a"'), '.tags[="a"]'),
        (("f:args", "i:0"), ".args[0]"),
    ],
)
def test_display(path: tuple[str, ...], shown: str) -> None:
    """Paths look as in conflict messages."""
    assert field_sets.display(path) == shown
