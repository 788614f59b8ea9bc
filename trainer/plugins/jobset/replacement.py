"""When a suspended JobSet is deleted and created again, because its TrainJob asks for other pods or restarts.

JobSet lets neither the number, the resources nor the gang of pods change, nor how often they start again. Node
selectors, tolerations, scheduling gates, labels and annotations may, but Jobs that exist keep what they have of them:
JobSet only adds to them when it resumes them, so that after another admission pods would have the node selectors of
both.

Nothing that runs is replaced, and no data: claims of `volumeClaimPolicies` that are deleted with a JobSet keep a JobSet
that has run, and those that are retained keep any, since JobSet creates none whose claims exist.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trainer.api.trainjob import TrainJob, TrainJobSpec
from trainer.framework import FieldError, Reader, RuntimeInfo, differences, forbidden
from trainer.kube.field_errors import listed
from trainer.kube.objects import Object, mapping_at
from trainer.plugins.jobset.pod_index import PodIndex

_SIZE = ("parallelism", "completions")
_MAPS = ("labels", "annotations", "nodeSelector")
_GATES = ("schedulingGates",)
_LISTS = ("tolerations", *_GATES)
_MOST_NAMES = 3
"""Pods that are named; the others are counted."""

_LOST = "its volume claims are deleted with a JobSet, and their data would be lost"
_RETAINED = "JobSet creates no JobSet whose volume claims exist"


def fixed_of(jobset: Object) -> Object:
    """What a JobSet can change only by another JobSet: its restarts, and of its pods by replicated Job."""
    return {"maxRestarts": _restarts_of(jobset), "pods": _all_pods_of(jobset)}


def needs_another(desired: Object, existing: Object, *, was_resumed: bool) -> bool:
    """Whether the existing JobSet has another limit of restarts, or pods of another size or gang, or more than wanted.

    What is asked for in addition is added to them. Before the JobSet was ever resumed its tolerations are no reason:
    older releases of Kueue name those of a flavor alone, and count on JobSet to keep the others.
    """
    wanted, present = _all_pods_of(desired), _all_pods_of(existing)
    lists = _LISTS if was_resumed else _GATES
    has_others = wanted.keys() != present.keys() or _restarts_of(desired) != _restarts_of(existing)
    return has_others or any(
        _has_another_size(wanted[name], present[name])
        or wanted[name].get("group") != present[name].get("group")
        or _has_more(wanted[name], present[name], lists)
        for name in wanted
    )


def unfinished(existing: Object, reader: Reader) -> str:
    """What must happen before a suspended JobSet runs nothing any more; empty if it runs nothing.

    A pod that is being deleted still runs.
    """
    counts = mapping_at(existing, "status").get("replicatedJobsStatus") or []
    pods = sorted(key.name for key in PodIndex(reader, existing).there())
    if pods:
        return f"pod {pods[0]} has ended" if len(pods) == 1 else f"pods {listed(pods, _MOST_NAMES)} have ended"
    active = [str(count["name"]) for count in counts if count.get("active") or count.get("ready")]
    return f"pods of {', '.join(active)} have ended" if active else ""


def kept_by_claims(jobset: Object, *, was_resumed: bool) -> str:
    """Why a JobSet cannot be replaced although nothing of it runs; empty if it can."""
    policies: Sequence[Object] = jobset["spec"].get("volumeClaimPolicies") or []
    status = mapping_at(jobset, "status")
    counts = status.get("replicatedJobsStatus") or []
    has_run = was_resumed or status.get("restarts") or any(c.get("succeeded") or c.get("failed") for c in counts)
    if any(mapping_at(policy, "retentionPolicy").get("whenDeleted") == "Retain" for policy in policies):
        return _RETAINED
    return _LOST if policies and has_run else ""


def run_again(jobset: Object) -> str:
    """The replicated Jobs that have succeeded and run again in another JobSet, in a sentence; empty without any."""
    counts = mapping_at(jobset, "status").get("replicatedJobsStatus") or []
    done = [str(count["name"]) for count in counts if count.get("succeeded")]
    return f"{', '.join(done)} {'runs' if len(done) == 1 else 'run'} again" if done else ""


def check_replacement(info: RuntimeInfo, old: TrainJob | None, new: TrainJob) -> Iterator[FieldError]:
    """Errors of a suspended TrainJob that asks for other pods or restarts although its JobSet has to stay."""
    if old is None or old.status is None or not old.spec.suspend:
        return
    has_started = old.status.start_time is not None
    if not (old.status.jobs_status or has_started):
        return
    kept = kept_by_claims({"spec": info.template.to_object()}, was_resumed=has_started)
    if kept:
        rule = f"cannot change, because {info.runtime} has volumeClaimPolicies: {kept}; submit another TrainJob"
        is_elastic = old.status.scale is not None  # JobSet changes its number of nodes
        yield from (forbidden(field, rule) for field in _changed(old.spec, new.spec, is_elastic=is_elastic))


def _changed(old: TrainJobSpec, new: TrainJobSpec, *, is_elastic: bool) -> Iterator[str]:
    for name, field in (("num_nodes", "numNodes"), ("resources_per_node", "resourcesPerNode")):
        may_change = is_elastic and name == "num_nodes"
        if not may_change and getattr(old.trainer, name, None) != getattr(new.trainer, name, None):
            yield f"spec.trainer.{field}"
    if old.max_restarts != new.max_restarts:
        yield "spec.maxRestarts"


def _restarts_of(jobset: Object) -> int | None:
    """How often it starts again after a failure; None without a failure policy."""
    policy = jobset["spec"].get("failurePolicy")
    return None if policy is None else policy.get("maxRestarts") or 0


def _all_pods_of(jobset: Object) -> Object:
    return {job["name"]: _pods_of(job) for job in jobset["spec"].get("replicatedJobs") or []}


def _pods_of(job: Object) -> Object:
    spec = job["template"]["spec"]
    pod, metadata = mapping_at(spec, "template", "spec"), mapping_at(spec, "template", "metadata")
    containers = (*(pod.get("initContainers") or []), *(pod.get("containers") or []))
    group = mapping_at(pod, "schedulingGroup")
    return {
        "size": [job.get("replicas", 1), *(spec.get(name, 1) for name in _SIZE)],
        "resources": {each["name"]: each["resources"] for each in containers if each.get("resources")},
        **{name: (pod if name == "nodeSelector" else metadata).get(name) or {} for name in _MAPS},
        **{name: pod.get(name) or [] for name in _LISTS},
        # Absent without a group: what JobSets of earlier releases were created with has to stay the same.
        **({"group": group} if group else {}),
    }


def _has_another_size(wanted: Object, present: Object) -> bool:
    one, other = wanted["resources"], present["resources"]
    found = (path for pair in ((one, other), (other, one)) for path in differences(*pair, "resources"))
    return bool(wanted["size"] != present["size"]) or next(found, None) is not None


def _has_more(wanted: Object, present: Object, lists: Sequence[str]) -> bool:
    if any(present[name].keys() - wanted[name].keys() for name in _MAPS):
        return True
    return any(_entries(present[name]) - _entries(wanted[name]) for name in lists)


def _entries(flat: Sequence[Object]) -> set[frozenset[tuple[str, str]]]:
    """Tolerations or gates without what is empty, which servers in Go leave out."""
    return {frozenset((name, str(value)) for name, value in each.items() if value not in (None, "")) for each in flat}
