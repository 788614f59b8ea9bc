"""Defaults that a schema cannot express, set by the mutating webhooks (KEP-2170, the Go types and their comments).

On update only what the request itself writes gets a default: what is stored already, perhaps from a time without
webhooks, must stay as it is, or a change of a label would change a field that is immutable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOB_CONTROLLER

if TYPE_CHECKING:
    from trainer.kube.objects import Object


def default_train_job(obj: Object, old: Object | None = None) -> Object:
    """A TrainJob with defaults: the kind of its runtime, its manager, numbers of processes as strings.

    What has no default is shared with the one that was sent.

    Args:
        obj: the TrainJob as it was sent; it may be wrong in any way.
        old: what it replaces, if anything.
    """
    obj = _copied(obj, ("spec", "runtimeRef"), ("spec", "trainer"))
    spec, former = _mapping(obj, "spec"), _mapping(old or {}, "spec")
    ref = _mapping(spec, "runtimeRef")
    if ref and ref != former.get("runtimeRef"):
        ref["apiGroup"] = ref.get("apiGroup") or CLUSTER_TRAINING_RUNTIMES.group
        ref["kind"] = ref.get("kind") or CLUSTER_TRAINING_RUNTIMES.kind
    if spec.get("managedBy") in (None, "") and (old is None or former.get("managedBy") not in (None, "")):
        spec["managedBy"] = TRAIN_JOB_CONTROLLER
    _write_as_string(_mapping(spec, "trainer"), _mapping(former, "trainer"))
    nodes = _mapping(former, "trainer").get("numNodes")
    if _mapping(_mapping(old, "status"), "scale") and nodes is not None and isinstance(spec.get("trainer", {}), dict):
        # An autoscaler has set it; who replaces the TrainJob without it does not mean to take it away.
        spec["trainer"] = {"numNodes": nodes} | _present(_mapping(spec, "trainer"))
    return obj


def default_runtime(obj: Object, old: Object | None = None) -> Object:
    """A runtime with defaults: one node, numbers of processes as strings.

    What has no default is shared with the one that was sent.

    Args:
        obj: the runtime as it was sent; it may be wrong in any way.
        old: what it replaces, if anything.
    """
    if old is not None and obj.get("spec") == old.get("spec"):
        return obj
    obj = _copied(obj, ("spec", "mlPolicy", "torch"))
    spec = _mapping(obj, "spec")
    policy = _mapping(spec, "mlPolicy")
    torch = _mapping(policy, "torch")
    if policy and policy.get("numNodes") is None and not torch.get("elasticPolicy") and not _states_size(spec):
        policy["numNodes"] = 1
    _write_as_string(torch, {})
    return obj


def _copied(obj: Object, *places: tuple[str, ...]) -> Object:
    """The object with copies of the mappings on the way to these places; all else is shared, however large it is."""
    copied = dict(obj)
    for place in places:
        parent = copied
        for name in place:
            if not isinstance(parent.get(name), dict):
                break
            parent[name] = dict(parent[name])
            parent = parent[name]
    return copied


def _write_as_string(settings: Object, former: Object) -> None:
    """`numProcPerNode` is a string in the API, and people write numbers."""
    value = settings.get("numProcPerNode")
    if type(value) is int and value != former.get("numProcPerNode"):
        settings["numProcPerNode"] = str(value)


def _states_size(spec: Object) -> bool:
    """Whether the JobSet of the runtime says how many pods its Jobs have; that number stays."""
    jobs = _mapping(_mapping(spec, "template"), "spec").get("replicatedJobs")
    job_specs = [_mapping(_mapping(job, "template"), "spec") for job in (jobs if isinstance(jobs, list) else []) if job]
    return any(job_spec.get(field) is not None for job_spec in job_specs for field in ("parallelism", "completions"))


def _present(mapping: Object) -> Object:
    return {name: value for name, value in mapping.items() if value is not None}


def _mapping(parent: Any, name: str) -> Object:
    """A part of an object that nobody has checked yet; empty when it is absent or something else."""
    value = parent.get(name) if isinstance(parent, dict) else None
    return value if isinstance(value, dict) else {}
