"""What caches drop of objects."""

from __future__ import annotations

import copy
import json

import pytest

from trainer.framework.deploying.child import APPLIED_HASH
from trainer.framework.deploying.transforms import POD_LIMIT, TRANSFORMS, bare_job, bounded_metadata, compact_pod
from trainer.framework.plugin_api.devices import RESOURCE_CLAIM_TEMPLATES
from trainer.kube.objects import Object
from trainer.kube.resource import PODS

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


def test_pods() -> None:
    """The fields that states, waits, restarts and progress are derived from are left of a large pod, and no more."""
    container: Object = {"name": "node", "restartPolicy": "Never", "restartPolicyRules": [{"action": "Restart"}]}
    labels = {"jobset.sigs.k8s.io/jobset-name": "demo", "batch.kubernetes.io/job-completion-index": "0"}
    progress = {"trainer.kubeflow.org/trainer-status-primary-pod": "true"}
    kept = {
        "spec": {
            "nodeName": "node-1",
            "schedulerName": "volcano",
            "restartPolicy": "OnFailure",
            "containers": [container],
            "initContainers": [{"name": "sidecar", "restartPolicy": "Always"}],
            "volumes": [{"name": "mpi-ssh-auth"}],
        },
        "status": {"phase": "Running", "containerStatuses": [{"name": "node", "ready": True}]},
    }
    pod = partial(**LARGE, labels=labels | {"theirs": "x"}, ownerReferences=OWNERS) | copy.deepcopy(kept)
    pod["metadata"]["annotations"] |= progress
    pod["spec"]["containers"][0] |= {"image": "i", "env": [{"name": "A", "value": "x" * 100_000}]}
    pod["spec"]["initContainers"][0]["args"] = ["x" * 100_000]
    pod["spec"]["volumes"][0]["secret"] = {"secretName": "demo"}
    pod["spec"]["affinity"] = {"podAffinity": {}}
    assert compact_pod(pod) == partial(labels=labels, annotations=progress, ownerReferences=OWNERS[:1]) | kept


def test_pods_with_many_parts() -> None:
    """The stored size of a pod has a bound, however many containers, volumes and labels it has."""
    many = [{"name": f"c-{number}", "resources": {"limits": {"x" * 500: "1"}}} for number in range(10_000)]
    names = {"jobset.sigs.k8s.io/jobset-name": "demo", "jobset.sigs.k8s.io/restart-attempt": "1"}
    labels = {f"batch.kubernetes.io/{number}": "x" for number in range(10_000)} | names
    pod = partial(labels=labels) | {"spec": {"containers": many, "initContainers": many, "volumes": many}, "status": {}}
    kept = compact_pod(pod)
    assert len(json.dumps(kept)) < POD_LIMIT
    assert kept["metadata"]["labels"] == names


def test_the_usual_pod_is_stored_as_it_is() -> None:
    """Only pods above the limit are decoded for it."""
    assert TRANSFORMS[PODS].larger_than == POD_LIMIT


def test_claim_templates() -> None:
    """The requests are left, by which devices are counted, without selectors, constraints and configuration."""
    small = {"deviceClassName": "gpu.nvidia.com", "count": 2}
    large = {"selectors": [{"cel": {"expression": "x" * 3000}}]}
    requests = [{"name": "a", "exactly": small | large}, {"name": "b", "firstAvailable": [small | large]}]
    devices = {"requests": requests, "constraints": [{}], "config": [{"opaque": {"parameters": "x" * 3000}}]}
    template = {"metadata": {"name": "a", "managedFields": [{}]}, "spec": {"spec": {"devices": devices}}}
    kept = [{"name": "a", "exactly": small, "firstAvailable": []}, {"name": "b", "firstAvailable": [small]}]
    bare = {"name": "a", "labels": {}, "ownerReferences": []}
    expected = {"metadata": bare, "spec": {"spec": {"devices": {"requests": kept}}}}
    assert TRANSFORMS[RESOURCE_CLAIM_TEMPLATES].apply(template) == expected
