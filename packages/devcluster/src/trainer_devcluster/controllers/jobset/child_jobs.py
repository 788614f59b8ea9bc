"""The Jobs of a JobSet, sorted by how they fare, and `status.replicatedJobsStatus`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self

from trainer.kube.objects import Object, is_condition_true, name_of
from trainer_devcluster.controllers.jobset.construction import resized_job
from trainer_devcluster.controllers.jobset.names import (
    replicated_job_of,
    restart_attempt_of,
    restarts_of,
)


@dataclass(frozen=True, slots=True)
class ChildJobs:
    """Jobs of a JobSet; only the terminal conditions of a Job decide whether it is finished."""

    previous: tuple[Object, ...]
    """Jobs of an earlier restart, to be deleted."""
    active: tuple[Object, ...]
    successful: tuple[Object, ...]
    failed: tuple[Object, ...]
    resized: tuple[Object, ...] = ()
    """Those of the active ones that the stored Jobs differ from in size; see `following`."""

    @classmethod
    def of(cls, jobset: Object, jobs: Iterable[Object]) -> Self:
        """Sort the Jobs that the JobSet controls."""
        ordered = sorted(jobs, key=name_of)
        previous = tuple(job for job in ordered if restart_attempt_of(job) < restarts_of(jobset))
        current = [job for job in ordered if job not in previous]
        successful = tuple(job for job in current if is_condition_true(job, "Complete"))
        failed = tuple(job for job in current if is_condition_true(job, "Failed"))
        active = tuple(job for job in current if job not in successful and job not in failed)
        return cls(previous, active, successful, failed)

    @property
    def names(self) -> frozenset[str]:
        """Names that are taken, by a Job of whichever restart."""
        return frozenset(name_of(job) for job in (*self.previous, *self.active, *self.successful, *self.failed))

    def active_of(self, replicated_job: str) -> list[Object]:
        """Active Jobs of one replicated job."""
        return [job for job in self.active if replicated_job_of(job) == replicated_job]

    def following(self, replicated_jobs: Iterable[Object]) -> Self:
        """The same Jobs, active ones with the size that their replicated job has now."""
        by_name = {entry["name"]: entry for entry in replicated_jobs}
        active = tuple(resized_job(job, by_name[replicated_job_of(job)]) for job in self.active)
        return replace(self, active=active, resized=tuple(job for job in active if job not in self.active))

    def count(self, replicated_job: str) -> ReplicatedJobCount:
        """How the Jobs of one replicated job fare."""
        active = self.active_of(replicated_job)
        return ReplicatedJobCount(
            name=replicated_job,
            ready=sum(_is_ready(job) for job in active),
            succeeded=sum(replicated_job_of(job) == replicated_job for job in self.successful),
            failed=sum(replicated_job_of(job) == replicated_job for job in self.failed),
            active=sum(bool((job.get("status") or {}).get("active")) for job in active),
            suspended=sum(bool(job["spec"].get("suspend")) for job in active),
        )


@dataclass(frozen=True, slots=True)
class ReplicatedJobCount:
    """One entry of `status.replicatedJobsStatus`; a finished Job is neither ready nor active."""

    name: str
    ready: int
    succeeded: int
    failed: int
    active: int
    suspended: int

    @property
    def started(self) -> int:
        """Jobs that run with all their pods or have ended."""
        return self.ready + self.succeeded + self.failed


def _is_ready(job: Object) -> bool:
    spec, status = job["spec"], job.get("status") or {}
    parallelism = spec.get("parallelism", 1)
    completions = spec.get("completions")
    wanted = parallelism if completions is None else min(parallelism, completions)
    return bool((status.get("succeeded") or 0) + (status.get("ready") or 0) >= wanted)
