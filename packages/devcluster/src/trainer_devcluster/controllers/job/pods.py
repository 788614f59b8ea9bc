"""The pods of a Job: what it needs to know about one, and how it makes one from its template."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from datetime import datetime, timedelta
from typing import Any, cast

import msgspec

from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.clock import parse_timestamp
from trainer.kube.objects import (
    Object,
    annotations_of,
    controller_reference,
    find_condition,
    has_finished,
    is_being_deleted,
    is_condition_true,
    metadata_of,
    name_of,
    namespace_of,
)
from trainer.workloads.containers import container_statuses

TRACKING_FINALIZER = "batch.kubernetes.io/job-tracking"
"""Holds a pod until its Job has counted how it ended."""
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
"""Annotation and label with the index of a pod of an Indexed Job."""


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str | None = None


class _Pod(msgspec.Struct):
    metadata: dict[str, Any]
    spec: _Spec
    status: dict[str, Any] | None = None


_pod = msgspec.json.Decoder(_Pod)


def without_containers(pod: CachedObject) -> Object:
    """Metadata, status and `spec.nodeName` of a pod; its containers may be a megabyte, which nobody here reads."""
    read: Object = msgspec.to_builtins(_pod.decode(pod.raw))
    return read


def phase_of(pod: Object) -> str:
    """`status.phase`; Pending while the kubelet has not said anything."""
    return cast("str", (pod.get("status") or {}).get("phase") or "Pending")


def has_succeeded(pod: Object) -> bool:
    """Whether all containers ended with exit code 0."""
    return phase_of(pod) == "Succeeded"


def is_active(pod: Object) -> bool:
    """Whether the pod still works, or will work, for its Job."""
    return not has_finished(pod) and not is_being_deleted(pod)


def is_terminating(pod: Object) -> bool:
    """Whether the pod is being deleted and still runs."""
    return not has_finished(pod) and is_being_deleted(pod)


def is_ready(pod: Object) -> bool:
    """Whether the pod has the Ready condition."""
    return is_condition_true(pod, "Ready")


def is_tracked(pod: Mapping[str, Any]) -> bool:
    """Whether the pod waits for its Job to count it."""
    return TRACKING_FINALIZER in (metadata_of(pod).get("finalizers") or [])


def completion_index(pod: Object) -> int | None:
    """The completion index, or None when the pod has no valid one."""
    text = annotations_of(pod).get(COMPLETION_INDEX, "")
    return int(text) if text.isdecimal() else None


def restart_count(pod: Object) -> int:
    """How often the kubelet has restarted containers of the pod."""
    return sum(status.get("restartCount") or 0 for status in container_statuses(pod))


def failed_containers(pod: Object) -> list[tuple[str, int]]:
    """Name and exit code of every container that ended with another code than 0, init containers last."""
    status = pod.get("status") or {}
    statuses = [*(status.get("containerStatuses") or []), *(status.get("initContainerStatuses") or [])]
    ends = [(entry["name"], _terminated(entry).get("exitCode") or 0) for entry in statuses]
    return [(name, code) for name, code in ends if code != 0]


def finished_at(pod: Object) -> datetime:
    """When the pod ended, as well as it tells: last container, loss of readiness, request to delete it, or creation."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or []
    ends: list[str] = [_terminated(status).get("finishedAt") or "" for status in statuses]
    if ends and all(ends):
        return max(parse_timestamp(end) for end in ends)
    ready = find_condition(pod, "Ready") or {}
    if ready.get("status") == "False" and ready.get("lastTransitionTime"):
        return parse_timestamp(ready["lastTransitionTime"])
    metadata = metadata_of(pod)
    if is_being_deleted(pod):
        grace = timedelta(seconds=metadata.get("deletionGracePeriodSeconds") or 0)
        return parse_timestamp(metadata["deletionTimestamp"]) - grace
    return parse_timestamp(metadata["creationTimestamp"])


def _terminated(container_status: Object) -> Object:
    state: Object = container_status.get("state") or {}
    return state.get("terminated") or {}


def parse_indexes(text: str, completions: int) -> frozenset[int]:
    """The indexes in `status.completedIndexes` below `completions`; parts that are not numbers are skipped."""
    indexes: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if not first.isdigit() or (last and not last.isdigit()):
            continue
        indexes.update(range(int(first), min(int(last or first) + 1, completions)))
    return frozenset(indexes)


def format_indexes(indexes: Iterable[int]) -> str:
    """The shortest text for the indexes; a run of two is written `3,4`, longer runs `3-5` (batch/v1 JobStatus)."""
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][-1] == index - 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return ",".join(_format_run(run) for run in runs)


def _format_run(run: list[int]) -> str:
    if len(run) > 2:
        return f"{run[0]}-{run[-1]}"
    return ",".join(str(index) for index in run)


_LONGEST_PREFIX = 58
"""A name of 63 characters less the five that the server adds to `generateName`."""
_INDEX_VARIABLE: Object = {
    "name": "JOB_COMPLETION_INDEX",
    "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{COMPLETION_INDEX}']"}},
}


def build_pod(job: Object, index: int | None) -> Object:
    """A new pod of the Job; with an index also its hostname, label, annotation and JOB_COMPLETION_INDEX variable."""
    template = deepcopy(job["spec"]["template"])
    given = template.get("metadata") or {}
    metadata: Object = {
        "generateName": _name_prefix(name_of(job), index),
        "namespace": namespace_of(job),
        "labels": given.get("labels") or {},
        "annotations": given.get("annotations") or {},
        "ownerReferences": [controller_reference(job)],
        "finalizers": list(dict.fromkeys([*(given.get("finalizers") or []), TRACKING_FINALIZER])),
    }
    spec = template["spec"]
    if index is not None:
        metadata["labels"][COMPLETION_INDEX] = str(index)
        metadata["annotations"][COMPLETION_INDEX] = str(index)
        spec["hostname"] = f"{name_of(job)}-{index}"
        for container in (*(spec.get("initContainers") or []), *spec["containers"]):
            _add_index_variable(container)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _name_prefix(job: str, index: int | None) -> str:
    if index is None:
        # What of it is too long the server cuts off in the name alone.
        return f"{job}-"
    suffix = f"-{index}-"
    return job[: _LONGEST_PREFIX - len(suffix)] + suffix


def _add_index_variable(container: Object) -> None:
    variables = container.setdefault("env", [])
    if all(variable["name"] != _INDEX_VARIABLE["name"] for variable in variables):
        variables.append(deepcopy(_INDEX_VARIABLE))
