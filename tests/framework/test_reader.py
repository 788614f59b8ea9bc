"""Reading from the caches of the informers."""

from __future__ import annotations

import pytest

from trainer.framework.reader import CacheReader
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.cache.own_writes import OwnWrites
from trainer.kube.cache.store import Lister, Store
from trainer.kube.objects import ObjectKey, name_of
from trainer.kube.resource import CONFIG_MAPS, SECRETS
from trainer.kube.testing import ManualClock


def test_reads_what_is_attached() -> None:
    """Objects are found by key, and by namespace and labels."""
    store = Store()
    for namespace, name, labels in (
        ("ns", "a", {"x": "1", "y": "1"}),
        ("ns", "b", {"x": "2"}),
        ("other", "c", {"x": "1"}),
    ):
        metadata = {"namespace": namespace, "name": name, "labels": labels}
        store.put(CachedObject.of({"metadata": metadata}))
    reader = CacheReader()
    reader.attach(CONFIG_MAPS, Lister(store, OwnWrites(ManualClock())))

    found = reader.get(CONFIG_MAPS, ObjectKey("ns", "a"))

    assert found is not None
    assert name_of(found) == "a"
    assert reader.get(CONFIG_MAPS, ObjectKey("ns", "z")) is None
    assert [name_of(obj) for obj in reader.list(CONFIG_MAPS, "ns", {"x": "1"})] == ["a"]


def lister_of(**labels: str) -> Lister:
    """The cache of a plugin that watches ConfigMaps with these names; each has its label and an owner."""
    store = Store()
    store.add_index("by-label", lambda obj: list(obj.labels.values()))
    for name, label in labels.items():
        owner = {"apiVersion": "v1", "kind": "T", "name": "t", "uid": "u", "controller": True}
        metadata = {"namespace": "ns", "name": name, "labels": {"x": label}, "ownerReferences": [owner]}
        store.put(CachedObject.of({"metadata": metadata}))
    return Lister(store, OwnWrites(ManualClock()))


def test_parts_of_one_resource_are_read_together() -> None:
    """Plugins that watch different parts of a resource do not hide them from each other; what both have counts once."""
    reader = CacheReader()
    plain = Lister(Store(), OwnWrites(ManualClock()))
    for lister in (plain, lister_of(a="1", b="1"), lister_of(b="1", c="2")):
        reader.attach(CONFIG_MAPS, lister)
        reader.attach(CONFIG_MAPS, lister)

    assert reader.get(CONFIG_MAPS, ObjectKey("ns", "c")) is not None
    assert sorted(name_of(obj) for obj in reader.list(CONFIG_MAPS, "ns", {"x": "1"})) == ["a", "b"]
    assert reader.keys(CONFIG_MAPS, "by-label", "1") == {ObjectKey("ns", "a"), ObjectKey("ns", "b")}
    assert sorted(name_of(obj) for _, obj in reader.children("u")) == ["a", "b", "c"]
    with pytest.raises(LookupError, match="configmaps have no index other: the plugin's Watch must declare it"):
        reader.keys(CONFIG_MAPS, "other", "1")


def test_a_plugin_must_watch_what_it_reads() -> None:
    """Reading a resource that nobody watches is a mistake of the plugin, not an empty answer."""
    with pytest.raises(LookupError, match="secrets are not cached: a plugin that reads or builds them must watch them"):
        CacheReader().get(SECRETS, ObjectKey("ns", "a"))
