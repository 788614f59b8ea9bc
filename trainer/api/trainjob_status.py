"""Status of a TrainJob (KEP-2170, "State Transition") and the progress of its training (KEP-2779)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field

from trainer.api.metadata import Condition
from trainer.api.model import ApiModel, Count, Int32, Int64, Time, list_map


class ConditionType(StrEnum):
    """Conditions of a TrainJob that the controller sets itself; plugins may add others (KEP-2170, "State Transition").

    Pending, Stopping, Restarting and Stalled are not in the KEP. They keep what an event tells for an hour, and are
    only there once they have been true.
    """

    CREATED = "Created"
    """Whether the Jobs of the TrainJob could be built, and the cluster has taken them."""
    SUSPENDED = "Suspended"
    """Whether it is suspended, by spec.suspend. Absent from a TrainJob that never was."""
    PENDING = "Pending"
    """Whether pods cannot be made or started. The reason is the first of those of the pods and the events about them
    (Unschedulable, ImagePullBackOff, FailedMount, FailedCreate, ProvisioningFailed, NoScheduler ...); the message has a
    line for each, with the field of the TrainJob or runtime that asks for it. Absent if pods never had to wait."""
    STOPPING = "Stopping"
    """Whether pods of a training that is suspended, fails or restarts are still there, or may be, on a node that is
    lost; the message says which, and what has happened to the first one. Absent if pods have always gone at once."""
    RESTARTING = "Restarting"
    """Whether pods are made again after a failure. Absent if none has failed."""
    STALLED = "Stalled"
    """Whether the training runs and makes no progress; the message says since when, and how far it was. Written with
    the progress, by the field manager trainer-progress. Absent from a training that has never stalled."""
    COMPLETE = "Complete"
    """True when the training has ended well; final. Reason and message are those of the JobSet, such as
    AllJobsCompleted."""
    FAILED = "Failed"
    """True when the training has ended badly; final. The first line of the message is the failure, with the node that
    failed first and the error that its program has written; then follow its container and exit code, what the JobSet
    says, and the last lines of the log. The reason is that of the JobSet, such as FailedJobs or ReachedMaxRestarts."""


class ConditionReason(StrEnum):
    """Reasons that we set ourselves; Complete and Failed otherwise carry the reason of the child Jobs."""

    SUSPENDED = "Suspended"
    """Condition Suspended is True: the field spec.suspend says so."""
    RESUMED = "Resumed"
    """Condition Suspended is False: the TrainJob goes on."""
    JOBS_CREATION_SUCCEEDED = "JobsCreationSucceeded"
    """Condition Created is True. Where the message goes on, the cluster has not taken a later change."""
    JOBS_BUILD_FAILED = "JobsBuildFailed"
    """Condition Created is False: the objects could not be made from TrainJob and runtime. The runtime is missing, a
    field is wrong, or a plugin has failed; the message says which."""
    JOBS_CREATION_FAILED = "JobsCreationFailed"
    """Condition Created is False: the API server has refused an object (quota, policy, a name that is taken, a missing
    right or kind). The message is its answer; it is tried again."""
    DEADLINE_EXCEEDED = "DeadlineExceeded"
    """Condition Failed is True: the training has taken longer than spec.activeDeadlineSeconds."""
    NO_SCHEDULER = "NoScheduler"
    """Condition Pending is True: no scheduler of the name in spec.schedulerName of the pods has looked at them for half
    a minute."""
    NO_POD_GROUP = "NoPodGroup"
    """Condition Pending is True: the pods are members of a PodGroup that does not exist."""
    GANG_INCOMPLETE = "GangIncomplete"
    """Condition Pending is True: fewer pods exist than the gang needs at the same time."""
    JOB_SET_SUSPENDED = "JobSetSuspended"
    """Condition Pending is True: somebody else has suspended the JobSet, such as Kueue as its queue, or an
    administrator."""
    ENDED_AND_HELD = "EndedAndHeld"
    """Condition Pending is True: the container that trains has ended in all pods of a Job, and another container, such
    as the proxy of a service mesh, keeps them, so that the Job does not end. The message names both."""
    NO_POD_WAITS = "NoPodWaits"
    """Condition Pending is False: nothing keeps a pod from starting any more. The message still says what did."""
    STOPPING_PODS = "StoppingPods"
    """Condition Stopping is True: pods were deleted since one has failed or was taken away, and have not ended yet.
    They have their grace period for that; those of a node that does not answer stay."""
    SUSPENDING_PODS = "SuspendingPods"
    """Condition Stopping is True: the training is suspended, and has pods that have not ended yet."""
    PODS_GONE = "PodsGone"
    """Condition Stopping is False: the pods have ended, or their node is back. The message describes the last stop."""
    RESTARTING_JOB_SET = "RestartingJobSet"
    """Condition Restarting is True: the failure policy of the runtime starts all Jobs again."""
    RESTARTING_PODS = "RestartingPods"
    """Condition Restarting is True: pods have failed and are made again, or their containers are started again."""
    RESTART_ENDED = "RestartEnded"
    """Condition Restarting is False: pods are ready again, or the training has ended. The message describes the
    last restart."""
    NO_PROGRESS = "NoProgress"
    """Condition Stalled is True: there has been no progress for longer than progress.stallTimeout of the configuration,
    or the annotation trainer.kubeflow.org/trainer-status-stall-seconds, allows."""
    STALL_ENDED = "StallEnded"
    """Condition Stalled is False: the training makes progress again, was restarted or suspended, or has ended. The
    message describes the last stall."""


class State(StrEnum):
    """The state of a TrainJob in one word; it has none before a controller has looked at it."""

    BLOCKED = "Blocked"
    """It cannot become Jobs as things are (condition Created is False): somebody has to do something, such as to make
    the runtime. It goes on by itself then, so this is no end."""
    CREATED = "Created"
    """Its Jobs exist; nothing is known to keep their pods from starting."""
    SUSPENDED = "Suspended"
    """It has no pods until it is resumed."""
    PENDING = "Pending"
    """A pod cannot be made or started: a quota or policy refuses it, no node takes it, its image cannot be pulled, a
    Secret is missing, and the like."""
    RUNNING = "Running"
    """All pods of at least one Job are ready, or have been."""
    STALLED = "Stalled"
    """It is running, and makes no progress (condition Stalled is True): it may hang."""
    STOPPING = "Stopping"
    """It is suspended, fails or restarts, and has pods that have not ended yet; or their node is lost (condition
    Stopping is True)."""
    RESTARTING = "Restarting"
    """Pods are made again after a failure."""
    COMPLETE = "Complete"
    """It ended well."""
    FAILED = "Failed"
    """It ended, but not well."""


class JobStatus(ApiModel):
    """How the Jobs of one replicated Job are doing."""

    name: str
    """Name of the replicated Job."""
    ready: Count
    """Jobs of which all pods are ready or have completed."""
    succeeded: Count
    """Jobs that have completed."""
    failed: Count
    """Jobs that have failed."""
    active: Count
    """Jobs with at least one pod that is pending or running and not being deleted."""
    suspended: Count
    """Jobs that are suspended."""


LONGEST_CHECKPOINT_PATH: Final = 256
"""Most characters of the path of a checkpoint."""


class Checkpoint(ApiModel):
    """A complete checkpoint, from which the training can go on."""

    step: Annotated[Int32, Field(ge=0)]
    """Steps that were done when it was saved."""
    time: Time
    """When it was complete."""
    path: Annotated[str, Field(max_length=LONGEST_CHECKPOINT_PATH)] | None = None
    """Where it is in the directory TRAINER_CHECKPOINT_DIR of the training, such as step-1200."""


class TrainerStatus(ApiModel):
    """What the training tells about its progress; everything but the time is optional."""

    progress_percentage: Annotated[Int32, Field(ge=0, le=100)] | None = None
    """How much of the training is done, in percent."""
    estimated_remaining_seconds: Annotated[Int64, Field(ge=0)] | None = None
    """Estimated seconds until the training ends."""
    estimated_remaining_time_summary: str | None = None
    """The estimated remaining time for people, such as 2 hours; its format may change."""
    current_step: Int32 | None = None
    """Steps done so far."""
    total_steps: Int32 | None = None
    """Steps of the whole training."""
    current_epoch: Int32 | None = None
    """Epochs done so far."""
    total_epochs: Int32 | None = None
    """Epochs of the whole training."""
    train_metrics: Annotated[dict[str, str], Field(json_schema_extra={"x-kubernetes-map-type": "atomic"})] | None = None
    """Metrics on the training data: the number as a string, by a name that the training chose."""
    eval_metrics: Annotated[dict[str, str], Field(json_schema_extra={"x-kubernetes-map-type": "atomic"})] | None = None
    """Metrics on the evaluation data: the number as a string, by a name that the training chose."""
    checkpoint: Checkpoint | None = None
    """The last complete checkpoint. It outlives restarts of the training, unlike all that is above it."""
    last_updated_time: Time
    """When this was measured; without a report about the progress, when the checkpoint was complete."""


class StepState(StrEnum):
    """The state of a step beside the training in one word."""

    RUNNING = "Running"
    """Its container runs, or is started again after a failure."""
    COMPLETE = "Complete"
    """Its container has ended well."""
    FAILED = "Failed"
    """Its container has ended badly; its Job may make another pod for it."""


STEP_FIELDS: Final = {
    "dataset-initializer": "dataInitializerStatus",
    "model-initializer": "modelInitializerStatus",
    "model-exporter": "exporterStatus",
}
"""The fields of the status that show the steps beside the training, by the names of their containers (KEP-2170)."""


class StepStatus(ApiModel):
    """How an initializer or the exporter is doing; everything but the state is what it tells itself."""

    state: Annotated[StepState, Field(strict=False)]
    """Running, Complete or Failed, by its container."""
    progress_percentage: Annotated[Int32, Field(ge=0, le=100)] | None = None
    """How much of the step is done, in percent; absent once it is complete."""
    estimated_remaining_seconds: Annotated[Int64, Field(ge=0)] | None = None
    """Estimated seconds until the step ends; absent once it has ended."""
    estimated_remaining_time_summary: str | None = None
    """The estimated remaining time for people, such as 2 hours; its format may change."""
    last_updated_time: Time | None = None
    """When this was measured; absent while the step has reported nothing."""


class NodeScale(ApiModel):
    """How many nodes an elastic training has and may have: the scale subresource, and the bounds of numNodes."""

    nodes: Annotated[Int32, Field(ge=0)]
    """Nodes that its Jobs are made for at this moment."""
    min_nodes: Annotated[Int32, Field(ge=1)]
    """The fewest nodes that spec.trainer.numNodes may ask for."""
    max_nodes: Annotated[Int32, Field(ge=1)]
    """The most nodes that spec.trainer.numNodes may ask for."""
    selector: Annotated[str, Field(max_length=512)]
    """Labels of the pods of the nodes, as a selector for autoscalers."""


class RestartCounts(ApiModel):
    """How often all nodes have started again, by cause."""

    disruptions: Count
    """Restarts that maxRestarts does not count: with our runtimes after evictions, preemptions and the like."""
    failures: Count
    """Restarts after failures."""
    max_restarts: Count
    """How many of the latter are allowed."""


def _known_state(state: Any) -> Any:
    """None for a state that a later version has written: this one finds out its own."""
    return None if isinstance(state, str) and state not in set(State) else state


class TrainJobStatus(ApiModel):
    """How a TrainJob is doing."""

    conditions: Annotated[list[Condition], Field(json_schema_extra=list_map("type", 32))] | None = None
    """Created, Suspended, Pending, Stopping, Restarting, Stalled, Complete and Failed, and what plugins add."""
    jobs_status: Annotated[list[JobStatus], Field(json_schema_extra=list_map("name", 100))] | None = None
    """How the child Jobs are doing."""
    state: Annotated[State | None, Field(strict=False), BeforeValidator(_known_state)] = None
    """The state in one word: Blocked (its Jobs cannot be made until somebody does something, as condition Created
    says), Created, Suspended, Pending (a pod cannot start), Running, Stalled (no progress), Stopping (pods of a
    training that is suspended, fails or restarts are still there), Restarting (after a failure), Complete or Failed.
    Absent before a controller has looked at the TrainJob."""
    start_time: Time | None = None
    """When the Jobs were first allowed to run; absent while the TrainJob has been suspended since it was created."""
    observed_generation: Annotated[Int64, Field(ge=0)] | None = None
    """The metadata.generation that this status was derived from."""
    scale: NodeScale | None = None
    """How many nodes an elastic training has and may have; absent for every other training, whose number is fixed."""
    restarts: RestartCounts | None = None
    """How often the JobSet has started all nodes again; absent while it never has, as when it was made anew."""
    runtime_digest: Annotated[str, Field(max_length=64)] | None = None
    """SHA-256 of the kind, name and spec of the runtime that the Jobs were built on. The snapshot of the runtime is
    used only when it has this digest."""
    trainer_status: TrainerStatus | None = None
    """Progress and metrics of the training; absent until the training reports some."""
    data_initializer_status: StepStatus | None = None
    """How the container dataset-initializer is doing; absent until it runs."""
    model_initializer_status: StepStatus | None = None
    """How the container model-initializer is doing; absent until it runs."""
    exporter_status: StepStatus | None = None
    """How the container model-exporter is doing; absent until it runs."""
