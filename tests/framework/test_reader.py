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


def test_a_plugin_must_watch_what_it_reads() -> None:
    """Reading a resource that nobody watches is a mistake of the plugin, not an empty answer."""
    with pytest.raises(LookupError, match="secrets are not cached: a plugin that reads or builds them must watch them"):
        CacheReader().get(SECRETS, ObjectKey("ns", "a"))
