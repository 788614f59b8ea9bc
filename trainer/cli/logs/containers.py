"""Which training node a pod is, and what its containers are doing."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from trainer.api.jobset_labels import COMPLETION_INDEX, REPLICAS, REPLICATED_JOB
from trainer.api.jobset_pods import place_of
from trainer.framework.plugin_api.runtime_info import LAUNCHER
from trainer.kube.container_status import container_status, container_statuses, containers_of
from trainer.kube.objects import labels_of, name_of, namespace_of, uid_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainer.kube.objects import Object


def node_name(pod: Object) -> str:
    """What people call the pod: replicated job and index, such as `node-0`; its own name if no JobSet made it."""
    job, job_index, index = place_of(pod)
    if not job:
        return name_of(pod)
    has_several_jobs = labels_of(pod).get(REPLICAS, "1") != "1"
    return f"{job}-{job_index}-{index}" if has_several_jobs else f"{job}-{index}"


class Speaker(IntEnum):
    """Who prints the result of a training; the greater one is right where both print something."""

    NOBODY = 0
    FIRST_NODE = 1
    LAUNCHER = 2
    """That of an MPI training, whose nodes only run an SSH server."""


def speaker_of(pod: Object, training_job: str) -> Speaker:
    """What the pod's log says about the result.

    Args:
        pod: one of a TrainJob.
        training_job: name of the replicated Job whose pods are the nodes.
    """
    labels = labels_of(pod)
    job = labels.get(REPLICATED_JOB)
    if labels.get(COMPLETION_INDEX) != "0" or not job:
        return Speaker.NOBODY
    if job == LAUNCHER:
        return Speaker.LAUNCHER
    return Speaker.FIRST_NODE if job == training_job else Speaker.NOBODY


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
    several = len(containers_of(pod)) > 1
    for status in container_statuses(pod):
        state = status.get("state") or {}
        if not ("running" in state or "terminated" in state or status.get("restartCount")):
            continue
        name = status["name"]
        source = f"{node_name(pod)}/{name}" if several else node_name(pod)
        yield StartedContainer(uid_of(pod), namespace_of(pod), name_of(pod), name, source)


def restarts_of(pod: Object, container: str) -> int:
    """How often the container was started again within its pod."""
    return int(container_status(pod, container).get("restartCount") or 0)
