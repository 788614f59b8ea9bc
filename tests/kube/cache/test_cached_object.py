"""Objects as a cache keeps them."""

from __future__ import annotations

import gc
import json
import sys
import tracemalloc
from typing import Any

import msgspec
import pytest

from tests.kube.objects import owned_by, pod
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.objects import ObjectKey, key_of, labels_of, name_of


def compact(obj: Any, **options: bool) -> CachedObject:
    return CachedObject.compact(msgspec.json.encode(obj), "v1", "Pod", **options)


FULL = pod(
    "a",
    uid="u",
    resourceVersion="7",
    generation=3,
    labels={"app": "x"},
    annotations={"note": "kept"},
    ownerReferences=[owned_by("Job", "other", controller=False), owned_by("Job", "j", uid="1")],
    deletionTimestamp="2026-01-01T00:00:00Z",
) | {"spec": {"nodeName": "n"}, "status": {"phase": "Running"}}


@pytest.mark.parametrize("depth", [900, 9_900])
def test_managed_fields_however_deep(depth: int) -> None:
    """They are dropped, also where they are as deep as an API server lets whoever writes the object nest them."""
    fields = b'{"f:a":' * depth + b"{}" + b"}" * depth
    raw = msgspec.json.encode(FULL)[:-1] + b',"status":{}}'
    raw = raw.replace(b'"metadata":{', b'"metadata":{"managedFields":[{"fieldsV1":' + fields + b"}],", 1)
    limit = sys.getrecursionlimit()
    assert CachedObject.compact(raw, "v1", "Pod") == FULL | {"status": {}}
    assert sys.getrecursionlimit() == limit


def test_it_answers_as_the_object_would() -> None:
    """Fields, iteration, length and the accessors of `objects` are those of the decoded object."""
    cached = compact(FULL)
    assert cached == FULL
    assert cached["spec"] == {"nodeName": "n"}
    assert cached.get("missing") is None
    assert len(cached) == len(FULL)
    assert "status" in cached
    assert (key_of(cached), labels_of(cached), name_of(cached)) == (ObjectKey("ns", "a"), {"app": "x"}, "a")
    with pytest.raises(KeyError):
        cached["missing"]


@pytest.mark.parametrize("metadata_only", [False, True])
@pytest.mark.parametrize(
    "obj",
    [
        pytest.param(FULL, id="full"),
        pytest.param(FULL | {"metadata": FULL["metadata"] | {"managedFields": [{"manager": "m"}]}}, id="managed"),
        pytest.param({"metadata": {"name": "a"}}, id="bare"),
        pytest.param(FULL | {"metadata": {"name": "a", "labels": None, "annotations": None}}, id="nulls"),
    ],
)
def test_an_answer_is_kept_as_what_a_watch_shows(obj: Any, *, metadata_only: bool) -> None:
    """It makes no difference whether the object comes decoded; what comes decoded stays as it is."""
    before = json.dumps(obj)
    answer = CachedObject.of_answer(obj, "v1", "Pod", metadata_only=metadata_only)
    assert json.dumps(obj) == before
    watched = compact(obj, metadata_only=metadata_only)
    assert answer == watched
    assert (answer.key, answer.meta, answer.annotations) == (watched.key, watched.meta, watched.annotations)


@pytest.mark.parametrize("obj", [{}, {"metadata": None}, {"metadata": {"name": 1}}])
def test_an_answer_that_is_no_object(obj: Any) -> None:
    """What has no metadata of Kubernetes is refused."""
    with pytest.raises(ValueError, match=r"metadata|Expected"):
        CachedObject.of_answer(obj, "v1", "Pod")


