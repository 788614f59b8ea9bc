"""Holding back bad news for a moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.api.trainjob_status import ConditionType
from trainer.framework.status.conditions import Conditions
from trainer.framework.status.pod_problems import told_by
from trainer.kube.recent import Recent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainer.api.trainjob import TrainJob
    from trainer.framework.plugin_api.extension_points import Impediment
    from trainer.kube.clock import Clock

SECONDS = 1.0
"""Long enough for the other pods of a large job to come into the same trouble, short enough for who waits."""

_REMEMBERED = 4096
"""TrainJobs with news that is held back; the one that has waited longest goes first, and is then told later."""


class Patience:
    """Lets a reason for which pods cannot start pass only when it has lasted.

    Pods come into trouble one after another, and the one event that there is shall say how many they are; and some
    trouble, such as a volume that is just being made, is over at once. What is forgotten after a restart of the manager
    is only since when it has been waited: what was told before is not held back.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since: Recent[str, dict[str, float]] = Recent(_REMEMBERED)

    def sift(self, train_job: TrainJob, present: Sequence[Impediment]) -> tuple[tuple[Impediment, ...], float | None]:
        """What may be told now, and after how many seconds to ask again if something is held back."""
        now, uid = self._clock.monotonic(), train_job.metadata.uid or ""
        before, told = self._since.pop(uid) or {}, _told(train_job)
        new = {
            each.reason: max(SECONDS, each.patience)
            for each in present
            if each.type is ConditionType.PENDING and each.reason not in told
        }
        since = {reason: before.get(reason, now) for reason in new}
        held = {reason: left for reason in new if (left := since[reason] + new[reason] - now) > 0}
        if held:
            self._since.put(uid, since)
        passed = tuple(each for each in present if each.type is not ConditionType.PENDING or each.reason not in held)
        return passed, min(held.values(), default=None)


def _told(train_job: TrainJob) -> frozenset[str]:
    """The reasons that the condition Pending has told."""
    pending = Conditions((train_job.status and train_job.status.conditions) or [], "").get(ConditionType.PENDING)
    if pending is None or pending.status != "True":
        return frozenset()
    return frozenset(line.partition(": ")[0] for line in told_by(pending))
