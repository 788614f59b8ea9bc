"""The pause before a failed pod of a Job is replaced (Kubernetes documentation, "Pod backoff failure policy")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.devcluster.controllers.job.accounts import counts_as_failed, is_counted
from trainer.devcluster.controllers.job.pods import finished_at, has_succeeded

if TYPE_CHECKING:
    from trainer.devcluster.controllers.job.accounts import Accounts
    from trainer.devcluster.controllers.job.state import JobState
    from trainer.devcluster.controllers.options import ControllerOptions


def replacement_delay(state: JobState, accounts: Accounts, options: ControllerOptions) -> float:
    """Seconds until the next pod may be made; zero or less when it may be made now.

    The pause doubles with every failure since the last success and starts when the last failed pod ended. It is derived
    from the failed pods that are still there, so a restart of the controller does not shorten it.

    Args:
        state: the Job.
        accounts: how its pods ended. Pods that leave because the Job was suspended or scaled down look like failed ones
            while they go; that they were not counted tells them apart.
        options: how long the pauses are.
    """
    last_success = max((finished_at(pod) for pod in state.pods if has_succeeded(pod)), default=None)
    failures = [finished_at(pod) for pod in state.pods if counts_as_failed(state, pod) and is_counted(state, pod)]
    recent = [moment for moment in failures if last_success is None or moment > last_success]
    count = min(len(recent), accounts.total_failed)
    if count == 0:
        return 0.0
    # An exponent beyond 30 exceeds any cap and would overflow a float at 1024.
    pause = min(options.pod_backoff_base * 2.0 ** min(count - 1, 30), options.pod_backoff_cap)
    return pause - (state.now - max(recent)).total_seconds()
