"""The status of an OptimizationJob (KEP-3562); state, counts and ended trials are ours."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import Field

from trainer.api.metadata import Condition
from trainer.api.model import ApiModel, Count, Int32, Time, atomic_list, list_map
from trainer.api.optimization import LONGEST_TEXT, MOST_PARAMETERS, MOST_TRIALS
from trainer_sweeps.api.spec import Name, Text

LONGEST_MESSAGE: Final = 512

_Value = Annotated[str, Field(min_length=1, max_length=LONGEST_TEXT)]


class ConditionType(StrEnum):
    """Conditions of an OptimizationJob."""

    CREATED = "Created"
    """Whether trials can be chosen and created."""
    SUSPENDED = "Suspended"
    """Whether it is suspended by spec.suspend. Absent from one that never was."""
    COMPLETE = "Complete"
    """True when all trials have ended; final."""
    FAILED = "Failed"
    """True when too many trials have failed, or all; final."""


class ConditionReason(StrEnum):
    """Reasons of conditions."""

    TRAIN_JOBS_CREATED = "TrainJobsCreated"
    """Condition Created is True."""
    ALGORITHM_CREATION_FAILED = "AlgorithmServiceCreationFailed"
    """Condition Created is False: the next trial cannot be chosen; the message says why. The name is the KEP's."""
    TRAIN_JOBS_CREATION_FAILED = "TrainJobsCreationFailed"
    """Condition Created is False: the API server has refused a trial, or its name is taken. It is tried again."""
    SUSPENDED = "Suspended"
    """Condition Suspended is True."""
    RESUMED = "Resumed"
    """Condition Suspended is False."""
    MAX_TRIALS_REACHED = "MaxTrialsReached"
    """Condition Complete is True."""
    MAX_FAILED_TRIALS_REACHED = "MaxFailedTrialsReached"
    """Condition Failed is True: more trials have failed than spec.maxFailedTrials allows."""
    NO_TRIAL_SUCCEEDED = "NoTrialSucceeded"
    """Condition Failed is True: all trials have ended, and none of them has a value."""


class State(StrEnum):
    """The state of an OptimizationJob in one word."""

    BLOCKED = "Blocked"
    """Trials cannot be chosen or created (condition Created is False)."""
    RUNNING = "Running"
    """Trials run, or are about to."""
    SUSPENDED = "Suspended"
    """It is suspended."""
    COMPLETE = "Complete"
    """All trials have ended."""
    FAILED = "Failed"
    """Too many trials have failed, or all."""


class TrialState(StrEnum):
    """The state of a trial in one word."""

    RUNNING = "Running"
    """It has not ended; it may wait, or be suspended with its sweep."""
    SUCCEEDED = "Succeeded"
    """It is complete and has a value."""
    FAILED = "Failed"
    """It has failed, or has reported no value."""
    PRUNED = "Pruned"
    """The sweep has stopped it as hopeless."""


class ParameterAssignment(ApiModel):
    """A parameter and its value."""

    name: Name
    """Name of the parameter."""
    value: _Value
    """Its value, as the program gets it."""


class Result(ApiModel):
    """The best trial so far."""

    train_job_name: Annotated[str, Field(min_length=1, max_length=63)]
    """Name of its TrainJob."""
    value: _Value | None = None
    """The value of its objective, digit by digit as it was reported."""
    parameters: Annotated[
        list[ParameterAssignment] | None, Field(json_schema_extra=list_map("name", MOST_PARAMETERS))
    ] = None
    """Its parameters."""


class TrialCounts(ApiModel):
    """How many trials are in which state."""

    running: Count = 0
    """Trials that have not ended."""
    succeeded: Count = 0
    """Trials that are complete and have a value."""
    failed: Count = 0
    """Trials that have failed, or have reported no value."""
    pruned: Count = 0
    """Trials that were stopped as hopeless."""


class EndedTrial(ApiModel):
    """A trial that has ended. It counts also when its TrainJob is deleted."""

    number: Annotated[Int32, Field(ge=1, le=MOST_TRIALS)]
    """Its number, from 1."""
    state: Literal[TrialState.SUCCEEDED, TrialState.FAILED, TrialState.PRUNED]
    """How it has ended."""
    value: _Value | None = None
    """The value of the objective; of a trial that was stopped, the last one."""
    step: Count | None = None
    """The last step that it has reported."""
    parameter_values: Annotated[list[Text], Field(json_schema_extra=atomic_list(MOST_PARAMETERS))]
    """The values of its parameters, in the order of spec.parameters."""
    message: Annotated[str, Field(max_length=LONGEST_MESSAGE)] | None = None
    """Why it has failed or was stopped."""


class OptimizationJobStatus(ApiModel):
    """What the sweep has reached."""

    state: Annotated[State, Field(strict=False)] | None = None
    """The state in one word."""
    conditions: Annotated[list[Condition] | None, Field(json_schema_extra=list_map("type", 100))] = None
    """The conditions."""
    progress_percentage: Annotated[Int32, Field(ge=0, le=100)] | None = None
    """Share of the trials that have ended, in percent."""
    trial_counts: TrialCounts | None = None
    """How many trials are in which state."""
    trials: Annotated[list[EndedTrial] | None, Field(json_schema_extra=atomic_list(MOST_TRIALS))] = None
    """The trials that have ended, by number."""
    result: Result | None = None
    """The best trial so far."""
    start_time: Time | None = None
    """When the first trial was created."""
    completion_time: Time | None = None
    """When the sweep ended."""
