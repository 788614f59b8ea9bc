"""From changes of objects to keys."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kube.controller.doubles import Keys
from tests.kube.objects import owned_by, pod
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.controller.handlers import EnqueueMapped, own_key, owner_key
from trainer.kube.controller.predicates import Predicate, annotation_changed
from trainer.kube.objects import Object, ObjectKey
from trainer.kube.queue.workqueue import LOW_PRIORITY
from trainer.kube.resource import JOBS, NODES, Resource


def cached(name: str, **metadata: Any) -> CachedObject:
    return CachedObject.of(pod(name, **metadata))


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
        pytest.param(NODES, [owned_by("Node", "n", "")], [], id="reference-without-version"),
    ],
)
def test_owner_maps_to_its_key(owner: Resource, references: list[Object], expected: list[ObjectKey]) -> None:
    """Only a controller owner of the group and kind counts; it lives in the namespace of its dependent."""
    assert list(owner_key(owner)(cached("p", ownerReferences=references))) == expected


def test_changes_enqueue_with_their_priority() -> None:
    """Every change enqueues the key once; what existed before and what has not changed gets the low priority."""
    keys = Keys()
    handler = EnqueueMapped(keys, own_key)
    same = cached("same", resourceVersion="1")
    handler.on_add(cached("initial"), initial=True)
    handler.on_add(cached("new"), initial=False)
    handler.on_update(cached("changed", resourceVersion="1"), cached("changed", resourceVersion="2"))
    handler.on_update(same, same)
    handler.on_delete(cached("gone"), stale=False)
    handler.on_delete(cached("gone-unseen"), stale=True)
    assert keys.calls == [
        ("ns/initial", LOW_PRIORITY),
        ("ns/new", 0),
        ("ns/changed", 0),
        ("ns/same", LOW_PRIORITY),
        ("ns/gone", 0),
        ("ns/gone-unseen", 0),
    ]


def test_update_enqueues_the_former_owner_too() -> None:
    """An owner that loses an object must learn of it."""
    keys = Keys()
    handler = EnqueueMapped(keys, owner_key(JOBS))
    handler.on_update(
        cached("p", resourceVersion="1", ownerReferences=[owned_by("Job", "old")]),
        cached("p", resourceVersion="2", ownerReferences=[owned_by("Job", "new")]),
    )
    assert keys.calls == [("ns/old", 0), ("ns/new", 0)]


def test_key_that_both_states_map_to_is_enqueued_once() -> None:
    """However often the map function names it."""
    keys = Keys()
    EnqueueMapped(keys, lambda obj: [obj.key, ObjectKey("", "all"), obj.key]).on_update(
        cached("p", resourceVersion="1"), cached("p", resourceVersion="2")
    )
    assert keys.calls == [("ns/p", 0), ("all", 0)]


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [pytest.param(None, 1, id="none"), pytest.param(annotation_changed, 0, id="false")],
)
def test_predicate_drops_changes(predicate: Predicate | None, expected: int) -> None:
    """A change for which the predicate is false enqueues nothing."""
    keys = Keys()
    EnqueueMapped(keys, own_key, predicate).on_update(cached("p"), cached("p"))
    assert len(keys.calls) == expected
