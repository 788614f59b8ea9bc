"""Types of lists, maps and fields."""

from __future__ import annotations

import tracemalloc

import pytest

from packages.devcluster.tests.apiserver.widgets import WIDGET_SCHEMA
from trainer_devcluster.apiserver.objects.value_types import SchemaTyping


def at(root: SchemaTyping | None, *path: str) -> SchemaTyping:
    """The type at a path of field names; `[]` leads to the items of a list."""
    current = root
    for step in path:
        assert current is not None
        current = current.item if step == "[]" else current.field(step)
    assert current is not None
    return current


@pytest.mark.parametrize(
    "path",
    [
        pytest.param((), id="fields that the kind does not have"),
        pytest.param(("metadata", "labels"), id="keys of a map"),
        pytest.param(("spec", "free"), id="fields of a free object"),
    ],
)
def test_names_that_clients_make_up_are_not_kept(path: tuple[str, ...]) -> None:
    """Types are as many as the schema has places: a client cannot fill the memory with new names."""
    typing = at(WIDGET_SCHEMA.typing, *path)
    typing.field("first")
    tracemalloc.start()
    try:
        for number in range(5_000):
            typing.field(f"made-up-{number}")
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 20_000
