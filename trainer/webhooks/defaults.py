"""Defaults that a schema cannot express, set by the mutating webhooks (KEP-2170, the Go types and their comments).

On update only fields that the request changes get a default: the stored ones may date from a time without webhooks, and
a default in an immutable field would make every update fail.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOB_CONTROLLER
from trainer.api.trainjob_status import ConditionType
from trainer.framework.building.extraction import nodes_at_start
from trainer.framework.plugin_api.errors import BuildError
from trainer.framework.runtimes.runtimes import place_of
from trainer.kube.objects import is_condition_true, mapping_at, namespace_of

if TYPE_CHECKING:
    from trainer.api.trainingruntime import Runtime
    from trainer.kube.objects import Object, ObjectKey
    from trainer.kube.resource import Resource

_KINDS: Final = (CLUSTER_TRAINING_RUNTIMES.kind, TRAINING_RUNTIMES.kind)
_LONGEST_NAME: Final = 253


def default_train_job(obj: Object, old: Object | None = None) -> Object:
    """A TrainJob with defaults: the kind of its runtime, its manager, numbers of processes as strings.

    Fields without default are shared with the argument.
    """
    obj = _copied(obj, ("spec", "runtimeRef"), ("spec", "trainer"))
    spec, former = mapping_at(obj, "spec"), mapping_at(old or {}, "spec")
    ref = mapping_at(spec, "runtimeRef")
    if ref and ref != former.get("runtimeRef"):
        ref["apiGroup"] = ref.get("apiGroup") or CLUSTER_TRAINING_RUNTIMES.group
        ref["kind"] = ref.get("kind") or CLUSTER_TRAINING_RUNTIMES.kind
    if spec.get("managedBy") in (None, "") and (old is None or former.get("managedBy") not in (None, "")):
        spec["managedBy"] = TRAIN_JOB_CONTROLLER
    _write_as_string(mapping_at(spec, "trainer"), mapping_at(former, "trainer"))
    nodes = mapping_at(former, "trainer").get("numNodes")
    if mapping_at(old, "status", "scale") and nodes is not None and isinstance(spec.get("trainer", {}), dict):
        # An autoscaler has set it; replacing the TrainJob with its original file must not remove it.
        spec["trainer"] = {"numNodes": nodes} | _present(mapping_at(spec, "trainer"))
    return obj


class PresentRuntimes(Protocol):
    """Finds runtimes without a TrainJob."""

    async def present(self, resource: Resource, key: ObjectKey) -> Runtime | None:
        """The live runtime; None where there is none.

        Raises:
            BuildError: it cannot be read.
        """


async def default_nodes(obj: Object, runtimes: PresentRuntimes, old: Object | None = None) -> Object:
    """The TrainJob with the number of nodes at which its elastic runtime starts, if it states none; otherwise as it is.

    The default is set on creation and when `runtimeRef` changes, where it replaces the default of the former runtime.
    The scale subresource reads `spec.trainer.numNodes`: an autoscaler cannot scale a TrainJob without it. The build
    needs no default, and the controller writes it where a TrainJob came before its runtime or without a webhook.
    """
    if old is not None:
        if _runtime_ref(obj) == _runtime_ref(old) or is_condition_true(old, ConditionType.CREATED):
            return obj
        former = await _nodes_at_start(old, runtimes)
        if former is not None and _num_nodes(obj) == _num_nodes(old) == former:
            obj = _with_nodes(obj, None)
    if _num_nodes(obj) is not None or not isinstance(mapping_at(obj, "spec").get("trainer"), dict | None):
        return obj
    nodes = await _nodes_at_start(obj, runtimes)
    return obj if nodes is None else _with_nodes(obj, nodes)


def default_runtime(obj: Object, old: Object | None = None) -> Object:
    """A runtime with defaults: one node, numbers of processes as strings.

    Fields without default are shared with the argument.
    """
    if old is not None and obj.get("spec") == old.get("spec"):
        return obj
    obj = _copied(obj, ("spec", "mlPolicy", "torch"))
    spec = mapping_at(obj, "spec")
    policy = mapping_at(spec, "mlPolicy")
    torch = mapping_at(policy, "torch")
    # All members of an elastic policy are optional, so that an empty one is not absent.
    is_fixed = policy.get("numNodes") is None and torch.get("elasticPolicy") is None
    if spec.get("mlPolicy") is policy and is_fixed and not _states_size(spec):
        policy["numNodes"] = 1
    _write_as_string(torch, {})
    return obj


def _copied(obj: Object, *places: tuple[str, ...]) -> Object:
    """The object with copies of the mappings on these paths; everything else is shared."""
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
    jobs = mapping_at(spec, "template", "spec").get("replicatedJobs")
    job_specs = [mapping_at(job, "template", "spec") for job in (jobs if isinstance(jobs, list) else []) if job]
    return any(job_spec.get(field) is not None for job_spec in job_specs for field in ("parallelism", "completions"))


def _present(mapping: Object) -> Object:
    return {name: value for name, value in mapping.items() if value is not None}


async def _nodes_at_start(obj: Object, runtimes: PresentRuntimes) -> int | None:
    ref = mapping_at(obj, "spec", "runtimeRef")
    kind, name = ref.get("kind") or CLUSTER_TRAINING_RUNTIMES.kind, ref.get("name")
    if kind not in _KINDS or not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME:
        return None
    try:
        runtime = await runtimes.present(*place_of(kind, namespace_of(obj), name))
        policy = runtime.spec.ml_policy if runtime is not None else None
        is_elastic = policy is not None and policy.torch is not None and policy.torch.elastic_policy is not None
        return nodes_at_start(runtime) if runtime is not None and is_elastic else None
    except BuildError:
        return None


def _runtime_ref(obj: Object) -> object:
    return mapping_at(obj, "spec").get("runtimeRef")


def _num_nodes(obj: Object) -> object:
    return mapping_at(obj, "spec", "trainer").get("numNodes")


def _with_nodes(obj: Object, nodes: int | None) -> Object:
    spec = obj["spec"]
    others = {name: value for name, value in (spec.get("trainer") or {}).items() if name != "numNodes"}
    return obj | {"spec": spec | {"trainer": others if nodes is None else others | {"numNodes": nodes}}}
