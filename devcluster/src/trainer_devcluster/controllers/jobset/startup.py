"""Which replicated jobs may start: `dependsOn` and the startup policy InOrder (KEP-672, KEP-104)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer_devcluster.controllers.jobset.names import replicas_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trainer.kube.objects import Object
    from trainer_devcluster.controllers.jobset.child_jobs import ReplicatedJobCount
    from trainer_devcluster.controllers.jobset.status_draft import StatusDraft


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
