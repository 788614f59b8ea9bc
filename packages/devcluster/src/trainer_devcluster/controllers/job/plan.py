"""What to do next for a Job: a pure function of the Job, its pods and the time.

A reconcile carries out one step of the plan, plans again, and ends when there is no step left:

1. make or remove pods;
2. store the status, which takes note of pods that have ended;
3. release the pods of which the stored status has taken note.

Each step only relies on what is stored, so a crash between any two of them loses nothing and counts nothing twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice

from trainer.kube.clock import parse_timestamp
from trainer.kube.objects import Object, has_finished, is_being_deleted, is_condition_true, metadata_of
from trainer_devcluster.controllers.job.accounts import Accounts, settle
from trainer_devcluster.controllers.job.pod_failure_policy import counts_as_failed, is_counted, is_out_of_range
from trainer_devcluster.controllers.job.pods import (
    completion_index,
    finished_at,
    has_succeeded,
    is_ready,
    is_terminating,
    is_tracked,
    phase_of,
)
from trainer_devcluster.controllers.job.spec import JobObservation, JobSpec, is_complete_or_failed
from trainer_devcluster.controllers.job.status import build_status
from trainer_devcluster.controllers.job.verdict import (
    BACKOFF_LIMIT,
    FAILURE_TARGET,
    JobEnd,
    reach_verdict,
    time_to_deadline,
)
from trainer_devcluster.controllers.options import ControllerOptions

MAX_PODS_PER_ROUND = 500
"""Most pods made or removed before the status is looked at again, as in Kubernetes."""


@dataclass(frozen=True, slots=True)
class Scaling:
    """The difference between the pods that a Job has and those that it wants; never both at once."""

    missing: tuple[int | None, ...] = ()
    """One entry per pod to make: its completion index, or None for a NonIndexed Job."""
    surplus: tuple[Object, ...] = ()


def scale(state: JobObservation, accounts: Accounts) -> Scaling:
    """Compare the active pods with parallelism, completions and, for Indexed Jobs, the indexes still to do."""
    spec, active = state.spec, sorted(state.active, key=_deletion_order)
    wanted = _wanted(spec, len(active), accounts)
    surplus = _surplus(spec, active, accounts, len(active) - wanted)
    if surplus:
        return Scaling(surplus=tuple(surplus[:MAX_PODS_PER_ROUND]))
    # A terminating pod keeps its place only when the Job waits for it to have failed.
    leaving = [pod for pod in state.pods if spec.replace_only_failed and is_terminating(pod)]
    count = min(wanted - len(active) - len(leaving), MAX_PODS_PER_ROUND)
    if count <= 0:
        return Scaling()
    if not spec.indexed:
        return Scaling(missing=(None,) * count)
    worked_on = {completion_index(pod) for pod in (*active, *leaving)}
    taken = accounts.completed_indexes | worked_on
    pending = (index for index in range(spec.completions or 0) if index not in taken)
    return Scaling(missing=tuple(islice(pending, count)))


def _wanted(spec: JobSpec, active: int, accounts: Accounts) -> int:
    if spec.completions is None:
        # A work queue: after the first success nothing new is started, and what runs may finish.
        return active if accounts.total_succeeded > 0 else spec.parallelism
    return max(min(spec.parallelism, spec.completions - accounts.total_succeeded), 0)


def _surplus(spec: JobSpec, active: Sequence[Object], accounts: Accounts, excess: int) -> list[Object]:
    misplaced = list(_misplaced(spec, active, accounts)) if spec.indexed else []
    others = [pod for pod in active if pod not in misplaced]
    return misplaced + others[: max(excess - len(misplaced), 0)]


def _misplaced(spec: JobSpec, active: Sequence[Object], accounts: Accounts) -> Iterator[Object]:
    """Pods whose index is out of range (highest first), done, or worked on by a pod that is further along."""
    taken = set(accounts.completed_indexes)
    yield from sorted((pod for pod in active if not spec.has_index(completion_index(pod))), key=_index, reverse=True)
    for pod in reversed(active):
        index = completion_index(pod)
        if index in taken:
            yield pod
        elif index is not None and spec.has_index(index):
            taken.add(index)


def _index(pod: Object) -> int:
    index = completion_index(pod)
    return -1 if index is None else index


def _deletion_order(pod: Object) -> tuple[bool, bool, bool, float]:
    """Sort key: what is lost least comes first (unscheduled, not running, not ready, youngest)."""
    created = parse_timestamp(metadata_of(pod)["creationTimestamp"]).timestamp()
    return bool(pod["spec"].get("nodeName")), phase_of(pod) == "Running", is_ready(pod), -created


@dataclass(frozen=True, slots=True)
class JobPlan:
    """The steps still to do; an empty plan means that the Job is as it should be."""

    create: tuple[int | None, ...] = ()
    """Completion indexes of the pods to make; None for those of a NonIndexed Job."""
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


def plan_job(state: JobObservation, options: ControllerOptions) -> JobPlan:
    """Decide the next steps for a Job."""
    if is_being_deleted(state.job) or is_complete_or_failed(state.job):
        return JobPlan(release=state.tracked)
    accounts = settle(state)
    verdict = reach_verdict(state, accounts)
    if verdict is not None:
        pause = gathering_delay(state, verdict, options)
        return JobPlan(requeue_after=pause) if pause > 0 else _ending(state, accounts, verdict)
    if state.spec.suspended:
        return _status_steps(state, accounts, None) if not state.active else JobPlan(withdraw=state.active)
    scaling = scale(state, accounts)
    if scaling.surplus:
        return JobPlan(withdraw=scaling.surplus)
    delay = replacement_delay(state, accounts, options) if scaling.missing else 0.0
    if scaling.missing and delay <= 0:
        return JobPlan(create=tuple(scaling.missing))
    waits = [wait for wait in (delay or None, time_to_deadline(state)) if wait is not None]
    return replace(_status_steps(state, accounts, None), requeue_after=min(waits, default=None))


def gathering_delay(state: JobObservation, verdict: JobEnd, options: ControllerOptions) -> float:
    """Seconds until it is decided that too many pods have failed; zero or less when it is decided now.

    Pods of one training fail at the same time. When a rule matches one of them, that is the reason why the Job fails,
    although another one may have ended a moment earlier.
    """
    if verdict != BACKOFF_LIMIT or "podFailurePolicy" not in state.job["spec"]:
        return 0.0
    ends = [finished_at(pod) for pod in state.tracked if phase_of(pod) == "Failed"]
    if not ends or is_condition_true(state.job, FAILURE_TARGET) or all(has_finished(pod) for pod in state.pods):
        return 0.0
    # Times of pods are cut to whole seconds, so the last one may have ended up to a second later.
    return options.pod_batch + 1 - (state.now - max(ends)).total_seconds()


def _ending(state: JobObservation, accounts: Accounts, verdict: JobEnd) -> JobPlan:
    if not state.active or not is_condition_true(state.job, verdict.condition):
        # Stored before any pod goes, for pods that go look as if they had failed: that must neither be taken for the
        # reason of a failure nor count against a success, whatever crashes meanwhile.
        return _status_steps(state, accounts, verdict)
    if verdict.condition == FAILURE_TARGET:
        return JobPlan(delete=state.active)
    return JobPlan(withdraw=state.active)


def _status_steps(state: JobObservation, accounts: Accounts, verdict: JobEnd | None) -> JobPlan:
    status = build_status(state, accounts, verdict)
    return JobPlan(status=status if status != state.status else None, release=accounts.release)


def replacement_delay(state: JobObservation, accounts: Accounts, options: ControllerOptions) -> float:
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
        elif has_finished(pod) and not is_out_of_range(state, pod) and not _was_withdrawn(pod):
            ignored.append(moment)
    if not accounts.total_failed:
        counted = []
    if not counted and not ignored:
        return 0.0
    count = min(len(counted), accounts.total_failed) + len(ignored)
    return _pause(count, options) - (state.now - max(counted + ignored)).total_seconds()


def _was_withdrawn(pod: Object) -> bool:
    return is_being_deleted(pod) and not is_tracked(pod)


def _pause(failures: int, options: ControllerOptions) -> float:
    # An exponent beyond 30 exceeds any cap and would overflow a float at 1024.
    doublings: float = 2.0 ** min(failures - 1, 30)
    return min(options.pod_backoff_base * doublings, options.pod_backoff_cap)
