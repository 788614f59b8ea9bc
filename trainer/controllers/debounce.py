"""What is reported a little later: pod problems that may be over soon, and first statuses in a burst of TrainJobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.api.trainjob_status import ConditionType
from trainer.framework.status.conditions import Conditions
from trainer.framework.status.pod_problems import reported_lines
from trainer.kube.recent import Recent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trainer.api.trainjob import TrainJob
    from trainer.framework.plugin_api.extension_points import PodProblem
    from trainer.kube.clock import Clock

SECONDS = 1.0
"""Long enough for the other pods of a large job to get into the same trouble, short enough for people who wait."""

_REMEMBERED = 4096
"""TrainJobs with problems that are held back; the oldest goes first, and is reported later."""


class Debounce:
    """Reports a reason for which pods cannot start only once it has lasted.

    The one event that there is shall say how many pods are concerned; and some trouble, such as a volume that is still
    being created, is over at once. What has been reported before a restart of the manager is not held back.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since: Recent[str, dict[str, float]] = Recent(_REMEMBERED)

    def filter(self, train_job: TrainJob, present: Sequence[PodProblem]) -> tuple[Sequence[PodProblem], float | None]:
        """The problems to report now, and after how many seconds to requeue if some are held back."""
        now, uid = self._clock.monotonic(), train_job.metadata.uid or ""
        before, reported = self._since.pop(uid) or {}, _reported(train_job)
        new = {
            each.reason: max(SECONDS, each.debounce)
            for each in present
            if each.type is ConditionType.PENDING and each.reason not in reported
        }
        since = {reason: before.get(reason, now) for reason in new}
        held = {reason: left for reason in new if (left := since[reason] + new[reason] - now) > 0}
        if held:
            self._since.put(uid, since)
        passed = tuple(each for each in present if each.type is not ConditionType.PENDING or each.reason not in held)
        return passed, min(held.values(), default=None)


class FirstStatusDebounce:
    """Writes first statuses in a burst after the objects of all TrainJobs are created, so that pods start earlier.

    Args:
        is_busy: whether other keys wait, see `Controller.is_busy`.
    """

    def __init__(self, is_busy: Callable[[], bool]) -> None:
        self._is_busy = is_busy

    def postpones(self, train_job: TrainJob) -> bool:
        """Whether to write the first status of a TrainJob later; one with a deadline is requeued in time instead."""
        return train_job.spec.active_deadline_seconds is None and self._is_busy()


def _reported(train_job: TrainJob) -> frozenset[str]:
    """The reasons that the condition Pending reports."""
    pending = Conditions((train_job.status and train_job.status.conditions) or [], "").get(ConditionType.PENDING)
    if pending is None or pending.status != "True":
        return frozenset()
    return frozenset(line.partition(": ")[0] for line in reported_lines(pending))
