"""What a reconcile of a Job looks at."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from trainer_devcluster.controllers.job.pods import is_active, is_tracked
from trainer_devcluster.controllers.job.spec import JobSpec

if TYPE_CHECKING:
    from datetime import datetime

    from trainer.kube.objects import Object


@dataclass(frozen=True)
class JobState:
    """A stored Job, the pods that it controls and the time; all decisions are functions of it."""

    job: Object
    pods: tuple[Object, ...]
    now: datetime

    @cached_property
    def spec(self) -> JobSpec:
        """The decoded specification."""
        return JobSpec.of(self.job)

    @cached_property
    def status(self) -> Object:
        """The stored status; {} for a new Job."""
        status: Object = self.job.get("status") or {}
        return status

    @cached_property
    def active(self) -> tuple[Object, ...]:
        """Pods that work, or will work."""
        return tuple(pod for pod in self.pods if is_active(pod))

    @cached_property
    def tracked(self) -> tuple[Object, ...]:
        """Pods that still hold the tracking finalizer."""
        return tuple(pod for pod in self.pods if is_tracked(pod))
