"""The containers of a TrainJob's pods, and their names for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum

from trainer.api.jobset_labels import COMPLETION_INDEX, REPLICATED_JOB
from trainer.api.jobset_pods import node_name
from trainer.api.progress import REPORTER_CONTAINER
from trainer.framework.plugin_api.runtime_info import LAUNCHER
from trainer.kube.objects import Object, labels_of, name_of, namespace_of, uid_of
from trainer.workloads.containers import container_status, container_statuses, containers_of, has_ended


class ResultSource(IntEnum):
    """The container that prints the result of a training; the greater one counts if both print something."""

    NONE = 0
    FIRST_NODE = 1
    LAUNCHER = 2
    """The launcher of an MPI training, whose nodes only run an SSH server."""


def result_source_of(pod: Object, training_job: str) -> ResultSource:
    """Whether the pod prints the result; the pods of the replicated Job `training_job` are the nodes."""
    labels = labels_of(pod)
    job = labels.get(REPLICATED_JOB)
    if labels.get(COMPLETION_INDEX) != "0" or not job:
        return ResultSource.NONE
    if job == LAUNCHER:
        return ResultSource.LAUNCHER
    return ResultSource.FIRST_NODE if job == training_job else ResultSource.NONE


@dataclass(frozen=True, slots=True)
class StartedContainer:
    """A container that has a log; `source` is the prefix of its lines."""

    pod_uid: str
    namespace: str
    pod: str
    container: str
    source: str

    @property
    def place(self) -> tuple[str, str]:
        """Uid of the pod, and container."""
        return self.pod_uid, self.container

    def is_over(self, pods: Iterable[Object]) -> bool:
        """Whether, by the present pods, its pod is gone, or it has ended and will not be restarted."""
        pod = next((pod for pod in pods if uid_of(pod) == self.pod_uid), None)
        return pod is None or has_ended(pod, self.container)


def started_containers(pod: Object) -> Iterator[StartedContainer]:
    """The containers that run or have run, init containers included."""
    several = len({*containers_of(pod)} - {REPORTER_CONTAINER}) > 1
    for status in container_statuses(pod):
        state = status.get("state") or {}
        if not ("running" in state or "terminated" in state or status.get("restartCount")):
            continue
        name = status["name"]
        source = f"{node_name(pod)}/{name}" if several or name == REPORTER_CONTAINER else node_name(pod)
        yield StartedContainer(uid_of(pod), namespace_of(pod), name_of(pod), name, source)


def restarts_of(pod: Object, container: str) -> int:
    """How often the container was restarted in its pod."""
    return int(container_status(pod, container).get("restartCount") or 0)
