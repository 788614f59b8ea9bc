"""Which training node a pod is, and what its containers are doing."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from trainer.kube.objects import labels_of, name_of, namespace_of, uid_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainer.kube.objects import Object

JOBSET_NAME = "jobset.sigs.k8s.io/jobset-name"
"""Label that the JobSet controller puts on the Jobs and pods of a JobSet; a TrainJob's JobSet has its name."""

_REPLICATED_JOB = "jobset.sigs.k8s.io/replicatedjob-name"
_REPLICAS = "jobset.sigs.k8s.io/replicatedjob-replicas"
_JOB_INDEX = "jobset.sigs.k8s.io/job-index"
_COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"


def node_name(pod: Object) -> str:
    """What people call the pod: replicated job and index, such as `node-0`; its own name if no JobSet made it."""
    labels = labels_of(pod)
    job, index = labels.get(_REPLICATED_JOB), labels.get(_COMPLETION_INDEX)
    if not job:
        return name_of(pod)
    parts = [job]
    if labels.get(_REPLICAS, "1") != "1":
        parts.append(labels.get(_JOB_INDEX, "0"))
    return "-".join([*parts, index or "0"])


class Speaker(IntEnum):
    """Who prints the result of a training; the greater one is right where both print something."""

    NOBODY = 0
    FIRST_NODE = 1
    LAUNCHER = 2
    """That of an MPI training, whose nodes only run an SSH server."""


def speaker_of(pod: Object) -> Speaker:
    """What the pod's log says about the result."""
    labels = labels_of(pod)
    if labels.get(_COMPLETION_INDEX) != "0":
        return Speaker.NOBODY
    return _SPEAKERS.get(labels.get(_REPLICATED_JOB, ""), Speaker.NOBODY)


_SPEAKERS = {"node": Speaker.FIRST_NODE, "trainer-node": Speaker.FIRST_NODE, "launcher": Speaker.LAUNCHER}
"""By the replicated Job."""


@dataclass(frozen=True, slots=True)
class StartedContainer:
    """A container that has a log, under the name that stands before its lines."""

    pod_uid: str
    namespace: str
    pod: str
    container: str
    source: str


def started_containers(pod: Object) -> Iterator[StartedContainer]:
    """The containers, init containers included, that run or have run."""
    statuses = _container_statuses(pod)
    spec = pod.get("spec") or {}
    several = len(spec.get("initContainers") or []) + len(spec.get("containers") or []) > 1
    for status in statuses:
        state = status.get("state") or {}
        if not ("running" in state or "terminated" in state or status.get("restartCount")):
            continue
        name = status["name"]
        source = f"{node_name(pod)}/{name}" if several else node_name(pod)
        yield StartedContainer(uid_of(pod), namespace_of(pod), name_of(pod), name, source)


def has_ended(pod: Object, container: str) -> bool:
    """Whether the container has ended and will not be restarted."""
    if (pod.get("status") or {}).get("phase") in {"Succeeded", "Failed"}:
        return True
    policy = (pod.get("spec") or {}).get("restartPolicy", "Always")
    status = next((status for status in _container_statuses(pod) if status.get("name") == container), {})
    ended = (status.get("state") or {}).get("terminated")
    if ended is None:
        return False
    return bool(policy == "Never" or (policy == "OnFailure" and ended.get("exitCode") == 0))


def _container_statuses(pod: Object) -> list[dict[str, Any]]:
    status = pod.get("status") or {}
    return [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]
