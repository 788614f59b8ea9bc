from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.kube.resource import CONFIG_MAPS
from trainer_devcluster.controllers.garbage_collector.graph import Node, OwnershipGraph

if TYPE_CHECKING:
    from trainer.kube.objects import Object


def node(uid: str, *owners: str, **metadata: object) -> Node:
    references = [
        {"apiVersion": "batch/v1", "kind": "Job", "name": f"name-{owner}", "uid": owner, "blockOwnerDeletion": True}
        for owner in owners
    ]
    obj: Object = {"metadata": {"name": uid, "namespace": "n", "uid": uid, "ownerReferences": references, **metadata}}
    return Node.of(CONFIG_MAPS, obj)


def test_dependents_are_known_before_their_owner() -> None:
    """The two watches are not ordered: a child may come first."""
    graph = OwnershipGraph()
    child = node("child", "owner")
    graph.put(child)
    assert graph.get("owner") is None
    assert graph.dependents("owner") == [child]
    graph.put(node("owner"))
    assert graph.dependents("owner") == [child]


def test_changed_owner_references_move_the_dependent() -> None:
    """A former owner loses the dependent."""
    graph = OwnershipGraph()
    graph.put(node("child", "a", "b"))
    old = graph.put(node("child", "b"))
    assert old is not None
    assert len(old.owners) == 2
    assert graph.dependents("a") == []
    assert [entry.uid for entry in graph.dependents("b")] == ["child"]


def test_removed_node_leaves_its_dependents() -> None:
    """They are what has to be looked at next."""
    graph = OwnershipGraph()
    graph.put(node("owner"))
    graph.put(node("child", "owner"))
    graph.remove("owner")
    assert [entry.uid for entry in graph.dependents("owner")] == ["child"]
    graph.remove("child")
    assert graph.dependents("owner") == []


def test_deletion_policies_are_read_from_the_finalizers() -> None:
    """A finalizer means something only once the object is being deleted."""
    assert not node("a", finalizers=["foregroundDeletion"]).waits_for_dependents
    deleted = {"deletionTimestamp": "2026-11-21T12:00:00Z"}
    assert node("a", finalizers=["foregroundDeletion"], **deleted).waits_for_dependents
    assert node("a", finalizers=["orphan"], **deleted).orphans_dependents
