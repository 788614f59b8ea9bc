"""What to do next for a Job: a pure function of the Job, its pods and the time.

A reconcile carries out one step of the plan, looks again, and ends when there is no step left:

1. make or remove pods;
2. store the status, which takes note of pods that have ended;
3. release the pods of which the stored status has taken note.

Each step only relies on what is stored, so a crash between any two of them loses nothing and counts nothing twice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from trainer.devcluster.controllers.job.accounts import Accounts, settle
from trainer.devcluster.controllers.job.backoff import replacement_delay
from trainer.devcluster.controllers.job.pod_template import build_pod
from trainer.devcluster.controllers.job.scaling import scale
from trainer.devcluster.controllers.job.spec import is_complete_or_failed
from trainer.devcluster.controllers.job.status import build_status
from trainer.devcluster.controllers.job.verdict import FAILURE_TARGET, Verdict, reach_verdict, time_to_deadline
from trainer.kube.objects import is_being_deleted, is_condition_true

if TYPE_CHECKING:
    from trainer.devcluster.controllers.job.state import JobState
    from trainer.devcluster.controllers.options import ControllerOptions
    from trainer.kube.objects import Object


@dataclass(frozen=True, slots=True)
class JobPlan:
    """The steps still to do; an empty plan means that the Job is as it should be."""

    create: tuple[Object, ...] = ()
    """Pods to make."""
    delete: tuple[Object, ...] = ()
    """Pods to delete; they keep the tracking finalizer and count as failed."""
    withdraw: tuple[Object, ...] = ()
    """Pods to delete without counting them: the Job is suspended, scaled down, or a success without them."""
    status: Object | None = None
    """The status to store, when it differs from the stored one."""
    release: tuple[Object, ...] = ()
    """Pods whose tracking finalizer goes, once the status is stored."""
    requeue_after: float | None = None
    """Seconds until time alone changes the plan."""

    @property
    def changes_pods(self) -> bool:
        """Whether pods are made or removed."""
        return bool(self.create or self.delete or self.withdraw)


def plan_job(state: JobState, options: ControllerOptions) -> JobPlan:
    """Decide the next steps for a Job."""
    if is_being_deleted(state.job) or is_complete_or_failed(state.job):
        return JobPlan(release=state.tracked)
    accounts = settle(state)
    verdict = reach_verdict(state, accounts)
    if verdict is not None:
        return _ending(state, accounts, verdict)
    if state.spec.suspended:
        return _status_steps(state, accounts, None) if not state.active else JobPlan(withdraw=state.active)
    scaling = scale(state, accounts)
    if scaling.surplus:
        return JobPlan(withdraw=scaling.surplus)
    delay = replacement_delay(state, accounts, options) if scaling.missing else 0.0
    if scaling.missing and delay <= 0:
        return JobPlan(create=tuple(build_pod(state.job, index) for index in scaling.missing))
    waits = [wait for wait in (delay if delay > 0 else None, time_to_deadline(state)) if wait is not None]
    return replace(_status_steps(state, accounts, None), requeue_after=min(waits, default=None))


def _ending(state: JobState, accounts: Accounts, verdict: Verdict) -> JobPlan:
    if not state.active:
        return _status_steps(state, accounts, verdict)
    if verdict.condition == FAILURE_TARGET:
        return JobPlan(delete=state.active)
    # Pods that a success policy makes superfluous have not failed. Once the success is stored nobody counts them,
    # whatever crashes while they end.
    if is_condition_true(state.job, verdict.condition):
        return JobPlan(withdraw=state.active)
    return _status_steps(state, accounts, verdict)


def _status_steps(state: JobState, accounts: Accounts, verdict: Verdict | None) -> JobPlan:
    status = build_status(state, accounts, verdict)
    return JobPlan(status=status if status != state.status else None, release=accounts.release)
