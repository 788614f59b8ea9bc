"""What caches drop of objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from trainer.framework.deploying.deployer import APPLIED_HASH
from trainer.framework.deploying.transforms import bare_job, bounded_metadata

if TYPE_CHECKING:
    from trainer.kube.objects import Object

LARGE = {"annotations": {"theirs": "x" * 3000, APPLIED_HASH: "1234"}, "finalizers": ["a/b"]}
OWNERS = [{"uid": "1", "controller": True}, {"uid": "2"}]


def partial(**metadata: object) -> Object:
    """The metadata of a ConfigMap."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "uid": "u", "resourceVersion": "1"} | metadata,
    }


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param(partial(labels={"theirs": "x"}, finalizers=["a/b"]), id="small"),
        pytest.param(partial(**LARGE) | {"data": {"a": "b"}}, id="whole"),
    ],
)
def test_what_stays_as_it_is(obj: Object) -> None:
    """Metadata of the usual size, and objects that a plugin wants as a whole."""
    assert bounded_metadata(obj) == obj


def test_large_metadata() -> None:
    """What identifies the object, whose it is and what we have written ourselves is left."""
    labels = {"trainer.kubeflow.org/mpi-hostfile": "demo", "theirs": "x"}
    assert bounded_metadata(partial(**LARGE, labels=labels, ownerReferences=OWNERS)) == partial(
        labels={"trainer.kubeflow.org/mpi-hostfile": "demo"},
        annotations={APPLIED_HASH: "1234"},
        ownerReferences=OWNERS[:1],
    )


def test_jobs() -> None:
    """Whose they are is left of those of which only metadata is cached."""
    labels = {"jobset.sigs.k8s.io/jobset-name": "demo", "jobset.sigs.k8s.io/replicatedjob-name": "node"}
    job = partial(**LARGE, labels=labels | {"theirs": "x" * 3000}, ownerReferences=OWNERS)
    assert bare_job(job) == partial(labels=labels, ownerReferences=OWNERS[:1])
    assert bare_job(job | {"spec": {}}) == job | {"spec": {}}
