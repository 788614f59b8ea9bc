"""Reasons of the events about TrainJobs that are no reasons of conditions."""

from __future__ import annotations

from enum import StrEnum


class EventReason(StrEnum):
    """Reasons of events without a condition; the change of a condition has the condition's reason."""

    LAST_LOG_LINES = "LastLogLines"
    """Warning: the training has failed; here are the last lines of the log of the container that failed first."""
    CHANGES_NOT_APPLIED = "ChangesNotApplied"
    """Warning: the Jobs exist, and the cluster has not accepted, or no longer accepts, all that the TrainJob asks for,
    such as another number of nodes of an elastic training. It is tried again."""
    TRAINER_STATUS_REJECTED = "TrainerStatusRejected"
    """Warning: a message about progress in the log has a value that breaks a rule, which the event names with the
    field; the value was dropped, and the rest of the message counts. What is no JSON object is dropped as a whole.
    Reported once for each pod and field of a message, by each manager that reads its log."""
    TRAINING_STALLED = "TrainingStalled"
    """Warning: the training runs, and has not made progress for as long as progress.stallTimeout of the configuration
    or the annotation trainer.kubeflow.org/trainer-status-stall-seconds allows. Reported once for each stall."""
    INVALID_ANNOTATION = "InvalidAnnotation"
    """Warning: an annotation about following the progress has a value that means nothing, and is ignored. Only where
    no webhook could refuse it, such as on a pod."""
