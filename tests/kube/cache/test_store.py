"""Store and lister."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from tests.kube.objects import owned_by, pod
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.cache.own_writes import OwnWrites
from trainer.kube.cache.store import CONTROLLER_UID, Lister, Store
from trainer.kube.objects import Object, ObjectKey, name_of
from trainer.kube.selectors import LabelSelector
from trainer_kube_testing import ManualClock


def names(objects: list[Object]) -> list[str]:
    return sorted(map(name_of, objects))


@pytest.fixture
def store() -> Store:
    store = Store()
    for obj in (
        pod("a", "one", labels={"app": "x"}, ownerReferences=[owned_by("Job", "j", uid="1")]),
        pod("b", "one", labels={"app": "y"}, ownerReferences=[owned_by("Job", "j", uid="1", controller=False)]),
        pod("a", "two", labels={"app": "x"}, ownerReferences=[owned_by("Job", "k", uid="2")]),
    ):
        store.put(CachedObject.of(obj))
    return store


@pytest.fixture
def lister(store: Store) -> Lister:
    return Lister(store, OwnWrites(ManualClock()))


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
    store: Store, lister: Lister, namespace: str | None, selector: str | None, expected: list[str]
) -> None:
    """A list holds what is in the namespace and has the labels."""
    parsed = LabelSelector.parse(selector) if selector is not None else None
    assert names(lister.list(namespace, parsed)) == expected


def test_controller_uid_index_is_there_from_the_start(store: Store, lister: Lister) -> None:
    """Only the controller owner counts, not other owners."""
    assert names(lister.by_index(CONTROLLER_UID, "1")) == ["a"]
    assert lister.keys_by_index(CONTROLLER_UID, "1") == {ObjectKey("one", "a")}
    assert lister.by_index(CONTROLLER_UID, "3") == []


def test_index_follows_changes_and_removals(store: Store, lister: Lister) -> None:
    """An index finds objects by their present values only."""
    store.add_index("app", lambda obj: [obj.labels["app"]])
    assert names(lister.by_index("app", "x")) == ["a", "a"]
    store.put(CachedObject.of(pod("a", "one", labels={"app": "z"})))
    store.remove(ObjectKey("two", "a"))
    assert lister.by_index("app", "x") == []
    assert names(lister.by_index("app", "z")) == ["a"]
    assert lister.by_index(CONTROLLER_UID, "1") == []


def test_failing_index_function_harms_one_object(store: Store, lister: Lister) -> None:
    """An object on which it raises is stored, found otherwise, and logged with its key."""
    store.add_index("node", lambda obj: [obj["spec"]["nodeName"]] if obj.key.name == "new" else [])
    with capture_logs() as logs:
        store.put(CachedObject.of(pod("new", "one")))
    assert (logs[0]["event"], logs[0]["index"], logs[0]["key"]) == ("index function failed", "node", "one/new")
    store.put(CachedObject.of(pod("new", "one", labels={"app": "x"}) | {"spec": {"nodeName": "n"}}))
    assert names(lister.by_index("node", "n")) == ["new"]
    assert names(lister.list("one")) == ["a", "b", "new"]


def test_unknown_index_is_an_error(store: Store, lister: Lister) -> None:
    """A misspelt index differs from an empty one."""
    with pytest.raises(KeyError, match="no index 'node'"):
        lister.by_index("node", "n")


def test_index_names_are_unique(store: Store, lister: Lister) -> None:
    """The second index of a name is refused."""
    with pytest.raises(ValueError, match="exists already"):
        store.add_index(CONTROLLER_UID, lambda _: [])


def test_size_is_that_of_what_is_stored(store: Store) -> None:
    """Bytes follow additions, changes and removals."""
    small, large = CachedObject.of(pod("n")), CachedObject.of(pod("n", labels={"long": "label"}))
    before = store.size
    store.put(small)
    assert store.size == before + len(small.raw)
    store.put(large)
    assert store.size == before + len(large.raw)
    store.remove(large.key)
    assert store.size == before


async def test_replacement_is_seen_whole(store: Store, lister: Lister) -> None:
    """Readers see all of the old or all of the new objects and indexes."""
    store.add_index("app", lambda obj: [obj.labels["app"]])
    size = store.size
    old = await store.replace([CachedObject.of(pod("n", "one", labels={"app": "x"}))])
    assert names(lister.list()) == names(lister.by_index("app", "x")) == names(lister.list("one")) == ["n"]
    assert lister.by_index(CONTROLLER_UID, "1") == []
    assert {key.name for key in old} == {"a", "b"}
    assert 0 < store.size < size
