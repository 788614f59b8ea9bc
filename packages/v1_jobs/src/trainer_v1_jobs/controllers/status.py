"""The status of a v1 job, from the one that it has, its TrainJob and the pods of that.

| the TrainJob | the v1 job |
|---|---|
| is there | Created |
| has a running pod of the Master, or of the workers where there is no Master | Running |
| condition Restarting is True | Restarting, in place of Running |
| condition Complete is True, or the pod of the Master has succeeded and is not being deleted | Succeeded |
| condition Failed is True | Failed |
| is not there, since spec.runPolicy.suspend says so | Suspended |

Times, reasons and the order of conditions are those of Training Operator 1.9. Nothing changes after the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trainer.api.invalid_object import InvalidObjectError
from trainer.api.trainjob_status import ConditionType
from trainer.kube.errors import TerminalError
from trainer.kube.objects import Object, find_condition, is_condition_true, key_of, name_of
from trainer_v1_jobs.api.kinds import JobKind
from trainer_v1_jobs.api.status import JobStatus, ReplicaStatus
from trainer_v1_jobs.controllers.conditions import JobConditions
from trainer_v1_jobs.controllers.labels import selector_of
from trainer_v1_jobs.controllers.roles import Counts

_MOST: int = 8192
"""Characters of what a TrainJob says about its end that are repeated."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What the status is derived from."""

    counts: Mapping[str, Counts]
    """The pods of each role."""
    train_job: Object | None = None
    """The TrainJob of the job. Defaults to None: there is none."""
    is_suspended: bool = False
    """Whether the job is to have no pods."""


def next_status(job: Object, kind: JobKind, seen: Seen, now: str) -> JobStatus:
    """The status of a job after a look at its TrainJob and pods; `now` is RFC 3339."""
    before = status_of(job)
    if has_ended(before):
        return before
    draft = _Draft(job, kind, before, now)
    draft.conditions.remove("Unmanaged")
    draft.conditions.set("Created", f"{kind.resource.kind}Created", f"{draft.short} is created.")
    if seen.is_suspended:
        draft.suspend(seen.counts)
        return draft.status()
    draft.resume()
    draft.count(seen.counts)
    train_job = seen.train_job
    if train_job is None:
        return draft.status()
    if is_condition_true(train_job, ConditionType.COMPLETE) or _has_succeeded(seen.counts.get("Master")):
        draft.succeed(train_job)
    elif is_condition_true(train_job, ConditionType.FAILED):
        draft.fail(_reason_of_end(train_job, seen.counts), _transition(train_job, ConditionType.FAILED))
    elif is_condition_true(train_job, ConditionType.RESTARTING):
        draft.restart(seen.counts)
    elif _decisive(seen.counts).active:
        draft.run()
    return draft.status()


def refused_status(job: Object, kind: JobKind, problem: str, now: str) -> JobStatus:
    """The status of a job that cannot become a TrainJob: it has failed; `problem` names fields and remedies."""
    before = status_of(job)
    draft = _Draft(job, kind, before, now)
    draft.fail(problem, now, reason=f"{kind.resource.kind}FailedValidation")
    return draft.status()


def unmanaged_status(job: Object, reason: str, message: str, now: str) -> JobStatus:
    """The status of a job that this manager leaves alone; the condition Unmanaged says why, before all others."""
    before = status_of(job)
    own = JobConditions([each for each in before.conditions or [] if each.type == "Unmanaged"], now)
    own.set("Unmanaged", reason, message)
    others = [each for each in before.conditions or [] if each.type != "Unmanaged"]
    return before.model_copy(update={"conditions": [*own.all(), *others]})


def status_of(job: Object) -> JobStatus:
    """The present status of a job, empty where it has none.

    Raises:
        TerminalError: somebody has written what no status can be: nobody can say whether the job has ended.
    """
    try:
        return JobStatus.from_object(job.get("status") or {})
    except InvalidObjectError as error:
        raise TerminalError(f"the status of {job['kind']} {key_of(job)} cannot be read: {error}") from error


def has_ended(status: JobStatus) -> bool:
    """Whether a job has succeeded or failed, which is final."""
    return any(each.type in {"Succeeded", "Failed"} and each.status == "True" for each in status.conditions or [])


