"""Events about an object and what was made for it."""

from __future__ import annotations

from trainer.kube.cache.cached_object import CachedObject
from trainer.workloads.related_events import involved_names, owner_among


def event(name: object) -> CachedObject:
    shape = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "default"}}
    return CachedObject.of(shape | {"involvedObject": {"kind": "Pod", "name": name}})


def test_involved_names() -> None:
    """An event is found by all objects that what it is about may belong to."""
    assert list(involved_names(event("a-b-node-0"))) == ["a-b-node-0", "a-b-node", "a-b", "a"]
    assert list(involved_names(CachedObject.of({"metadata": {"name": "e"}, "involvedObject": "nonsense"}))) == []
    assert list(involved_names(event("-" * 254))) == []
    assert len(list(involved_names(event("-" * 253)))) == 253


def test_owner() -> None:
    """It belongs to the one whose name fits best, if there is one."""
    assert owner_among(event("demo-2-node-0"), {"demo", "demo-2"}) == "demo-2"
    assert owner_among(event("demo-3-node-0"), {"demo", "demo-2"}) == "demo"
    assert owner_among(event("other"), {"demo"}) == ""
