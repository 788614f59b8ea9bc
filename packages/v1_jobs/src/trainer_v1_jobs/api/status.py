"""The status that all kinds have."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from trainer.api.builtin_schemas import built_in
from trainer.api.model import ApiModel, Int32, JsonObject, Time, atomic_list

ConditionType: TypeAlias = Literal["Created", "Running", "Restarting", "Succeeded", "Suspended", "Failed", "Unmanaged"]
"""Conditions of a job. Unmanaged is none of the operator's: nobody works on the job, and the message says why."""


class JobCondition(ApiModel):
    """One aspect of a job's state."""

    type: ConditionType
    """Aspect of the state. Running and Restarting exclude each other."""
    status: Literal["True", "False", "Unknown"]
    """Whether the condition holds."""
    reason: Annotated[str, Field(max_length=1024)] | None = None
    """Why, as one word such as PyTorchJobCreated."""
    message: Annotated[str, Field(max_length=32768)] | None = None
    """Why, for people."""
    last_update_time: Time | None = None
    """When the condition was last written."""
    last_transition_time: Time | None = None
    """When the status last changed."""


class ReplicaStatus(ApiModel):
    """How the pods of one role are doing."""

    active: Int32 | None = None
    """Pods that run."""
    succeeded: Int32 | None = None
    """Pods that have ended well."""
    failed: Int32 | None = None
    """Pods that have failed."""
    label_selector: Annotated[JsonObject, Field(json_schema_extra=built_in("LabelSelector"))] | None = None
    """Selector of the pods, as the proposal of elastic PyTorchJobs has it."""
    selector: Annotated[str, Field(max_length=4096)] | None = None
    """Selector of the pods as text, for the subresource scale."""


class JobStatus(ApiModel):
    """How a job is doing; written by the system."""

    conditions: Annotated[list[JobCondition], Field(json_schema_extra=atomic_list(16))] | None = None
    """The aspects of its state, the latest last."""
    replica_statuses: Annotated[dict[str, ReplicaStatus], Field(json_schema_extra={"maxProperties": 8})] | None = None
    """The pods of each role."""
    start_time: Time | None = None
    """When the job was first taken up, or last resumed."""
    completion_time: Time | None = None
    """When the job ended."""
    last_reconcile_time: Time | None = None
    """When the operator last looked at a job that waits for its gang."""
