"""Counting how pods ended, exactly once each, whatever crashes in between (KEP-2307, job tracking with finalizers).

A pod keeps the tracking finalizer until its Job's stored status has taken note of it: a completed index in
`completedIndexes`, anything else by uid in `uncountedTerminatedPods`. Once the finalizer is off, the uid moves into the
counters `succeeded` and `failed`. Each step is derived from what is stored, so it may be repeated.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

from trainer.kube.objects import uid_of
from trainer_devcluster.controllers.job.endings import counts_as_failed, is_counted
from trainer_devcluster.controllers.job.indexes import parse_indexes
from trainer_devcluster.controllers.job.per_index import NO_INDEX_FAILURES, IndexFailures, index_failures
from trainer_devcluster.controllers.job.pods import completion_index, has_succeeded

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trainer.kube.objects import Object
    from trainer_devcluster.controllers.job.state import JobState


@dataclass(frozen=True, slots=True)
class Accounts:
    """How the pods of a Job ended so far, and what is still being written down."""

    succeeded: int
    """Counted successes: number of completed indexes of an Indexed Job."""
    failed: int
    completed_indexes: frozenset[int]
    uncounted_succeeded: tuple[str, ...]
    """Uids that are noted in the status and still hold the finalizer; never of an Indexed Job."""
    uncounted_failed: tuple[str, ...]
    release: tuple[Object, ...]
    """Pods that may lose the finalizer as soon as these accounts are stored."""
    index_failures: IndexFailures = field(default=NO_INDEX_FAILURES)
    """What has failed index by index, for a Job with backoffLimitPerIndex."""
    awaiting: int = 0
    """Counted failures that are not noted yet, as their pods still hand their failure counts on."""

    @property
    def total_succeeded(self) -> int:
        """Successes, counted or noted."""
        return self.succeeded + len(self.uncounted_succeeded)

    @property
    def total_failed(self) -> int:
        """Failures, counted, noted or yet to be noted."""
        return self.failed + len(self.uncounted_failed) + self.awaiting

    @property
    def settled(self) -> bool:
        """Whether every pod that ended is in the counters."""
        return not (self.uncounted_succeeded or self.uncounted_failed or self.release)


def settle(state: JobState, *, ending: bool = False) -> Accounts:
    """Bring the accounts in the Job's status up to date with its pods.

    Args:
        state: the Job.
        ending: whether no pod will be replaced any more, so that no failed pod has to be kept for its replacement.
    """
    completed = _completed_indexes(state, [pod for pod in state.tracked if has_succeeded(pod)])
    failures_by_index = index_failures(state, completed)
    kept = set() if ending else {uid_of(pod) for pod in failures_by_index.awaiting.values()}
    ended_well = [pod for pod in state.tracked if has_succeeded(pod)]
    failed = [pod for pod in state.tracked if counts_as_failed(state, pod)]
    ended_badly = [pod for pod in failed if uid_of(pod) not in kept]
    failures = _Ledger.of(state, "failed").note(pod for pod in ended_badly if is_counted(state, pod))
    # The index of a completed pod is all that an Indexed Job has to note of a success.
    successes = _Ledger.of(state, "succeeded").note(() if state.spec.indexed else ended_well)
    return Accounts(
        succeeded=len(completed) if state.spec.indexed else successes.counted,
        failed=failures.counted,
        completed_indexes=completed,
        uncounted_succeeded=successes.noted,
        uncounted_failed=failures.noted,
        release=(*ended_well, *ended_badly),
        index_failures=failures_by_index,
        awaiting=sum(uid_of(pod) in kept and is_counted(state, pod) for pod in failed),
    )


@dataclass(frozen=True, slots=True)
class _Ledger:
    """One counter of the status and the uids that are on their way into it."""

    counted: int
    noted: tuple[str, ...]

    @classmethod
    def of(cls, state: JobState, kind: str) -> Self:
        """Count the noted pods that have lost the finalizer."""
        held = {uid_of(pod) for pod in state.tracked}
        noted = (state.status.get("uncountedTerminatedPods") or {}).get(kind) or []
        released = sum(uid not in held for uid in noted)
        return cls((state.status.get(kind) or 0) + released, tuple(uid for uid in noted if uid in held))

    def note(self, pods: Iterable[Object]) -> Self:
        """Add pods that have just ended."""
        return replace(self, noted=tuple(dict.fromkeys([*self.noted, *map(uid_of, pods)])))


def _completed_indexes(state: JobState, ended_well: Iterable[Object]) -> frozenset[int]:
    if not state.spec.indexed:
        return frozenset()
    known = parse_indexes(state.status.get("completedIndexes") or "", state.spec.completions or 0)
    indexes = map(completion_index, ended_well)
    return known.union(index for index in indexes if index is not None and state.spec.has_index(index))
