"""What the attacker sends: objects that are expensive to check, build, cache or count, unless something bounds it."""

from __future__ import annotations

import json
from functools import cache
from typing import Any, TypeAlias

from trainer.api.trainingruntime import TRAINING_RUNTIMES
from trainer.framework.deploying.child import APPLIED_HASH
from trainer.framework.runtimes.runtimes import RUNTIME_DIGEST, digest_of, make_snapshot
from trainer.plugins.torch.elastic import LABEL as AUTOSCALER_LABEL

Object: TypeAlias = dict[str, Any]

API_VERSION = "trainer.kubeflow.org/v2alpha1"
REVIEW_PATHS = {verb: f"/{verb}-trainer-kubeflow-org-v2alpha1-trainjob" for verb in ("validate", "mutate")}
STORED_RUNTIMES = ("exponent", "claims", "word")
UNCHECKED = {"trainer.kubeflow.org/webhook-validation": "disabled"}
MB = 1_000_000
LONGEST_WORD = 128 * 1024
"""Characters of a word of a command that the schema allows."""


def encoded(obj: Object) -> bytes:
    """The object as JSON."""
    return json.dumps(obj).encode()


def train_job(name: str, /, *, runtime: str = "claims", **spec: Any) -> Object:
    """A TrainJob on a runtime of the tenant's namespace."""
    ref = {"name": runtime, "kind": "TrainingRuntime"}
    metadata = {"name": name}
    return {"apiVersion": API_VERSION, "kind": "TrainJob", "metadata": metadata, "spec": {"runtimeRef": ref, **spec}}


def _requests(kind: str, amounts: Object) -> Object:
    return {"resourcesPerNode": {kind: amounts}}


def refused_train_jobs() -> list[Object]:
    """TrainJobs beyond the bounds of the schema."""
    many = {f"example.com/device-{number}": "1" for number in range(8000)}
    override = {"targetJobs": [{"name": "node"}]}
    return [
        train_job("exponent", trainer=_requests("limits", {"nvidia.com/gpu": "1e999999"})),
        train_job("overflow", trainer=_requests("limits", {"nvidia.com/gpu": "1e1999999"})),
        train_job("digits", trainer=_requests("limits", {"nvidia.com/gpu": "9" * 100_000})),
        train_job("word", trainer={"command": ["a" * MB + "' b"]}),
        train_job("requests", trainer=_requests("requests", many)),
        train_job("env", trainer={"env": _variables(20_000)}),
        train_job("overrides", podSpecOverrides=[override | {"nodeSelector": {f"k{n}": "v"}} for n in range(5000)]),
    ]


def largest_train_jobs() -> list[Object]:
    """TrainJobs with a field at the bound of the schema, of a size that the dev cluster can run controllers on."""
    many = {f"example.com/{'x' * 40}-{number}": "1" for number in range(128)}
    override = {"targetJobs": [{"name": "node"}]}
    return [
        train_job(
            "largest-overrides", podSpecOverrides=[override | {"nodeSelector": {f"k{n}": "v"}} for n in range(16)]
        ),
        train_job("largest-env", trainer={"env": _variables(1024)}),
        train_job("largest-quote", trainer={"command": ["a" * (LONGEST_WORD - 3) + "' b"]}),
        train_job("largest-words", trainer={"command": ["x" * 50] * 4096, "args": ["y" * 50] * 4096}),
        train_job("largest-requests", trainer=_requests("requests", many)),
        train_job("largest-exponent", trainer=_requests("limits", {"nvidia.com/gpu": "9" * 18})),
    ]


def _variables(count: int) -> list[Object]:
    return [{"name": f"NAME_{number}", "value": "x" * 10} for number in range(count)]


def expensive_runtimes(labels: Object) -> list[Object]:
    """Runtimes, which both replicas cache and read, whose builds are expensive."""
    claims = [{"name": f"claim-{number}", "resourceClaimName": "x"} for number in range(100)]
    names = [{"name": claim["name"]} for claim in claims]
    return [
        _runtime("exponent", labels, {"resources": {"limits": {"nvidia.com/gpu": "1e999999"}}}),
        _runtime("claims", labels, {"resources": {"claims": names}}, {"resourceClaims": claims}),
        _runtime("word", labels, {"command": ["a" * (LONGEST_WORD - 3) + "' b"]}),
        _runtime("large", labels, {"command": ["a" * MB + "' b"]}),
    ]


