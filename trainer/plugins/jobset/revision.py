"""The changes that an existing JobSet allows.

JobSet's admission webhook refuses all changes of replicated Jobs, except, while the JobSet is suspended, labels,
annotations, node selector, tolerations and scheduling gates of their pods; and the size of an elastic training, where
the cluster allows that.

`suspend` has several writers: the TrainJob, and those that suspend and resume JobSets themselves, such as Kueue. We
write it when the TrainJob changes it, and note that in an annotation; otherwise the JobSet stays as others left it.

Where the TrainJob asks for other pods or restarts, a suspended JobSet is deleted and created again once nothing of it
runs; until then it stays suspended and as it is. See `trainer.plugins.jobset.replacement`.
"""

from __future__ import annotations

import copy
import re
from dataclasses import replace
from typing import Any, NamedTuple

from trainer.api.jobset_labels import JOBSET_NAME, REPLICATED_JOB
from trainer.api.trainjob_status import NodeScale
from trainer.framework import ADOPTED, APPLIED_HASH, Reader, Replacement, Revision, RuntimeInfo, differences
from trainer.kube.objects import Object, annotations_of, name_of
from trainer.plugins.jobset.replacement import kept_by_claims, needs_another, run_again, unfinished

NODE_RANGE = "trainer.kubeflow.org/node-range"
"""Annotation of the JobSet of an elastic training: `<replicated Job>=<fewest>:<most>` nodes."""

ELASTIC_JOBSETS = "JobSet lets nodes come and go only where its feature gate ElasticJobSet is on"
"""Why a cluster may refuse another number of nodes, for the author of the TrainJob."""

_VALUE = re.compile(r"([a-z0-9-]+)=([0-9]+):([0-9]+)")
_SIZE = ("parallelism", "completions")


class ElasticJob(NamedTuple):
    """The replicated Job of a JobSet whose size may change."""

    name: str
    least: int
    most: int


def node_range(info: RuntimeInfo) -> str | None:
    """The value of the annotation; None for a training of a fixed size."""
    for pod_set in info.pod_sets:
        if pod_set.elastic is not None:
            return f"{pod_set.name}={pod_set.elastic.least}:{pod_set.elastic.most}"
    return None


def elastic_job(jobset: Object) -> ElasticJob | None:
    """The bounds in a JobSet's annotation; None for a fixed size."""
    found = _VALUE.fullmatch(annotations_of(jobset).get(NODE_RANGE, ""))
    return None if found is None else ElasticJob(found[1], int(found[2]), int(found[3]))


def resize(spec: Object, desired: Object) -> Object | None:
    """A copy of a JobSet's spec with the desired size of its elastic Job; None if it has that size."""
    elastic = elastic_job(desired)
    wanted = _job_spec(desired["spec"], elastic) if elastic is not None else None
    present = _job_spec(spec, elastic) if elastic is not None else None
    if wanted is None or present is None or all(present.get(field) == wanted[field] for field in _SIZE):
        return None
    resized = copy.deepcopy(spec)
    job = _job_spec(resized, elastic)
    assert job is not None
    job.update({field: wanted[field] for field in _SIZE})
    return resized


def node_scale(jobset: Object) -> NodeScale | None:
    """Number and bounds of the nodes of an elastic training; None for a fixed size."""
    elastic = elastic_job(jobset)
    job = _job_spec(jobset["spec"], elastic) if elastic is not None else None
    if elastic is None or job is None:
        return None
    selector = f"{JOBSET_NAME}={name_of(jobset)},{REPLICATED_JOB}={elastic.name}"
    return NodeScale(nodes=job["parallelism"], min_nodes=elastic.least, max_nodes=elastic.most, selector=selector)


def _job_spec(spec: Object, elastic: ElasticJob | None) -> Object | None:
    jobs = (job for job in spec.get("replicatedJobs") or [] if elastic is not None and job["name"] == elastic.name)
    job = next(jobs, None)
    found: Object | None = job["template"]["spec"] if job is not None else None
    return found


_MUTABLE = ("suspend", "ttlSecondsAfterFinished", "coordinator")
_MUTABLE_IN_POD_METADATA = ("labels", "annotations")
_MUTABLE_IN_POD_SPEC = ("nodeSelector", "tolerations", "schedulingGates")

