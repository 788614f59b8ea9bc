"""What to do next for a Job: a pure function of the Job, its pods and the time.

A reconcile carries out one step of the plan, plans again, and ends when there is no step left:

1. make or remove pods;
2. store the status, which takes note of pods that have ended;
3. release the pods of which the stored status has taken note.

Each step only relies on what is stored, so a crash between any two of them loses nothing and counts nothing twice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from trainer.kube.objects import is_being_deleted, is_condition_true
from trainer_devcluster.controllers.job.accounts import Accounts, settle
from trainer_devcluster.controllers.job.backoff import index_delay, replacement_delay
from trainer_devcluster.controllers.job.pod_template import NewPod
from trainer_devcluster.controllers.job.scaling import scale
from trainer_devcluster.controllers.job.spec import is_complete_or_failed
from trainer_devcluster.controllers.job.status import build_status
from trainer_devcluster.controllers.job.verdict import FAILURE_TARGET, Verdict, reach_verdict, time_to_deadline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainer.kube.objects import Object
    from trainer_devcluster.controllers.job.state import JobState
    from trainer_devcluster.controllers.options import ControllerOptions


@dataclass(frozen=True, slots=True)
class JobPlan:
    """The steps still to do; an empty plan means that the Job is as it should be."""

    create: tuple[NewPod, ...] = ()
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
        return _ending(state, settle(state, ending=True), verdict)
    if state.spec.suspended:
        return _status_steps(state, accounts, None) if not state.active else JobPlan(withdraw=state.active)
    scaling = scale(state, accounts)
    if scaling.surplus:
        return JobPlan(withdraw=scaling.surplus)
    due, delay = _due(state, accounts, scaling.missing, options)
    if due:
        awaiting = accounts.index_failures.awaiting
        return JobPlan(create=tuple(NewPod(index, awaiting.get(index or 0)) for index in due))
    waits = [wait for wait in (delay, time_to_deadline(state)) if wait is not None]
    return replace(_status_steps(state, accounts, None), requeue_after=min(waits, default=None))


def _due(
    state: JobState, accounts: Accounts, missing: Sequence[int | None], options: ControllerOptions
) -> tuple[Sequence[int | None], float | None]:
    """Those of the missing pods that may be made now, or else the seconds until the first may."""
    if not missing:
        return (), None
    if state.spec.backoff_limit_per_index is None:
        delay = replacement_delay(state, accounts, options)
        return ((), delay) if delay > 0 else (missing, None)
    delays = {index: index_delay(state, accounts, index, options) for index in missing if index is not None}
    due = [index for index, delay in delays.items() if delay <= 0]
    return (due, None) if due else ((), min(delays.values()))


def _ending(state: JobState, accounts: Accounts, verdict: Verdict) -> JobPlan:
    if not state.active or not is_condition_true(state.job, verdict.condition):
        # Stored before any pod goes, for pods that go look as if they had failed: that must neither be taken for the
        # reason of a failure or for the failure of an index, nor count against a success, whatever crashes meanwhile.
        return _status_steps(state, accounts, verdict)
    if verdict.condition == FAILURE_TARGET:
        return JobPlan(delete=state.active)
    return JobPlan(withdraw=state.active)


def _status_steps(state: JobState, accounts: Accounts, verdict: Verdict | None) -> JobPlan:
    status = build_status(state, accounts, verdict)
    return JobPlan(status=status if status != state.status else None, release=accounts.release)
