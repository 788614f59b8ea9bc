"""Reasons of events about OptimizationJobs."""

from __future__ import annotations

from enum import StrEnum


class EventReason(StrEnum):
    """Reasons of events about OptimizationJobs, beside those of their conditions."""

    TRIAL_CREATED = "TrialCreated"
    """A trial was created; the message has its parameters."""
    TRIAL_SUCCEEDED = "TrialSucceeded"
    """A trial has ended with a value of the objective."""
    TRIAL_FAILED = "TrialFailed"
    """Warning: a trial has failed, or has ended without a value of the objective; the message says why."""
    TRIAL_PRUNED = "TrialPruned"
    """A trial was stopped as hopeless, or since its sweep has failed; the message says why."""