def _runtime(name: str, labels: Object, container: Object, pod: Object | None = None) -> Object:
    pod_spec = {"containers": [{"name": "trainer", "image": "python:3.11-slim", **container}], **(pod or {})}
    job = {
        "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
        "spec": {"template": {"spec": pod_spec}},
    }
    template = {"spec": {"replicatedJobs": [{"name": "node", "template": job}]}}
    return {
        "apiVersion": API_VERSION,
        "kind": "TrainingRuntime",
        "metadata": {"name": name, "labels": labels},
        "spec": {"mlPolicy": {"numNodes": 1}, "template": template},
    }


def forged(train_job: Object) -> list[Object]:
    """What says of a TrainJob without a runtime that it was built on one with privileged pods."""
    privileged = {"image": "forged", "securityContext": {"privileged": True}}
    runtime = _runtime(train_job["spec"]["runtimeRef"]["name"], {}, privileged, {"hostPID": True})
    snapshot = make_snapshot(train_job, TRAINING_RUNTIMES, runtime)
    name, owners = train_job["metadata"]["name"], snapshot["metadata"]["ownerReferences"]
    annotations = {APPLIED_HASH: "x", RUNTIME_DIGEST: digest_of(runtime)}
    target = {"apiVersion": API_VERSION, "kind": "TrainJob", "name": name}
    scaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, "labels": {AUTOSCALER_LABEL: name}, "annotations": annotations}
        | {"ownerReferences": owners},
        "spec": {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 2},
    }
    return [snapshot, scaler]


def event(number: int, namespace: str) -> Object:
    """A warning about a Job, such as Kubernetes writes when pods cannot be created."""
    involved = {"apiVersion": "batch/v1", "kind": "Job", "name": f"built-{number}-node-0", "namespace": namespace}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"flood-{number}"},
        "involvedObject": involved,
        "type": "Warning",
        "reason": "FailedCreate",
        "message": "x" * 1000,
    }


def config_map(name: str, number: int) -> Object:
    """A ConfigMap of 1 MB with the label of snapshots."""
    metadata = {"name": name, "labels": {"trainer.kubeflow.org/runtime-snapshot": name}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"runtime": str(number % 10) * MB}}


def review(obj: Object, *, old: Object | None = None, kind: str = "TrainJob") -> bytes:
    """The body of an AdmissionReview about an object, from a namespace that the tenant has nothing to do with."""
    group, version = API_VERSION.split("/")
    request = {
        "uid": "1",
        "kind": {"group": group, "version": version, "kind": kind},
        "resource": {"group": group, "version": version, "resource": "trainjobs"},
        "operation": "CREATE" if old is None else "UPDATE",
        "namespace": "kube-system",
        "name": "x",
        "userInfo": {"username": "x"},
        "object": obj,
        "oldObject": old,
    }
    return encoded({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})


@cache
def unknown_fields() -> bytes:
    """A review of 2.7 MB."""
    obj = train_job("x")
    obj["spec"] |= {f"unknown-field-{each}": each for each in range(100_000)}
    return review(obj)


@cache
def forged_update() -> bytes:
    """A review of an update from one valid TrainJob to another, both as large as the schema allows."""
    override = {"targetJobs": [{"name": "node"}], "containers": [{"name": "trainer", "env": _variables(1024)}]}
    obj, old = (train_job("x", trainer={"numNodes": nodes}, podSpecOverrides=[override] * 16) for nodes in (2, 1))
    return review(obj, old=old)


@cache
def long_kind() -> bytes:
    """A review of a kind that looks like tokens to a redactor."""
    return review(train_job("x"), kind="-eyJ" * 15_000)


@cache
def nested_lists() -> bytes:
    """A review of an object that takes many times its size in memory."""
    return review(train_job("x", trainer={"command": [[[]]] * 300_000}))


@cache
def large_update() -> bytes:
    """A review of 3 MB, with an object and an old object as large as an API server stores them."""
    obj = train_job("x", trainer={"command": ["x" * 100] * 14_000})
    return review(obj, old=obj)
