"""The primary pod of a TrainJob, whose log has the progress messages, and the state of its container (KEP-2779).

An annotation selects it; the default is the first pod of the replicated Job that trains. After failures there are
several pods with the same place, and the newest counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trainer.api.jobset_labels import COMPLETION_INDEX, JOBSET_NAME, JOBSET_UID, REPLICATED_JOB
from trainer.api.jobset_pods import age_of, is_made_by, place_of, recency_of
from trainer.api.labels import ANCESTOR_LABEL
from trainer.api.progress import CONTAINER, PRIMARY_POD
from trainer.api.trainjob_status import StepState
from trainer.framework.building.trainer_step import TRAINER_JOBS
from trainer.framework.plugin_api.runtime_info import LAUNCHER, Ancestor
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.client import Client
from trainer.kube.errors import ForbiddenError, NotFoundError
from trainer.kube.objects import (
    Object,
    ObjectKey,
    annotations_of,
    controller_of,
    is_being_deleted,
    labels_of,
    metadata_of,
    name_of,
    namespace_of,
    uid_of,
)
from trainer.kube.podlogs.instant import Instant
from trainer.progress.containers import StartedContainer, started_containers
from trainer.workloads import JOBSETS
from trainer.workloads.containers import container_status, has_ended, main_container

CANDIDATES = "progress-candidates"
"""Name of the index of possible primary pods; the value is `candidates_of` their JobSet."""

_ANNOTATION = PRIMARY_POD.encode()


@dataclass(frozen=True, slots=True)
class ContainerState:
    """The state of the container whose log is read, from the status of its pod."""

    namespace: str
    pod: str
    pod_uid: str
    container: str
    started: Instant | None = None
    """Start of its present run, or of its last one; None before the first."""
    has_ended: bool = False
    """Whether it has ended and will not be restarted."""
    has_succeeded: bool = False
    """Whether it has ended so with exit code 0."""
    is_leaving: bool = False
    """Whether its pod is being deleted, and its log with it."""
    age: tuple[int, str] = (0, "")
    """Restarts of the JobSet before the pod was created, and the creation time by the API server's clock."""
    missing: str = ""
    """The container that an annotation names but the pod lacks; "" otherwise."""

    @property
    def place(self) -> tuple[str, str]:
        """Uid of the pod, and container."""
        return self.pod_uid, self.container

    @property
    def as_step(self) -> StepState:
        """How a container that has started is doing, as a step beside the training."""
        if not self.has_ended:
            return StepState.RUNNING
        return StepState.COMPLETE if self.has_succeeded else StepState.FAILED


def candidates_of(jobset: ObjectKey) -> str:
    """The index value of one JobSet's pods."""
    return str(jobset)


def candidates(pod: CachedObject) -> tuple[str, ...]:
    """Index function of `CANDIDATES`: one or two pods of a JobSet that may have thousands."""
    labels = pod.labels
    jobset = labels.get(JOBSET_NAME)
    if not jobset:
        return ()
    # Decoding annotations is expensive, so the raw bytes are searched first.
    index = labels.get(COMPLETION_INDEX)
    if index == "0" or (not index and place_of(pod).completion_index == 0) or _ANNOTATION in pod.raw:
        return (f"{pod.key.namespace}/{jobset}" if pod.key.namespace else jobset,)
    return ()


def is_of(jobset: Object, pod: Object) -> bool:
    """Whether the pod names this JobSet, and not a former one of its name; one that names none passes."""
    return labels_of(pod).get(JOBSET_UID, uid_of(jobset)) == uid_of(jobset)


def is_made_of(jobset: Object, pod: Object) -> bool:
    """Whether a Job of this JobSet controls the pod; labels alone prove nothing, since any pod may have them."""
    job, index, _ = place_of(pod)
    jobs = (jobset.get("spec") or {}).get("replicatedJobs") or []
    owner, labels = controller_of(pod) or {}, labels_of(pod)
    return (
        is_of(jobset, pod)
        and any(each["name"] == job and index < each.get("replicas", 1) for each in jobs)
        and labels.get(JOBSET_NAME) == name_of(jobset)
        and is_made_by(owner.get("kind"), owner.get("name"), labels)
    )


def primary_pod(pods: Iterable[Object], jobset: Object) -> Object | None:
    """The primary pod among the candidates of a JobSet; None without one."""
    own = [pod for pod in pods if is_of(jobset, pod)]
    named = [pod for pod in own if annotations_of(pod).get(PRIMARY_POD) == "true"]
    if not named:
        job = _trainer_job(jobset)
        named = [pod for pod in own if place_of(pod) == (job, 0, 0)]
    first = min(map(place_of, named), default=None)
    return max((pod for pod in named if place_of(pod) == first), key=recency_of, default=None)


def container_state(pod: Object, jobset: Object, train_job: Mapping[str, Any]) -> ContainerState:
    """The container of the primary pod whose log is read, and its state."""
    container, missing = _container(pod, jobset, train_job)
    return replace(state_of(pod, container), missing=missing)


def state_of(pod: Object, container: str) -> ContainerState:
    """The state of one container."""
    state = ContainerState(*(namespace_of(pod), name_of(pod), uid_of(pod), container), age=age_of(pod))
    status = container_status(pod, container)
    present, last = status.get("state") or {}, status.get("lastState") or {}
    run = present.get("running") or present.get("terminated") or last.get("terminated")
    if run is None:
        return state
    is_over = has_ended(pod, container)
    return replace(
        state,
        started=Instant.parse(run.get("startedAt") or "") or Instant(0),
        has_ended=is_over,
        has_succeeded=is_over and present.get("terminated", {}).get("exitCode") == 0,
        is_leaving=is_being_deleted(pod),
    )


def _container(pod: Object, jobset: Object, train_job: Mapping[str, Any]) -> tuple[str, str]:
    """The container, and the name from an annotation if the pod has no such container."""
    names = [str(container.get("name")) for container in (pod.get("spec") or {}).get("containers") or []]
    stated = (annotations_of(each).get(CONTAINER) for each in (pod, jobset, train_job))
    wanted = next((name for name in stated if name), "")
    if wanted in names:
        return wanted, ""
    return main_container(pod), wanted


def _trainer_job(jobset: Object) -> str | None:
    names = [job["name"] for job in (jobset.get("spec") or {}).get("replicatedJobs") or []]
    return next(iter([*_training_jobs(jobset), *names]), None)


def training_job(jobset: Object) -> str | None:
    """Name of the replicated Job whose pods are the nodes, by label, else by name; never the MPI launcher."""
    return next((name for name in _training_jobs(jobset) if name != LAUNCHER), None)


def _training_jobs(jobset: Object) -> list[str]:
    jobs = (jobset.get("spec") or {}).get("replicatedJobs") or []
    labelled = [job["name"] for job in jobs if _ancestor(job) == Ancestor.TRAINER]
    return [*labelled, *(job["name"] for job in jobs if job["name"] in TRAINER_JOBS)]


def _ancestor(job: Object) -> str | None:
    template = job.get("template") or {}
    pod_template = (template.get("spec") or {}).get("template") or {}
    return labels_of(template).get(ANCESTOR_LABEL) or labels_of(pod_template).get(ANCESTOR_LABEL)


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
