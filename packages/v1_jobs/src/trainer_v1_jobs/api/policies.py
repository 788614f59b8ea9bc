"""What all kinds have: the run policy and the specs of their replicas."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field

from trainer.api.builtin_schemas import built_in
from trainer.api.corev1 import PodTemplate
from trainer.api.model import ApiModel, Count, Int32, Int64, JsonObject, Quantity, atomic_list

RestartPolicy: TypeAlias = Literal["Always", "OnFailure", "Never", "ExitCode"]
"""When pods of a replica are started again. ExitCode: after exit codes from 128 on, while 1 to 127 fail the job."""

CleanPodPolicy: TypeAlias = Literal["", "All", "Running", "None"]
"""Which pods are deleted when the job has finished."""

TRAINING_OPERATOR: Final = "kubeflow.org/training-operator"
"""The value of `managedBy` that is the Training Operator itself."""


class SchedulingPolicy(ApiModel):
    """Gang scheduling, which works only where the operator was started with --gang-scheduler-name."""

    min_available: Count | None = None
    """The fewest pods that start together. Defaults to all replicas."""
    queue: Annotated[str, Field(max_length=253)] | None = None
    """Queue of Volcano. Cannot be changed."""
    min_resources: dict[str, Quantity] | None = None
    """The resources that must be free before pods start."""
    priority_class: Annotated[str, Field(max_length=253)] | None = None
    """Priority class of the PodGroup."""
    schedule_timeout_seconds: Annotated[Int32, Field(ge=0)] | None = None
    """Seconds after which a gang gives up the places that it has found."""


class RunPolicy(ApiModel):
    """How a job runs and ends."""

    clean_pod_policy: CleanPodPolicy | None = None
    """Which pods are deleted when the job has finished. Defaults to None, which deletes none."""
    ttl_seconds_after_finished: Count | None = None
    """Seconds after which the finished job is deleted; it stays when absent."""
    active_deadline_seconds: Annotated[Int64, Field(ge=0)] | None = None
    """Seconds from status.startTime after which the job fails; no limit when absent."""
    backoff_limit: Count | None = None
    """How many restarts of containers fail the job; no limit when absent."""
    scheduling_policy: SchedulingPolicy | None = None
    """Gang scheduling."""
    suspend: bool | None = None
    """Whether the job has no pods. Defaults to false."""
    managed_by: Literal["kubeflow.org/training-operator", "kubeflow.org/mpi-operator", "kueue.x-k8s.io/multikueue"] | (
        None
    ) = None
    """Who manages the job. Defaults to the operator. Cannot be changed."""


class ReplicaSpec(ApiModel):
    """The pods of one role."""

    replicas: Count | None = None
    """How many there are. Defaults to 1."""
    template: PodTemplate
    """The pods."""
    restart_policy: RestartPolicy | None = None
    """When they are started again; that of the template is overwritten."""


ReplicaSpecs: TypeAlias = Annotated[dict[str, ReplicaSpec], Field(json_schema_extra={"maxProperties": 8})]
"""The roles of a job by their names, such as Master and Worker."""

Metrics: TypeAlias = Annotated[
    list[Annotated[JsonObject, Field(json_schema_extra=built_in("MetricSpec"))]],
    Field(json_schema_extra=atomic_list(32)),
]
"""Metrics of a HorizontalPodAutoscaler (autoscaling/v2)."""