SUSPEND = "trainer.kubeflow.org/suspend"
"""Annotation of a JobSet: `spec.suspend` of the TrainJob when that has changed last; `from-creation` while the JobSet
has been suspended since it was created; absent while `spec.suspend` never was true."""

FROM_CREATION = "from-creation"
_TEXTS = {True: "true", False: "false"}

_JOB_METADATA = re.compile(r"spec\.replicatedJobs\[[^]]++\]\.template\.metadata\b")
"""Labels and annotations of Jobs, which cannot change with those of JobSet and pods."""


def revise_jobset(desired: Object, existing: Object, reader: Reader) -> Revision | None:
    """The existing JobSet with the desired values of its mutable fields, or its replacement; None if nothing changes.

    The reader has the pods of JobSets.
    """
    if _has_ended(existing):
        return None
    unsized = _revision(desired, existing)
    revision = _resized(desired, existing, unsized)
    if unsized is None or revision is None:
        return revision
    was_resumed = not _is_unused(existing)
    if not needs_another(desired, existing, was_resumed=was_resumed):
        return revision
    kept = kept_by_claims(existing, was_resumed=was_resumed)
    if not kept:
        return replace(revision, replacement=_replacement(desired, existing, unsized, reader))
    *others, last = revision.refused or ("",)
    return replace(revision, refused=(*others, f"{last} ({kept})")) if last else revision


def _resized(desired: Object, existing: Object, revision: Revision | None) -> Revision | None:
    """The revision with the desired size of an elastic training, which not every cluster allows."""
    spec = existing["spec"] if revision is None else revision.object["spec"]
    resized = resize(spec, desired)
    if resized is None:
        return revision
    smaller = revision or Revision(_unless_changed(_as_applied(existing), existing))
    refused = _refused(desired, existing, resized) if revision is not None else ()
    larger = replace(smaller, object=smaller.object | {"spec": resized}, refused=refused, remedy=ELASTIC_JOBSETS)
    return replace(larger, fallback=replace(smaller, refused=refused))


def _revision(desired: Object, existing: Object) -> Revision | None:
    """The changes that every cluster allows; None while the JobSet runs or another manager has suspended it."""
    suspend = _is_suspended(desired)
    if not is_decided(existing, suspend=suspend):
        if not suspend:
            return None
        if not _is_suspended(existing):
            return Revision(
                _unless_changed(_noted(_as_applied(existing), existing, suspend=True), existing), is_resumed=True
            )
        return _revised(desired, existing, guard=True)
    if not (suspend or _is_suspended(existing)):
        return Revision(_unless_changed(_noted(_as_applied(existing), existing, suspend=False), existing))
    return _revised(desired, existing, guard=False)


def _replacement(desired: Object, existing: Object, revision: Revision, reader: Reader) -> Replacement:
    """The JobSet is deleted while it is suspended and no pod of it runs; the creation resumes it."""
    if _is_suspended(existing):
        awaits = unfinished(existing, reader)
        applied = _unless_changed(_as_applied(existing), existing)
    elif is_decided(existing, suspend=True) and _is_suspended(desired):
        awaits = "its pods have ended"
        applied = _as_applied(existing)
        applied["spec"]["suspend"] = True
    else:
        return Replacement("it is suspended", revision, run_again(existing))
    meanwhile = Revision(_noted(applied, existing, suspend=True)) if _is_suspended(desired) else None
    return Replacement(awaits, meanwhile, run_again(existing))


def _revised(desired: Object, existing: Object, *, guard: bool) -> Revision:
    spec = copy.deepcopy(existing["spec"])
    _replace(spec, desired["spec"], _MUTABLE)
    wanted_pods = {job["name"]: _pod_template(job) for job in desired["spec"]["replicatedJobs"]}
    for job in spec.get("replicatedJobs") or []:
        pod, wanted = _pod_template(job), wanted_pods.get(job["name"]) or {}
        metadata = pod.pop("metadata", None) or {}
        _replace(metadata, wanted.get("metadata") or {}, _MUTABLE_IN_POD_METADATA)
        if metadata:
            pod["metadata"] = metadata
        _replace(pod["spec"], wanted.get("spec") or {}, _MUTABLE_IN_POD_SPEC)
    suspend = _is_suspended(desired)
    revised = _noted({name: desired[name] for name in ("apiVersion", "kind", "metadata")}, existing, suspend=suspend)
    revised["spec"] = spec
    if guard:
        revised = _unless_changed(revised, existing)
    return Revision(revised, refused=_refused(desired, existing, spec), starts_pods=not suspend)


