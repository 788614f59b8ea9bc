"""Types of lists, maps and fields."""

from __future__ import annotations

import tracemalloc

import pytest

from packages.devcluster.tests.apiserver.widgets import WIDGET_SCHEMA
from trainer_devcluster.apiserver.objects.built_in_types import built_in_type, description_of, object_meta
from trainer_devcluster.apiserver.objects.value_types import UNTYPED, SchemaTyping
from trainer_kube_testing.api_semantics.value_types import ListType


def at(root: SchemaTyping | None, *path: str) -> SchemaTyping:
    """The type at a path of field names; `[]` leads to the items of a list."""
    current = root
    for step in path:
        assert current is not None
        current = current.item if step == "[]" else current.field(step)
    assert current is not None
    return current


@pytest.mark.parametrize(
    ("path", "list_type", "keys"),
    [
        pytest.param(("spec", "containers"), ListType.MAP, ("name",), id="map list"),
        pytest.param(("spec", "containers", "[]", "ports"), ListType.MAP, ("containerPort", "protocol"), id="two keys"),
        pytest.param(("spec", "containers", "[]", "args"), ListType.ATOMIC, (), id="atomic list"),
        pytest.param(("spec", "tolerations"), ListType.ATOMIC, (), id="undeclared means atomic"),
        pytest.param(("metadata", "finalizers"), ListType.SET, (), id="set"),
        pytest.param(("metadata", "ownerReferences"), ListType.MAP, ("uid",), id="owner references"),
    ],
)
def test_built_in_lists_have_their_published_types(
    path: tuple[str, ...], list_type: ListType, keys: tuple[str, ...]
) -> None:
    """List types and keys of built-in kinds come from the published API."""
    typing = at(built_in_type("v1", "Pod"), *path)
    assert typing.list_type is list_type
    assert typing.list_map_keys == keys


def test_defaulted_list_keys_are_known() -> None:
    """A port without a protocol has the key TCP, as in Go's defaults; a name has no default."""
    ports = at(built_in_type("v1", "Service"), "spec", "ports")
    assert ports.key_default("protocol") == "TCP"
    assert ports.key_default("port") is None


def test_custom_resources_have_their_own_lists_and_common_metadata() -> None:
    """A custom resource takes list types from its schema and metadata from the API."""
    typing = WIDGET_SCHEMA.typing
    assert at(typing, "spec", "parts").list_map_keys == ("name",)
    assert at(typing, "spec", "tags").list_type is ListType.SET
    assert at(typing, "metadata", "finalizers").list_type is ListType.SET
    assert at(typing, "spec", "free", "anything").is_untyped


def test_strategic_merge_information_is_kept() -> None:
    """Merge keys and strategies are those of the published API."""
    spec = at(built_in_type("v1", "Pod"), "spec")
    assert at(spec, "containers").merge_key == "name"
    assert at(spec, "volumes").patch_strategies == {"merge", "retainKeys"}
    assert at(built_in_type("v1", "Pod"), "metadata", "ownerReferences", "[]").is_atomic_map


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


def test_kinds_that_are_not_in_the_data_have_no_type() -> None:
    """Asking for an unknown kind gives nothing rather than an error."""
    assert built_in_type("apps/v1beta1", "Deployment") is None
    assert description_of("apps/v1beta1", "Deployment", "spec") == ""


def test_descriptions_come_from_the_api_documentation() -> None:
    """Fields of built-in kinds know what the API documentation says about them."""
    assert description_of("v1", "Pod", "status", "podIP").startswith("podIP address allocated to the pod.")
    name = object_meta().field("name")
    assert name is not None
    assert name.schema["description"].startswith("Name must be unique within a namespace.")


def test_untyped_values_may_be_anything() -> None:
    """An untyped node leads to untyped nodes; its lists are atomic."""
    assert at(UNTYPED, "a", "b").is_untyped
    assert UNTYPED.list_type is ListType.ATOMIC
    assert not UNTYPED.declares("a")


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
