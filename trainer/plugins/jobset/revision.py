"""What may still change in a JobSet that exists.

JobSet's admission webhook refuses all changes of replicated Jobs, except, while the JobSet is suspended, labels,
annotations, node selector, tolerations and scheduling gates of their pods; and the size of an elastic training, where
the cluster allows that.
"""

from __future__ import annotations

import copy
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trainer.framework.comparison import differences
from trainer.framework.component import Revision
from trainer.plugins.jobset.elastic import ELASTIC_JOBSETS, resize

if TYPE_CHECKING:
    from trainer.kube.objects import Object

_MUTABLE = ("suspend", "ttlSecondsAfterFinished", "coordinator")
_MUTABLE_IN_POD_METADATA = ("labels", "annotations")
_MUTABLE_IN_POD_SPEC = ("nodeSelector", "tolerations", "schedulingGates")

_JOB_METADATA = re.compile(r"spec\.replicatedJobs\[[^]]++\]\.template\.metadata\b")
"""Labels and annotations of Jobs, which stay as they are when those of JobSet and pods change."""


def revise_jobset(desired: Object, existing: Object) -> Revision | None:
    """The JobSet as it exists, with the mutable fields as desired; None when nothing of it may or need change."""
    if _has_ended(existing):
        return None
    revision = _revision(desired, existing)
    spec = existing["spec"] if revision is None else revision.object["spec"]
    resized = resize(spec, desired)
    if resized is None:
        return revision
    smaller = revision or Revision(_as_applied(existing))
    refused = _refused(desired, resized) if revision is not None else ()
    return Revision(
        smaller.object | {"spec": resized}, refused, replace(smaller, refused=refused), remedy=ELASTIC_JOBSETS
    )


def _revision(desired: Object, existing: Object) -> Revision | None:
    """The changes that every cluster allows; None while the JobSet runs."""
    if not (_is_suspended(existing) or _is_suspended(desired)):
        return None
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
    revised = {name: desired[name] for name in ("apiVersion", "kind", "metadata")} | {"spec": spec}
    return Revision(revised, refused=_refused(desired, spec))


def _refused(desired: Object, spec: Object) -> tuple[str, ...]:
    return tuple(path for path in differences(desired["spec"], spec, "spec") if not _JOB_METADATA.match(path))


def resuspend_jobset(existing: Object, *, suspend: bool) -> Revision | None:
    """The JobSet as it exists, suspended or not; None for one that is so already or has ended."""
    if _has_ended(existing) or _is_suspended(existing) == suspend:
        return None
    applied = _as_applied(existing)
    return Revision(applied | {"spec": applied["spec"] | {"suspend": suspend}})


def _as_applied(existing: Object) -> Object:
    """The JobSet as it exists, without what servers and controllers write."""
    metadata = {
        name: value
        for name, value in existing["metadata"].items()
        if name in {"name", "namespace", "labels", "annotations"}
    }
    kept = {name: existing[name] for name in ("apiVersion", "kind")}
    return kept | {"metadata": metadata, "spec": copy.deepcopy(existing["spec"])}


def _is_suspended(jobset: Object) -> bool:
    return bool(jobset["spec"].get("suspend"))


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
