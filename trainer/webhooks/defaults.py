"""Defaults that a schema cannot express, set by the mutating webhooks (KEP-2170, the Go types and their comments).

On update only fields that the request changes get a default: the stored ones may date from a time without webhooks, and
a default in an immutable field would make every update fail. The API server asks only where there is something to set:
see the match conditions in config/webhook.
"""

from __future__ import annotations

from trainer.kube.objects import Object, mapping_at


def default_train_job(obj: Object, old: Object | None = None) -> Object:
    """A TrainJob with defaults: numbers of processes as strings, and the nodes that an autoscaler has set.

    Fields without default are shared with the argument.
    """
    obj = _copied(obj, ("spec", "trainer"))
    spec, former = mapping_at(obj, "spec"), mapping_at(old or {}, "spec")
    _write_as_string(mapping_at(spec, "trainer"), mapping_at(former, "trainer"))
    nodes = mapping_at(former, "trainer").get("numNodes")
    if mapping_at(old, "status", "scale") and nodes is not None and isinstance(spec.get("trainer", {}), dict):
        # An autoscaler has set it; replacing the TrainJob with its original file must not remove it.
        spec["trainer"] = {"numNodes": nodes} | _present(mapping_at(spec, "trainer"))
    return obj


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
