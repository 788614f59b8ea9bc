"""The walk from a TrainJob down to what holds it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from trainer.api.invalid_object import InvalidObjectError
from trainer.api.trainjob_status import ConditionReason
from trainer.explain.cause import STOPPING, Cause, Explanation, Unread, Verdict
from trainer.explain.containers import container_causes
from trainer.explain.gang import gang_causes, gang_notes
from trainer.explain.lifecycle import creation_failure, deletion, failure, has_failed, management
from trainer.explain.lost_nodes import lost_nodes
from trainer.explain.pods import pod_problems
from trainer.explain.progress import facts, notes, rendezvous, stalls
from trainer.explain.snapshot import Snapshot
from trainer.explain.starting import starting
from trainer.explain.stopping import still_there
from trainer.explain.suspension import suspensions
from trainer.framework.status.status import has_ended
from trainer.kube.barrier import Barrier

_T = TypeVar("_T")


def _suspended(snapshot: Snapshot) -> Iterator[Cause]:
    """That it is suspended, and that pods of it are still there."""
    found = list(suspensions(snapshot))
    yield from found
    if found:
        yield from lost_nodes(snapshot)
        yield from still_there(snapshot)


_FROM_ABOVE = (deletion, management, creation_failure, _suspended)
"""What keeps a TrainJob from having pods; the first that is found ends the walk."""

_OF_CONTAINERS = frozenset({ConditionReason.RESTARTING_PODS, ConditionReason.ENDED_AND_HELD})
"""Said in more detail by the causes of containers."""


_STEPS = Barrier("could not explain", passing=(InvalidObjectError,))


def explain(snapshot: Snapshot) -> Explanation:
    """The answer; pure.

    A step that an object makes fail finds nothing, and the answer names it.

    Raises:
        InvalidObjectError: the TrainJob does not fit the model, since its CRD is another one.
    """
    walk = _Walk(snapshot)
    shown, said = tuple(walk.take(facts)), (*walk.take(notes), *walk.take(gang_notes))
    if has_ended(snapshot.train_job):
        failed = has_failed(snapshot.train_job)
        verdict = Verdict.FAILED if failed else Verdict.SUCCEEDED
        causes = walk.take(lambda seen: [failure(seen)] if failed else [])
    else:
        from_above = (found for step in _FROM_ABOVE if (found := walk.take(step)))
        causes = next(from_above, []) or _below(walk)
        verdict = Verdict.WAITING if causes else Verdict.RUNNING
    return Explanation(verdict, tuple(causes), shown, said, (*snapshot.unread, *walk.failed))


class _Walk:
    """Takes one step after the other."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.failed: list[Unread] = []

    def take(self, step: Callable[[Snapshot], Iterable[_T]]) -> list[_T]:
        """What a step finds."""
        found: list[_T] = []
        with _STEPS.around(self._snapshot.subject) as attempt:
            found = list(step(self._snapshot))
        if attempt.error is not None:
            why = f"an object could not be understood ({type(attempt.error).__name__}), which is a defect of trainer"
            self.failed.append(Unread("some of the causes", why))
        return found


def _below(walk: _Walk) -> list[Cause]:
    """What keeps pods from running, then what keeps running ones from making progress; a lost node may cause all."""
    lost, problems = walk.take(lost_nodes), walk.take(pod_problems)
    if any(each.reason in STOPPING for each in problems):
        return [*lost, *problems]
    containers = walk.take(container_causes)
    if containers:
        problems = [each for each in problems if each.reason not in _OF_CONTAINERS]
    found = [
        *lost,
        *problems,
        *walk.take(gang_causes),
        *containers,
        *walk.take(stalls),
        *walk.take(rendezvous),
    ]
    return found or walk.take(starting)
