"""Types of lists, maps and fields."""

from __future__ import annotations

import tracemalloc

import pytest

from packages.devcluster.tests.apiserver.widgets import WIDGET_SCHEMA
from trainer_devcluster.apiserver.objects.built_in_types import built_in_type
from trainer_devcluster.apiserver.objects.value_types import SchemaTyping


def at(root: SchemaTyping | None, *path: str) -> SchemaTyping:
    """The type at a path of field names; `[]` leads to the items of a list."""
    current = root
    for step in path:
        assert current is not None
        current = current.item if step == "[]" else current.field(step)
    assert current is not None
    return current


def test_defaulted_list_keys_are_known() -> None:
    """A port without a protocol has the key TCP, as in Go's defaults; a name has no default."""
    ports = at(built_in_type("v1", "Service"), "spec", "ports")
    assert ports.key_default("protocol") == "TCP"
    assert ports.key_default("port") is None


def test_prune_removes_what_the_kind_does_not_have() -> None:
    """Unknown fields go and are reported by sorted path; map keys and free-form content stay."""
    pod = {
        "metadata": {"name": "p", "labels": {"any": "key"}, "colour": 1},
        "spec": {"containers": [{"name": "c", "imagee": "i", "resources": {"limits": {"cpu": "1"}}}], "foo": {}},
    }
    typing = built_in_type("v1", "Pod")
    assert typing is not None
    assert typing.prune(pod) == ["metadata.colour", "spec.containers[0].imagee", "spec.foo"]
    assert pod == {
        "metadata": {"name": "p", "labels": {"any": "key"}},
        "spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "1"}}}]},
    }


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
