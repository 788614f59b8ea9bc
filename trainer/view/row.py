"""A TrainJob in a row: what every list of TrainJobs shows some of."""

from __future__ import annotations

from dataclasses import dataclass

from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from trainer.api.trainjob_status import ConditionType, State
from trainer.framework.plugin_api.devices import USUAL_DEVICES
from trainer.framework.status.status import UNTOUCHED, state_word
from trainer.kube.objects import (
    Object,
    annotations_of,
    controller_of,
    find_condition,
    is_being_deleted,
    labels_of,
    mapping_at,
    metadata_of,
    name_of,
    namespace_of,
    owner_references_of,
    uid_of,
)
from trainer.view.progress import NOTHING_REPORTED, StepProgress, TrainingProgress
from trainer.workloads.restarts import Restarts

ENDS = frozenset({State.FAILED.value, State.COMPLETE.value})
"""States of TrainJobs that have ended."""
_CREATED_BY = "app.kubernetes.io/created-by"


@dataclass(frozen=True, slots=True)
class TrainJobRow:
    """The columns, as the TrainJob has them: texts may have any characters, times are those of Kubernetes.

    A new column is a field here; the command, the page and the history choose what they show.
    """

    uid: str = ""
    namespace: str = ""
    name: str = ""
    state: str = UNTOUCHED
    """How it ended, else `status.state`; Submitted before a controller has written it."""
    reason: str = ""
    """Reason of the condition that explains the state; empty without one."""
    lines: tuple[str, ...] = ()
    """The message of that condition."""
    since: str | None = None
    """When that condition became so; None without one."""
    progress: TrainingProgress = NOTHING_REPORTED
    steps: tuple[StepProgress, ...] = ()
    """The steps beside the training."""
    runtime_kind: str = CLUSTER_TRAINING_RUNTIMES.kind
    runtime: str = ""
    nodes: int | None = None
    """Nodes that an elastic training has now, else those of its spec; None where it leaves that to its runtime."""
    devices_per_node: int | None = None
    """GPUs and the like that the TrainJob asks for on each node; None where it leaves that to its runtime."""
    restarts: str = ""
    """How often all nodes have started again, by cause: `2 disruptions, 1 failure of 3`; empty if never."""
    owner: str = ""
    """What controls it, such as an Experiment of Katib; else who has made it, by its label or annotation."""
    created: str | None = None
    started: str | None = None
    ended: str | None = None
    is_suspended: bool = False
    """Whether it asks for that."""
    is_being_deleted: bool = False

    @classmethod
    def of(cls, job: Object) -> TrainJobRow:
        """Read a TrainJob; what another manager has written wrongly is left out."""
        spec, status = mapping_at(job, "spec"), mapping_at(job, "status")
        state = state_word(job)
        condition = _explanation(job, state)
        runtime, trainer = mapping_at(spec, "runtimeRef"), mapping_at(spec, "trainer")
        nodes = mapping_at(status, "scale").get("nodes") or trainer.get("numNodes")
        return cls(
            uid=uid_of(job),
            namespace=namespace_of(job),
            name=name_of(job),
            state=state,
            reason=str(condition.get("reason") or ""),
            lines=tuple(str(condition.get("message") or "").splitlines()),
            progress=TrainingProgress.of(status.get("trainerStatus")),
            steps=StepProgress.all_of(status),
            runtime_kind=str(runtime.get("kind") or CLUSTER_TRAINING_RUNTIMES.kind),
            runtime=str(runtime.get("name") or ""),
            nodes=nodes if isinstance(nodes, int) else None,
            devices_per_node=_devices(mapping_at(trainer, "resourcesPerNode")),
            restarts=str(Restarts.of_status(mapping_at(status, "restarts"))),
            owner=_owner(job),
            created=metadata_of(job).get("creationTimestamp"),
            started=status.get("startTime"),
            since=condition.get("lastTransitionTime"),
            ended=condition.get("lastTransitionTime") if state in ENDS else None,
            is_suspended=spec.get("suspend") is True,
            is_being_deleted=is_being_deleted(job),
        )

    @property
    def has_ended(self) -> bool:
        """Whether it is complete or has failed."""
        return self.state in ENDS

    @property
    def message(self) -> str:
        """The first line of the message; the others are further problems, or the end of a log."""
        return next(iter(self.lines), "")


def _explanation(job: Object, state: str) -> Object:
    """The condition of the state, else the one that says why there are no Jobs; empty without any."""
    for kind, status in ((state, "True"), (ConditionType.CREATED, "False")):
        condition = find_condition(job, kind)
        if condition is not None and condition.get("status") == status:
            return condition
    return {}


def _devices(resources: Object) -> int | None:
    amounts = {**mapping_at(resources, "limits"), **mapping_at(resources, "requests")}
    try:
        count = USUAL_DEVICES.devices_of({"requests": amounts}, {}, "").count
    except ValueError:  # an amount that no number of devices can be, of an object that no webhook has seen
        return None
    return count if count or any(map(USUAL_DEVICES.is_device, amounts)) else None


def _owner(job: Object) -> str:
    reference = controller_of(job) or next(iter(owner_references_of(job)), None)
    if reference is not None:
        return f"{reference.get('kind') or ''} {reference.get('name') or ''}"
    return str(labels_of(job).get(_CREATED_BY) or annotations_of(job).get(_CREATED_BY) or "")
