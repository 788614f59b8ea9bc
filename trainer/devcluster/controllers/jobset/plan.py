"""What to do next for a JobSet: a pure function of the JobSet, its Jobs and the time.

The order of the decisions is that of the JobSet controller: a finished JobSet only loses its active Jobs; Jobs of an
earlier restart go; a failed Job comes before a successful one; then the Service, volume claims, missing Jobs, and
suspension.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from trainer.devcluster.controllers.expiry import time_to_live
from trainer.devcluster.controllers.jobset.child_jobs import ChildJobs
from trainer.devcluster.controllers.jobset.claims import build_claims
from trainer.devcluster.controllers.jobset.construction import (
    build_job,
    build_service,
    has_dns_hostnames,
    is_suspended,
    resumed_job,
    suspended_job,
)
from trainer.devcluster.controllers.jobset.failure_policy import apply_failure_policy
from trainer.devcluster.controllers.jobset.names import job_name, replicas_of, replicated_job_of
from trainer.devcluster.controllers.jobset.startup import Startup
from trainer.devcluster.controllers.jobset.status_draft import StatusDraft
from trainer.kube.objects import is_being_deleted, is_condition_true, name_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from trainer.devcluster.controllers.announcement import Announcement
    from trainer.kube.objects import Object

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
    events: tuple[Announcement, ...] = ()
    expired: bool = False
    """Whether the JobSet itself is to be deleted, its time to live being over."""
    requeue_after: float | None = None
    """Seconds until time alone changes the plan."""


def plan_jobset(jobset: Object, jobs: Iterable[Object], now: datetime, *, elastic: bool = False) -> JobSetPlan:
    """Decide the next steps for a JobSet and the Jobs that it controls.

    Args:
        jobset: the JobSet.
        jobs: its Jobs.
        now: the time.
        elastic: whether Jobs follow a change of their size (feature gate ElasticJobSet). Default: no, as in JobSet.
    """
    if is_being_deleted(jobset):
        return JobSetPlan()
    children = ChildJobs.of(jobset, jobs)
    replicated_jobs = jobset["spec"].get("replicatedJobs") or []
    counts = {entry["name"]: children.count(entry["name"]) for entry in replicated_jobs}
    draft = StatusDraft(jobset, now)
    # Descending by name, as the JobSet controller orders them.
    draft.status["replicatedJobsStatus"] = [counts[name].to_object() for name in sorted(counts, reverse=True)]
    if elastic:
        children = children.following(replicated_jobs)
    plan = _plan_jobs(jobset, children, Startup(jobset, counts), draft, now)
    changed = draft.status != (jobset.get("status") or {})
    return replace(plan, status=draft.status if changed else None, events=tuple(draft.events))


def _plan_jobs(jobset: Object, children: ChildJobs, startup: Startup, draft: StatusDraft, now: datetime) -> JobSetPlan:
    if any(is_condition_true(jobset, kind) for kind in TERMINAL_CONDITIONS):
        return _clean_up(jobset, children, now)
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
    update = _suspend(children, draft) if is_suspended(jobset) else _resume(children, startup, draft)
    updated = {name_of(job) for job in update}
    return JobSetPlan(
        delete=delete,
        service=build_service(jobset) if has_dns_hostnames(jobset) else None,
        claims=build_claims(jobset),
        create=_missing_jobs(jobset, children, startup),
        resize=tuple(job for job in children.resized if name_of(job) not in updated),
        update=update,
    )


def _clean_up(jobset: Object, children: ChildJobs, now: datetime) -> JobSetPlan:
    remaining = time_to_live(jobset, TERMINAL_CONDITIONS, now)
    return JobSetPlan(
        delete=_not_deleted((*children.previous, *children.active)),
        expired=remaining is not None and remaining <= 0,
        requeue_after=remaining if remaining is not None and remaining > 0 else None,
    )


def _missing_jobs(jobset: Object, children: ChildJobs, startup: Startup) -> tuple[Object, ...]:
    strategy = (jobset["spec"].get("failurePolicy") or {}).get("restartStrategy")
    if strategy == "BlockingRecreate" and children.previous:
        return ()
    # While suspended all Jobs are made, suspended as well; the order matters when they are resumed.
    due = startup.independent() if is_suspended(jobset) else startup.due()
    return tuple(
        build_job(jobset, replicated_job, index)
        for replicated_job in due
        for index in range(replicas_of(replicated_job))
        if job_name(jobset, replicated_job["name"], index) not in children.names
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
    counts = draft.status["replicatedJobsStatus"]
    wanted = sum(replicas_of(entry) for entry in jobset["spec"].get("replicatedJobs") or [])
    return bool(sum(count["ready"] + count["succeeded"] for count in counts) == wanted)


def _has_succeeded(jobset: Object, children: ChildJobs) -> bool:
    policy = jobset["spec"].get("successPolicy") or {}
    targets = policy.get("targetReplicatedJobs") or []
    replicated_jobs = jobset["spec"].get("replicatedJobs") or []
    wanted = sum(replicas_of(entry) for entry in replicated_jobs if not targets or entry["name"] in targets)
    succeeded = sum(not targets or replicated_job_of(job) in targets for job in children.successful)
    return succeeded > 0 and (policy.get("operator") == "Any" or succeeded >= wanted)


def _not_deleted(jobs: Iterable[Object]) -> tuple[Object, ...]:
    return tuple(sorted((job for job in jobs if not is_being_deleted(job)), key=name_of))
