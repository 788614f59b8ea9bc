"""From changes of objects to keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.kube.objects import owned_by, pod
from trainer.kube.handlers import EnqueueMapped, controller_owner, own_key
from trainer.kube.objects import Object, ObjectKey
from trainer.kube.resource import JOBS, NODES, Resource

if TYPE_CHECKING:
    from trainer.kube.handlers import Predicate


@pytest.mark.parametrize(
    ("owner", "references", "expected"),
    [
        pytest.param(JOBS, [owned_by("Job", "j")], [ObjectKey("ns", "j")], id="controller"),
        pytest.param(JOBS, [owned_by("Job", "j", controller=False)], [], id="other-owner"),
        pytest.param(JOBS, [owned_by("JobSet", "j", "jobset.x-k8s.io/v1alpha2")], [], id="other-kind"),
        pytest.param(JOBS, [owned_by("Job", "j", "volcano.sh/v1")], [], id="same-kind-of-another-group"),
        pytest.param(JOBS, [owned_by("Job", "j", "batch/v1beta1")], [ObjectKey("ns", "j")], id="other-version"),
        pytest.param(JOBS, [], [], id="none"),
        pytest.param(NODES, [owned_by("Node", "n", "v1")], [ObjectKey("", "n")], id="cluster-scoped-core-owner"),
        pytest.param(NODES, [owned_by("Node", "n", "x.io/v1")], [], id="core-kind-of-another-group"),
    ],
)
def test_controller_owner_maps_to_its_key(owner: Resource, references: list[Object], expected: list[ObjectKey]) -> None:
    """Only a controller owner of the group and kind counts; it lives in the namespace of its dependent."""
    assert list(controller_owner(owner)(pod("p", ownerReferences=references))) == expected


class Keys:
    """Collects what is enqueued."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, bool]] = []

    def __call__(self, key: ObjectKey, initial: bool) -> None:
        self.calls.append((str(key), initial))


def test_changes_enqueue_with_their_origin() -> None:
    """Every kind of change enqueues the key once, and says whether it is part of the initial list."""
    keys = Keys()
    handler = EnqueueMapped(keys, own_key)
    handler.on_add(pod("a"), initial=True)
    handler.on_add(pod("b"), initial=False)
    handler.on_update(pod("c"), pod("c"))
    handler.on_delete(pod("d"))
    assert keys.calls == [("ns/a", True), ("ns/b", False), ("ns/c", False), ("ns/d", False)]


def test_update_enqueues_the_former_owner_too() -> None:
    """An owner that loses an object must learn of it."""
    keys = Keys()
    handler = EnqueueMapped(keys, controller_owner(JOBS))
    handler.on_update(
        pod("p", ownerReferences=[owned_by("Job", "old")]), pod("p", ownerReferences=[owned_by("Job", "new")])
    )
    assert keys.calls == [("ns/old", False), ("ns/new", False)]


def label_changed(old: Object | None, new: Object | None) -> bool:
    return old is None or new is None or old["metadata"].get("labels") != new["metadata"].get("labels")


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [pytest.param(None, 1, id="none"), pytest.param(label_changed, 0, id="false")],
)
def test_predicate_drops_changes(predicate: Predicate | None, expected: int) -> None:
    """A change for which the predicate is false enqueues nothing."""
    keys = Keys()
    EnqueueMapped(keys, own_key, predicate).on_update(pod("p"), pod("p"))
    assert len(keys.calls) == expected