def _refused(desired: Object, existing: Object, spec: Object) -> tuple[str, ...]:
    if ADOPTED in annotations_of(existing):
        return ()  # it differs from the start
    return tuple(path for path in differences(desired["spec"], spec, "spec") if not _JOB_METADATA.match(path))


def resuspend_jobset(existing: Object, *, suspend: bool) -> Revision | None:
    """The JobSet as it exists, suspended or not; None for one that is so already or has ended.

    It no longer deletes itself, as one did that an older manager has built: a JobSet that is gone is built again.
    """
    if _has_ended(existing):
        return None
    applied = _as_applied(existing)
    lived_on = applied["spec"].pop("ttlSecondsAfterFinished", None) is None
    if is_decided(existing, suspend=suspend):
        starts_pods = _is_suspended(existing) and not suspend
        applied["spec"]["suspend"] = suspend
        return Revision(_noted(applied, existing, suspend=suspend), starts_pods=starts_pods)
    is_resumed = suspend and not _is_suspended(existing)
    if is_resumed:
        applied = _noted(applied, existing, suspend=True)
    return None if lived_on and not is_resumed else Revision(_unless_changed(applied, existing), is_resumed=is_resumed)


def is_decided(existing: Object, *, suspend: bool) -> bool:
    """Whether the TrainJob has changed its `suspend` since it was applied to the JobSet.

    If it has not, others decide: Kueue, or an administrator. Kubeflow Trainer (Go), whose JobSets have no annotations
    of ours, undoes what others do: there the JobSet shows what was applied.
    """
    annotations = annotations_of(existing)
    is_ours = SUSPEND in annotations or APPLIED_HASH in annotations
    noted = annotations.get(SUSPEND) not in {None, _TEXTS[False]}
    was_suspended = noted if is_ours else _is_suspended(existing)
    return suspend != was_suspended


def _noted(jobset: Object, existing: Object, *, suspend: bool) -> Object:
    """The JobSet with the annotation of the TrainJob's `suspend`."""
    metadata = jobset["metadata"]
    text = FROM_CREATION if suspend and _is_unused(existing) else _TEXTS[suspend]
    annotations = annotations_of(jobset) | {SUSPEND: text}
    return jobset | {"metadata": metadata | {"annotations": annotations}}


def _unless_changed(jobset: Object, existing: Object) -> Object:
    """The JobSet with the cached resourceVersion as a precondition, since another manager may change its `suspend`."""
    version = existing["metadata"].get("resourceVersion")
    return jobset | {"metadata": jobset["metadata"] | ({"resourceVersion": version} if version else {})}


def _as_applied(existing: Object) -> Object:
    """The existing JobSet without the fields that API servers and controllers write."""
    metadata = {
        name: value
        for name, value in existing["metadata"].items()
        if name in {"name", "namespace", "labels", "annotations"}
    }
    kept = {name: existing[name] for name in ("apiVersion", "kind")}
    return kept | {"metadata": metadata, "spec": copy.deepcopy(existing["spec"])}


def _is_suspended(jobset: Object) -> bool:
    return bool(jobset["spec"].get("suspend"))


def _is_unused(jobset: Object) -> bool:
    """Whether the JobSet has been suspended since it was created."""
    return annotations_of(jobset).get(SUSPEND) == FROM_CREATION and _is_suspended(jobset)


def _has_ended(jobset: Object) -> bool:
    return bool((jobset.get("status") or {}).get("terminalState"))


def _pod_template(job: Object) -> Object:
    template: Object = job["template"]["spec"]["template"]
    return template


def _replace(target: dict[str, Any], source: dict[str, Any], names: tuple[str, ...]) -> None:
    for name in names:
        if name in source:
            target[name] = source[name]
        else:
            target.pop(name, None)
