"""The pause before a failed pod of a Job is replaced (Kubernetes documentation, "Pod backoff failure policy")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.devcluster.controllers.job.accounts import counts_as_failed
from trainer.devcluster.controllers.job.failure_policy import Action, match_failure_policy
from trainer.devcluster.controllers.job.pods import finished_at, has_succeeded

if TYPE_CHECKING:
    from trainer.devcluster.controllers.job.state import JobState
    from trainer.devcluster.controllers.options import ControllerOptions


def replacement_delay(state: JobState, options: ControllerOptions) -> float:
    """Seconds until the next pod may be made; zero or less when it may be made now.

    The pause doubles with every failure since the last success and starts when the last failed pod ended. It is derived
    from the failed pods that are still there, so a restart of the controller does not shorten it.
    """
    last_success = max((finished_at(pod) for pod in state.pods if has_succeeded(pod)), default=None)
    failures = [
        finished_at(pod)
        for pod in state.pods
        if counts_as_failed(state, pod) and match_failure_policy(state.job, pod).action is not Action.IGNORE
    ]
    recent = [moment for moment in failures if last_success is None or moment > last_success]
    if not recent:
        return 0.0
    # An exponent beyond 30 exceeds any cap and would overflow a float at 1024.
    pause = min(options.pod_backoff_base * 2.0 ** min(len(recent) - 1, 30), options.pod_backoff_cap)
    return pause - (state.now - max(recent)).total_seconds()
