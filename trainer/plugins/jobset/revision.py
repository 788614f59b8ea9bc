"""What may still change in a JobSet that exists.

JobSet's admission webhook refuses all changes of replicated Jobs, except, while the JobSet is suspended, labels,
annotations, node selector, tolerations and scheduling gates of their pods.
"""

from __future__ import annotations

import copy
import re
from typing import TYPE_CHECKING, Any

from trainer.framework.comparison import differences
from trainer.framework.component import Revision

if TYPE_CHECKING:
    from trainer.kube.objects import Object

_MUTABLE = ("suspend", "ttlSecondsAfterFinished", "coordinator")
_MUTABLE_IN_POD_METADATA = ("labels", "annotations")
_MUTABLE_IN_POD_SPEC = ("nodeSelector", "tolerations", "schedulingGates")

_JOB_METADATA = re.compile(r"spec\.replicatedJobs\[[^]]+\]\.template\.metadata\b")
"""Labels and annotations of Jobs, which stay as they are when those of JobSet and pods change."""


def revise_jobset(desired: Object, existing: Object) -> Revision | None:
    """The JobSet as it exists, with the mutable fields as desired; None for one that runs or has ended."""
    if _has_ended(existing) or not (_is_suspended(existing) or _is_suspended(desired)):
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
    refused = [path for path in differences(desired["spec"], spec, "spec") if not _JOB_METADATA.match(path)]
    return Revision(revised, refused=tuple(refused))


def resuspend_jobset(existing: Object, *, suspend: bool) -> Revision | None:
    """The JobSet as it exists, suspended or not; None for one that is so already or has ended."""
    if _has_ended(existing) or _is_suspended(existing) == suspend:
        return None
    metadata = {
        name: value
        for name, value in existing["metadata"].items()
        if name in {"name", "namespace", "labels", "annotations"}
    }
    kept = {name: existing[name] for name in ("apiVersion", "kind")}
    return Revision(kept | {"metadata": metadata, "spec": copy.deepcopy(existing["spec"]) | {"suspend": suspend}})


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
