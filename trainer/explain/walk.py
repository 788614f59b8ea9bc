"""The walk from a TrainJob down to what holds it."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from trainer.api.trainjob_status import ConditionReason
from trainer.explain.cause import Explanation, Verdict
from trainer.explain.containers import container_causes
from trainer.explain.gang import gang_causes
from trainer.explain.lifecycle import creation_failure, deletion, failure, has_failed, management
from trainer.explain.pods import pod_problems
from trainer.explain.progress import notes, rendezvous, stalls
from trainer.explain.starting import starting
from trainer.explain.suspension import suspensions
from trainer.framework.status.status import has_ended

if TYPE_CHECKING:
    from trainer.explain.cause import Cause
    from trainer.explain.snapshot import Snapshot

_FROM_ABOVE = (deletion, management, creation_failure, suspensions)
"""What keeps a TrainJob from having pods; the first that is found ends the walk."""

_RESTARTS = frozenset({ConditionReason.RESTARTING_PODS})
"""Said in more detail by the causes of containers."""


def explain(snapshot: Snapshot) -> Explanation:
    """The answer; pure.

    Raises:
        InvalidObjectError: the TrainJob does not fit the model, since its CRD is another one.
    """
    said = tuple(notes(snapshot))
    if has_ended(snapshot.train_job):
        failed = has_failed(snapshot.train_job)
        verdict = Verdict.FAILED if failed else Verdict.SUCCEEDED
        return Explanation(verdict, (failure(snapshot),) if failed else (), said, snapshot.unread)
    causes = next((found for step in _FROM_ABOVE if (found := list(step(snapshot)))), None) or _below(snapshot)
    return Explanation(Verdict.WAITING if causes else Verdict.RUNNING, tuple(causes), said, snapshot.unread)


def _below(snapshot: Snapshot) -> list[Cause]:
    """What keeps pods from running, then what keeps running ones from making progress."""
    problems, containers = list(pod_problems(snapshot)), list(container_causes(snapshot))
    if containers:
        problems = [each for each in problems if each.reason not in _RESTARTS]
    found = [*problems, *gang_causes(snapshot), *containers]
    found += chain(stalls(snapshot), rendezvous(snapshot))
    return found or list(starting(snapshot))
