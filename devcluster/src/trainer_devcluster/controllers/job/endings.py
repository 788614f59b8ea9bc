"""What the end of a pod is to its Job: whether it is a failure, and whether that failure counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.kube.objects import is_being_deleted, is_condition_true
from trainer_devcluster.controllers.job.failure_policy import Action, match_failure_policy
from trainer_devcluster.controllers.job.pods import completion_index, phase_of

if TYPE_CHECKING:
    from trainer.kube.objects import Object
    from trainer_devcluster.controllers.job.state import JobState


def counts_as_failed(state: JobState, pod: Object) -> bool:
    """Whether the Job takes the pod for failed, which may be before its containers have stopped."""
    if phase_of(pod) in ("Succeeded", "Failed"):
        return phase_of(pod) == "Failed"
    waits_for_failure = state.spec.replace_only_failed and not is_condition_true(state.job, "FailureTarget")
    return is_being_deleted(pod) and not waits_for_failure


def is_counted(state: JobState, pod: Object) -> bool:
    """Whether a failed pod counts: not where the Job was scaled down since, nor if its failure policy ignores it."""
    return not is_out_of_range(state, pod) and match_failure_policy(state.job, pod).action is not Action.IGNORE


def is_out_of_range(state: JobState, pod: Object) -> bool:
    """Whether the Job has no such index, or not any more."""
    return state.spec.indexed and not state.spec.has_index(completion_index(pod))