def test_metadata_is_at_hand() -> None:
    """What the machinery asks for needs no decoding."""
    cached = compact(FULL)
    assert cached.key == ObjectKey("ns", "a")
    assert (cached.uid, cached.resource_version, cached.generation) == ("u", "7", 3)
    assert cached.labels == {"app": "x"}
    assert cached.annotations == {"note": "kept"}
    assert cached.controller is not None
    assert (cached.controller.name, cached.controller.uid) == ("j", "1")
    assert cached.meta.deletion_timestamp == "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        pytest.param(
            {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "a"}},
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}},
            id="metadata-alone",
        ),
        pytest.param(
            {"metadata": {"name": "a", "labels": None, "ownerReferences": None, "namespace": None}},
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "a", "labels": None, "ownerReferences": None, "namespace": None},
            },
            id="nulls",
        ),
    ],
)
def test_compact_keeps_what_matters(obj: dict[str, Any], expected: dict[str, Any]) -> None:
    """The kind is filled in, and everything else stays."""
    cached = compact(obj)
    assert cached.decode() == expected
    assert (cached.labels, cached.owner_references, cached.key) == ({}, (), ObjectKey("", "a"))


MANAGED = [{"manager": "m", "fieldsV1": {"f:spec": {'k:{"name":"]}"}': {}}}}]


@pytest.mark.parametrize(
    "types",
    [
        pytest.param({}, id="item-of-a-list"),
        pytest.param({"kind": "Pod", "apiVersion": "v1"}, id="with-types"),
        pytest.param({"apiVersion": "v1"}, id="without-kind"),
        pytest.param({"kind": None}, id="null-kind"),
    ],
)
@pytest.mark.parametrize("managed", [MANAGED, [], None], ids=["managed", "empty", "null"])
def test_only_the_managed_fields_of_the_metadata_go(types: dict[str, Any], managed: Any) -> None:
    """Each key is there once, and nothing but metadata.managedFields is missing."""
    spec = {"metadata": {"managedFields": MANAGED}}
    served = types | {"metadata": {"managedFields": managed, "name": "a"}, "spec": spec}
    cached = CachedObject.compact(msgspec.json.encode(served), "v1", "Pod")
    assert json.loads(cached.raw, object_pairs_hook=_unique) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a"},
        "spec": spec,
    }


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)


def test_the_garbage_collector_does_not_visit_it() -> None:
    """A cache of many objects does not make collections longer by as many."""
    assert not gc.is_tracked(compact(FULL))


def test_it_is_small() -> None:
    """A pod of 8 KB, nearly half of it managed fields, takes less than 6 KiB in all."""
    fields: dict[str, Any] = {f"f:field-{index}": {} for index in range(190)}
    env = [{"name": f"VARIABLE_{index}", "value": "value" * 8} for index in range(50)]
    obj = pod("a", labels={f"l{n}": "v" for n in range(6)}, managedFields=[{"manager": "m", "fieldsV1": fields}])
    raw = msgspec.json.encode(obj | {"spec": {"containers": [{"name": "main", "env": env}]}})
    assert 7000 < len(raw) < 8500
    tracemalloc.start()
    try:
        cached = [CachedObject.compact(raw, "v1", "Pod") for _ in range(500)]
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size / len(cached) < 6 * 1024


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        pytest.param(b'{"kind":"Table","metadata":{}}', "kind Table instead of Pod", id="other-kind"),
        pytest.param(b'{"kind":"Pod"}', "no metadata", id="no-metadata"),
        pytest.param(b'{"kind":"Pod","metadata":{"name":7}}', "Expected `str`", id="wrong-type"),
        pytest.param(b'{"kind":"Pod","metada', "truncated", id="cut-off"),
    ],
)
def test_what_is_no_such_object_is_refused(raw: bytes, message: str) -> None:
    """Nonsense is an error that says what is wrong with it."""
    with pytest.raises(ValueError, match=message):
        CachedObject.compact(raw, "v1", "Pod")


def test_readers_do_not_share_what_they_decode() -> None:
    """Changing what was read changes nothing for others."""
    cached = compact(FULL)
    cached["spec"]["nodeName"] = "changed"
    cached.decode()["spec"]["nodeName"] = "changed"
    assert cached["spec"]["nodeName"] == "n"
