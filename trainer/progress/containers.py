"""The containers of a TrainJob's pods, and the primary one, whose log reports progress."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from trainer.api.jobset_labels import COMPLETION_INDEX, JOBSET_UID, REPLICAS, REPLICATED_JOB
from trainer.api.jobset_pods import place_of
from trainer.api.labels import ANCESTOR_LABEL
from trainer.api.progress import REPORTER_CONTAINER
from trainer.framework.plugin_api.runtime_info import LAUNCHER, Ancestor
from trainer.kube.errors import ForbiddenError, NotFoundError
from trainer.kube.objects import labels_of, metadata_of, name_of, namespace_of, uid_of
from trainer.progress.primary_pod import container_state, primary_pod, training_job
from trainer.workloads import JOBSETS
from trainer.workloads.containers import container_status, container_statuses, containers_of, has_ended

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from trainer.kube.client import Client
    from trainer.kube.objects import Object
    from trainer.progress.primary_pod import ContainerState


def node_name(pod: Object) -> str:
    """The pod in the words of people: replicated job and index, such as `node-0`; without a JobSet its own name."""
    job, job_index, index = place_of(pod)
    if not job:
        return name_of(pod)
    has_several_jobs = labels_of(pod).get(REPLICAS, "1") != "1"
    return f"{job}-{job_index}-{index}" if has_several_jobs else f"{job}-{index}"


class Speaker(IntEnum):
    """The container that prints the result of a training; the greater one counts if both print something."""

    NONE = 0
    FIRST_NODE = 1
    LAUNCHER = 2
    """The launcher of an MPI training, whose nodes only run an SSH server."""


def speaker_of(pod: Object, training_job: str) -> Speaker:
    """Whether the pod prints the result; the pods of the replicated Job `training_job` are the nodes."""
    labels = labels_of(pod)
    job = labels.get(REPLICATED_JOB)
    if labels.get(COMPLETION_INDEX) != "0" or not job:
        return Speaker.NONE
    if job == LAUNCHER:
        return Speaker.LAUNCHER
    return Speaker.FIRST_NODE if job == training_job else Speaker.NONE


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


_INITIALIZERS = (Ancestor.DATASET_INITIALIZER, Ancestor.MODEL_INITIALIZER)
"""Also names of replicated Jobs, which need no label."""


class PrimaryContainer:
    """Finds the primary container of one TrainJob as the manager does, by its JobSet."""

    def __init__(self, client: Client, job: Object) -> None:
        self._client = client
        self._job = job
        self._jobset: Object | None = None
        self._may_read = True

    async def find(self, pods: Sequence[Object]) -> ContainerState | None:
        """The state of the primary container; None while there is none."""
        if not pods:
            return None
        jobset = await self.jobset_of(pods)
        pod = primary_pod(pods, jobset)
        return container_state(pod, jobset, self._job) if pod is not None else None

    async def started(self, pods: Sequence[Object]) -> StartedContainer | None:
        """The primary container, if it has started."""
        state = await self.find(pods)
        started = (container for pod in pods for container in started_containers(pod))
        return next((each for each in started if state is not None and each.place == state.place), None)

    async def container_of(self, pod: Object) -> str:
        """Name of the main container in one of the TrainJob's pods."""
        return container_state(pod, await self.jobset_of([pod]), self._job).container

    async def training_job(self, pods: Sequence[Object]) -> str:
        """Name of the replicated Job whose pods are the numbered nodes; empty if there is none."""
        return training_job(await self.jobset_of(pods)) or "" if pods else ""

    async def jobset_of(self, pods: Sequence[Object]) -> Object:
        """The JobSet of these pods, or a substitute from their labels if it cannot be read."""
        uids = {labels_of(pod).get(JOBSET_UID) for pod in pods} - {None}
        if self._jobset is not None and (not uids or uid_of(self._jobset) in uids):
            return self._jobset
        if self._may_read:
            try:
                self._jobset = await self._client.get(JOBSETS, name_of(self._job), namespace_of(self._job))
            except NotFoundError:
                pass
            except ForbiddenError:
                self._may_read = False
            else:
                return self._jobset
        return self._from_labels(pods)

    def _from_labels(self, pods: Sequence[Object]) -> Object:
        """A substitute for a JobSet that may not be read, from the labels of its pods."""
        newest = max(pods, key=lambda pod: metadata_of(pod).get("creationTimestamp") or "")
        roles = {
            labels_of(pod).get(REPLICATED_JOB, ""): labels_of(pod).get(ANCESTOR_LABEL)
            for pod in pods
            if labels_of(pod).get(ANCESTOR_LABEL) in {None, Ancestor.TRAINER}
        }
        return {
            "metadata": {
                "uid": labels_of(newest).get(JOBSET_UID, ""),
                "annotations": (self._job.get("spec") or {}).get("annotations") or {},
            },
            "spec": {
                "replicatedJobs": [
                    {"name": name, "template": {"metadata": {"labels": {ANCESTOR_LABEL: ancestor or ""}}}}
                    for name, ancestor in roles.items()
                    if name not in _INITIALIZERS
                ]
            },
        }