class _Draft:
    """A status that is being written; `before` is not changed."""

    def __init__(self, job: Object, kind: JobKind, before: JobStatus, now: str) -> None:
        self._job = job
        self._kind = kind
        self._now = now
        self._before = before
        self._start, self._completion = before.start_time, before.completion_time
        self._replicas = dict(before.replica_statuses or {})
        self.conditions = JobConditions(before.conditions or [], now)
        self.short = f"{kind.resource.kind} {name_of(job)}"
        self._long = f"{kind.resource.kind} {key_of(job)}"

    def suspend(self, counts: Mapping[str, Counts]) -> None:
        reason, message = self._reason("Suspended"), f"{self.short} is suspended."
        # What still runs counts, so that a queue gives its place away no sooner.
        self.count(counts)
        if self.conditions.is_true("Running"):
            self.conditions.set("Running", reason, message, holds=False)
        self.conditions.set("Suspended", reason, message)

    def resume(self) -> None:
        if self.conditions.is_true("Suspended"):
            self.conditions.set("Suspended", self._reason("Resumed"), f"{self.short} is resumed.", holds=False)
            self._start = self._now
        self._start = self._start or self._now

    def count(self, counts: Mapping[str, Counts]) -> None:
        # Without a role, or a zero, an apply leaves what the Training Operator has written.
        former = dict.fromkeys(self._before.replica_statuses or {}, Counts())
        self._replicas = {role: self._replica(role, each) for role, each in (former | dict(counts)).items()}

    def run(self) -> None:
        self.conditions.set("Running", self._reason("Running"), f"{self._long} is running.")

    def restart(self, counts: Mapping[str, Counts]) -> None:
        why = _failures(counts) or "pods have failed"
        self.conditions.set("Restarting", self._reason("Restarting"), f"{self._long} is restarting because {why}.")

    def succeed(self, train_job: Object) -> None:
        for role, each in self._replicas.items():
            ended = (each.succeeded or 0) + (each.active or 0)
            self._replicas[role] = each.model_copy(update={"active": 0, "succeeded": ended})
        self._completion = _transition(train_job, ConditionType.COMPLETE) or self._now
        self.conditions.set("Succeeded", self._reason("Succeeded"), f"{self._long} successfully completed.")

    def fail(self, problem: str, at: str | None, *, reason: str = "") -> None:
        self._completion = at or self._now
        message = f"{self._long} is failed because {problem}"
        self.conditions.set("Failed", reason or self._reason("Failed"), message)

    def status(self) -> JobStatus:
        return JobStatus(
            conditions=self.conditions.all(),
            replica_statuses=self._replicas or None,
            start_time=self._start,
            completion_time=self._completion,
            last_reconcile_time=self._before.last_reconcile_time,
        )

    def _replica(self, role: str, counts: Counts) -> ReplicaStatus:
        labels = selector_of(self._kind, name_of(self._job), role)
        return ReplicaStatus(
            active=counts.active,
            succeeded=counts.succeeded,
            failed=counts.failed,
            label_selector={"matchLabels": labels},
            selector=",".join(f"{name}={value}" for name, value in sorted(labels.items())),
        )

    def _reason(self, suffix: str) -> str:
        return f"{self._kind.resource.kind}{suffix}"


def _decisive(counts: Mapping[str, Counts]) -> Counts:
    """The role by which the operator says whether a job runs: the Master, else the workers."""
    return counts.get("Master") or counts.get("Worker") or Counts()


def _has_succeeded(master: Counts | None) -> bool:
    """Whether the Master has ended well before anybody deleted it, whatever its workers have done since."""
    return master is not None and master.succeeded > master.stopped


def _failures(counts: Mapping[str, Counts]) -> str:
    return ", ".join(f"{each.failed} {role} replica(s) failed" for role, each in counts.items() if each.failed)


def _reason_of_end(train_job: Object, counts: Mapping[str, Counts]) -> str:
    """Which replicas have failed, and what the TrainJob says: the container, its exit code, the end of its log."""
    said = (find_condition(train_job, ConditionType.FAILED) or {}).get("message") or ""
    parts = [part for part in (_failures(counts), said[:_MOST]) if part]
    return ": ".join(parts) or "its TrainJob has failed"


def _transition(train_job: Object, type_: ConditionType) -> str | None:
    found: str | None = (find_condition(train_job, type_) or {}).get("lastTransitionTime")
    return found
