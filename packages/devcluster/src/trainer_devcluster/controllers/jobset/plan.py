"""What to do next for a JobSet: a pure function of the JobSet, its Jobs and the time.

The order of the decisions is that of the JobSet controller: a finished JobSet only loses its active Jobs; Jobs of an
earlier restart go; a failed Job comes before a successful one; then the Service, volume claims, missing Jobs, and
suspension.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime

from trainer.kube.objects import Object, is_being_deleted, is_condition_true, name_of
from trainer_devcluster.controllers.jobset.child_jobs import ChildJobs, ReplicatedJobCount
from trainer_devcluster.controllers.jobset.construction import (
    build_claims,
    build_job,
    build_service,
    has_dns_hostnames,
    is_suspended,
    resumed_job,
    suspended_job,
)
from trainer_devcluster.controllers.jobset.failure_policy import apply_failure_policy
from trainer_devcluster.controllers.jobset.names import job_name, replicas_of, replicated_job_of
from trainer_devcluster.controllers.jobset.status_draft import StatusDraft
from trainer_devcluster.controllers.options import ReconcileEvent, time_to_live
from trainer_devcluster.feature_gates import DEFAULT_FEATURE_GATES, FeatureGates

TERMINAL_CONDITIONS = ("Completed", "Failed")


@dataclass(frozen=True, slots=True)
class JobSetPlan:
    """The changes to make, in this order; the events follow the status that they tell of."""

    delete: tuple[Object, ...] = ()
    """Jobs to delete in the foreground, so that their names are free only when their pods are gone."""
    service: Object | None = None
    """The headless Service, to be made unless one of its name exists."""
    claims: tuple[Object, ...] = ()
    """PersistentVolumeClaims, each to be made unless one of its name exists."""
    create: tuple[Object, ...] = ()
    """Jobs to make."""
    resize: tuple[Object, ...] = ()
    """Jobs whose parallelism and completions have changed, and nothing else."""
    update: tuple[Object, ...] = ()
    """Jobs to suspend or resume, with their present size."""
    status: Object | None = None
    """The status to store, when it differs from the stored one."""
    events: tuple[ReconcileEvent, ...] = ()
    expired: bool = False
    """Whether the JobSet itself is to be deleted, its time to live being over."""
    requeue_after: float | None = None
    """Seconds until time alone changes the plan."""


@dataclass(frozen=True, slots=True)
class _Situation:
    """The input of a plan."""

    jobset: Object
    children: ChildJobs
    startup: Startup
    now: datetime


def plan_jobset(
    jobset: Object, jobs: Iterable[Object], now: datetime, gates: FeatureGates = DEFAULT_FEATURE_GATES
) -> JobSetPlan:
    """Decide the next steps for a JobSet and the Jobs that it controls.

    Args:
        jobset: the JobSet.
        jobs: its Jobs.
        now: the time.
        gates: whether Jobs follow a change of their size. Default: no, as in JobSet.
    """
    if is_being_deleted(jobset):
        return JobSetPlan()
    children = ChildJobs.of(jobset, jobs)
    replicated_jobs = jobset["spec"].get("replicatedJobs") or []
    counts = {entry["name"]: children.count(entry["name"]) for entry in replicated_jobs}
    draft = StatusDraft(jobset, now)
    if counts:
        # Descending by name, as the JobSet controller orders them.
        draft.status["replicatedJobsStatus"] = [asdict(counts[name]) for name in sorted(counts, reverse=True)]
    if gates.elastic_job_set:
        children = children.following(replicated_jobs)
    plan = _plan_jobs(_Situation(jobset, children, Startup(jobset, counts), now), draft)
    # That there were no restarts is not worth a write by itself.
    changed = draft.status != {"restarts": 0, **(jobset.get("status") or {})}
    return replace(plan, status=draft.status if changed else None, events=tuple(draft.events))


def _plan_jobs(situation: _Situation, draft: StatusDraft) -> JobSetPlan:
    jobset, children = situation.jobset, situation.children
    if any(is_condition_true(jobset, kind) for kind in TERMINAL_CONDITIONS):
        return _clean_up(situation)
    delete = _not_deleted(children.previous)
    if not is_suspended(jobset) and _all_running(jobset, draft):
        draft.set_false("RestartingJobSet", "JobsReady", "all jobs are ready")
    if children.failed:
        apply_failure_policy(draft, jobset, children.failed)
        return JobSetPlan(delete=delete)
    if _has_succeeded(jobset, children):
        message = "jobset completed successfully"
        draft.set_false("RestartingJobSet", "JobSetCompleted", message)
        draft.set_true("Completed", "AllJobsCompleted", message)
        draft.status["terminalState"] = "Completed"
        return JobSetPlan(delete=delete)
    update = _suspend(children, draft) if is_suspended(jobset) else _resume(children, situation.startup, draft)
    updated = {name_of(job) for job in update}
    return JobSetPlan(
        delete=delete,
        service=build_service(jobset) if has_dns_hostnames(jobset) else None,
        claims=build_claims(jobset),
        create=_missing_jobs(situation),
        resize=tuple(job for job in children.resized if name_of(job) not in updated),
        update=update,
    )


def _clean_up(situation: _Situation) -> JobSetPlan:
    remaining = time_to_live(situation.jobset, TERMINAL_CONDITIONS, situation.now)
    return JobSetPlan(
        delete=_not_deleted((*situation.children.previous, *situation.children.active)),
        expired=remaining is not None and remaining <= 0,
        requeue_after=remaining if remaining is not None and remaining > 0 else None,
    )


def _missing_jobs(situation: _Situation) -> tuple[Object, ...]:
    jobset, names = situation.jobset, situation.children.names
    strategy = (jobset["spec"].get("failurePolicy") or {}).get("restartStrategy")
    if strategy == "BlockingRecreate" and situation.children.previous:
        return ()
    # While suspended all Jobs are made, suspended as well; the order matters when they are resumed.
    due = situation.startup.independent() if is_suspended(jobset) else situation.startup.due()
    return tuple(
        build_job(jobset, replicated_job, index)
        for replicated_job in due
        for index in range(replicas_of(replicated_job))
        if job_name(jobset, replicated_job["name"], index) not in names
    )


def _suspend(children: ChildJobs, draft: StatusDraft) -> tuple[Object, ...]:
    message = "jobset is suspended"
    draft.set_false("RestartingJobSet", "JobSetSuspended", message)
    draft.set_true("Suspended", "SuspendedJobs", message)
    return tuple(suspended_job(job) for job in children.active if not job["spec"].get("suspend"))


def _resume(children: ChildJobs, startup: Startup, draft: StatusDraft) -> tuple[Object, ...]:
    startup.note_progress(draft)
    if startup.all_due:
        draft.set_false("Suspended", "ResumeJobs", "jobset is resumed")
    return tuple(
        resumed_job(job, replicated_job)
        for replicated_job in startup.due()
        for job in children.active_of(replicated_job["name"])
        if job["spec"].get("suspend")
    )


def _all_running(jobset: Object, draft: StatusDraft) -> bool:
    counts = draft.status.get("replicatedJobsStatus") or []
    wanted = sum(replicas_of(entry) for entry in jobset["spec"].get("replicatedJobs") or [])
    return bool(sum(count["ready"] + count["succeeded"] for count in counts) == wanted)


def _has_succeeded(jobset: Object, children: ChildJobs) -> bool:
    policy = jobset["spec"].get("successPolicy") or {}
    targets = policy.get("targetReplicatedJobs") or []
    replicated_jobs = jobset["spec"].get("replicatedJobs") or []
    wanted = sum(replicas_of(entry) for entry in replicated_jobs if not targets or entry["name"] in targets)
    succeeded = sum(not targets or replicated_job_of(job) in targets for job in children.successful)
    # Looked at once any Job has succeeded: targets without Jobs are met by then.
    return bool(children.successful) and succeeded >= (1 if policy.get("operator") == "Any" else wanted)


def _not_deleted(jobs: Iterable[Object]) -> tuple[Object, ...]:
    return tuple(sorted((job for job in jobs if not is_being_deleted(job)), key=name_of))


class Startup:
    """The order in which the replicated jobs of one JobSet start."""

    def __init__(self, jobset: Object, counts: Mapping[str, ReplicatedJobCount]) -> None:
        self._replicated_jobs: list[Object] = jobset["spec"].get("replicatedJobs") or []
        self._counts = counts
        self.in_order = (jobset["spec"].get("startupPolicy") or {}).get("startupPolicyOrder") == "InOrder"

    def independent(self) -> Iterator[Object]:
        """Replicated jobs whose dependencies are met, whatever the startup policy says."""
        return (entry for entry in self._replicated_jobs if self._dependencies_met(entry))

    def due(self) -> Iterator[Object]:
        """Replicated jobs that may start now: with InOrder only the first that has not started."""
        for replicated_job in self.independent():
            if not self.in_order:
                yield replicated_job
            elif not self._has_started(replicated_job):
                yield replicated_job
                return

    def note_progress(self, draft: StatusDraft) -> None:
        """Set the conditions of the startup policy InOrder; without it there are none."""
        if not self.in_order:
            return
        if all(self._has_started(replicated_job) for replicated_job in self._replicated_jobs):
            reason, message = "InOrderStartupPolicyCompleted", "in order startup policy has completed"
            draft.set_true("StartupPolicyCompleted", reason, message)
        else:
            reason, message = "InOrderStartupPolicyInProgress", "in order startup policy is in progress"
            draft.set_true("StartupPolicyInProgress", reason, message)

    @property
    def all_due(self) -> bool:
        """Whether no replicated job is held back by the startup policy."""
        return not self.in_order or all(self._has_started(entry) for entry in self._replicated_jobs)

    def _has_started(self, replicated_job: Object) -> bool:
        return self._counts[replicated_job["name"]].started == replicas_of(replicated_job)

    def _dependencies_met(self, replicated_job: Object) -> bool:
        replicas = {entry["name"]: replicas_of(entry) for entry in self._replicated_jobs}
        for dependency in replicated_job.get("dependsOn") or []:
            count = self._counts[dependency["name"]]
            reached = count.succeeded if dependency["status"] == "Complete" else count.started
            if reached != replicas[dependency["name"]]:
                return False
        return True
