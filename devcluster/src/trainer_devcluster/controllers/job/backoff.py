"""The pause before a failed pod of a Job is replaced (Kubernetes documentation, "Pod backoff failure policy")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.kube.objects import is_being_deleted
from trainer_devcluster.controllers.job.endings import counts_as_failed, is_counted, is_out_of_range
from trainer_devcluster.controllers.job.per_index import failures_in_a_row
from trainer_devcluster.controllers.job.pods import finished_at, has_succeeded, is_finished, is_tracked

if TYPE_CHECKING:
    from datetime import datetime

    from trainer.kube.objects import Object
    from trainer_devcluster.controllers.job.accounts import Accounts
    from trainer_devcluster.controllers.job.state import JobState
    from trainer_devcluster.controllers.options import ControllerOptions


def replacement_delay(state: JobState, accounts: Accounts, options: ControllerOptions) -> float:
    """Seconds until the next pod may be made; zero or less when it may be made now.

    The pause doubles with every failure since the last success and starts when the last failed pod ended; failures that
    a failure policy ignores count here as well. It is derived from the failed pods that are still there, so a restart
    of the controller does not shorten it.

    Args:
        state: the Job.
        accounts: how its pods ended. Pods that leave because the Job was suspended or scaled down look like failed ones
            while they go; that they were not counted tells them apart.
        options: how long the pauses are.
    """
    last_success = max((finished_at(pod) for pod in state.pods if has_succeeded(pod)), default=None)
    counted: list[datetime] = []
    ignored: list[datetime] = []
    for pod in state.pods:
        moment = finished_at(pod)
        if not counts_as_failed(state, pod) or (last_success is not None and moment <= last_success):
            continue
        if is_counted(state, pod):
            counted.append(moment)
        elif is_finished(pod) and not is_out_of_range(state, pod) and not _was_withdrawn(pod):
            ignored.append(moment)
    if not accounts.total_failed:
        counted = []
    if not counted and not ignored:
        return 0.0
    count = min(len(counted), accounts.total_failed) + len(ignored)
    return _pause(count, options) - (state.now - max(counted + ignored)).total_seconds()


def index_delay(state: JobState, accounts: Accounts, index: int, options: ControllerOptions) -> float:
    """The same for one index of a Job with backoffLimitPerIndex, whose failures in a row stand on its last pod."""
    pod = accounts.index_failures.awaiting.get(index)
    if pod is None:
        return 0.0
    return _pause(failures_in_a_row(pod), options) - (state.now - finished_at(pod)).total_seconds()


def _was_withdrawn(pod: Object) -> bool:
    return is_being_deleted(pod) and not is_tracked(pod)


def _pause(failures: int, options: ControllerOptions) -> float:
    # An exponent beyond 30 exceeds any cap and would overflow a float at 1024.
    doublings: float = 2.0 ** min(failures - 1, 30)
    return min(options.pod_backoff_base * doublings, options.pod_backoff_cap)
