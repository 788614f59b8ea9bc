"""Store and lister."""

from __future__ import annotations

import pytest

from tests.kube.objects import owned_by, pod
from trainer.kube.objects import Object, ObjectKey, labels_of, name_of
from trainer.kube.selectors import LabelSelector
from trainer.kube.store import CONTROLLER_UID, Store


def names(objects: list[Object]) -> list[str]:
    return sorted(map(name_of, objects))


@pytest.fixture
def store() -> Store:
    store = Store()
    store.put(pod("a", "one", labels={"app": "x"}, ownerReferences=[owned_by("Job", "j", uid="1")]))
    store.put(pod("b", "one", labels={"app": "y"}, ownerReferences=[owned_by("Job", "j", uid="1", controller=False)]))
    store.put(pod("a", "two", labels={"app": "x"}, ownerReferences=[owned_by("Job", "k", uid="2")]))
    return store


@pytest.mark.parametrize(
    ("namespace", "selector", "expected"),
    [
        pytest.param(None, None, ["a", "a", "b"], id="all"),
        pytest.param("one", None, ["a", "b"], id="namespace"),
        pytest.param("three", None, [], id="unknown-namespace"),
        pytest.param(None, "app=x", ["a", "a"], id="labels"),
        pytest.param("one", "app=x", ["a"], id="namespace-and-labels"),
    ],
)
def test_list_narrows_by_namespace_and_labels(
    store: Store, namespace: str | None, selector: str | None, expected: list[str]
) -> None:
    """A list holds what is in the namespace and has the labels."""
    parsed = LabelSelector.parse(selector) if selector is not None else None
    assert names(store.lister.list(namespace, parsed)) == expected


def test_get_finds_by_namespace_and_name(store: Store) -> None:
    """The same name in two namespaces is two objects."""
    found = store.lister.get(ObjectKey("two", "a"))
    assert found is not None
    assert labels_of(found) == {"app": "x"}
    assert store.lister.get(ObjectKey("two", "b")) is None


def test_controller_uid_index_is_there_from_the_start(store: Store) -> None:
    """Only the controller owner counts, not other owners."""
    assert names(store.lister.by_index(CONTROLLER_UID, "1")) == ["a"]
    assert store.lister.by_index(CONTROLLER_UID, "3") == []


def test_index_follows_changes_and_removals(store: Store) -> None:
    """An index finds objects by their present values only."""
    store.add_index("app", lambda obj: [labels_of(obj)["app"]])
    assert names(store.lister.by_index("app", "x")) == ["a", "a"]
    store.put(pod("a", "one", labels={"app": "z"}))
    store.remove(ObjectKey("two", "a"))
    assert store.lister.by_index("app", "x") == []
    assert names(store.lister.by_index("app", "z")) == ["a"]
    assert store.lister.by_index(CONTROLLER_UID, "1") == []


def test_unknown_index_is_an_error(store: Store) -> None:
    """A misspelt index is told apart from an empty one."""
    with pytest.raises(KeyError, match="no index 'node'"):
        store.lister.by_index("node", "n")


def test_index_names_are_unique(store: Store) -> None:
    """The second index of a name is refused."""
    with pytest.raises(ValueError, match="exists already"):
        store.add_index(CONTROLLER_UID, lambda _: [])
