"""Counting how pods ended, exactly once each, whatever crashes in between (KEP-2307, job tracking with finalizers).

A pod keeps the tracking finalizer until its Job's stored status has taken note of it: a completed index in
`completedIndexes`, anything else by uid in `uncountedTerminatedPods`. Once the finalizer is off, the uid moves into the
counters `succeeded` and `failed`. Each step is derived from what is stored, so it may be repeated.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self

from trainer.kube.objects import Object, uid_of
from trainer_devcluster.controllers.job.pod_failure_policy import counts_as_failed, is_counted
from trainer_devcluster.controllers.job.pods import completion_index, has_succeeded, parse_indexes
from trainer_devcluster.controllers.job.spec import JobObservation


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

    @property
    def total_succeeded(self) -> int:
        """Successes, counted or noted."""
        return self.succeeded + len(self.uncounted_succeeded)

    @property
    def total_failed(self) -> int:
        """Failures, counted or noted."""
        return self.failed + len(self.uncounted_failed)

    @property
    def settled(self) -> bool:
        """Whether every pod that ended is in the counters."""
        return not (self.uncounted_succeeded or self.uncounted_failed or self.release)


def settle(state: JobObservation) -> Accounts:
    """Bring the accounts in the Job's status up to date with its pods."""
    ended_well = [pod for pod in state.tracked if has_succeeded(pod)]
    ended_badly = [pod for pod in state.tracked if counts_as_failed(state, pod)]
    completed = _completed_indexes(state, ended_well)
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
    )


@dataclass(frozen=True, slots=True)
class _Ledger:
    """One counter of the status and the uids that are on their way into it."""

    counted: int
    noted: tuple[str, ...]

    @classmethod
    def of(cls, state: JobObservation, kind: str) -> Self:
        """Count the noted pods that have lost the finalizer."""
        held = {uid_of(pod) for pod in state.tracked}
        noted = (state.status.get("uncountedTerminatedPods") or {}).get(kind) or []
        released = sum(uid not in held for uid in noted)
        return cls((state.status.get(kind) or 0) + released, tuple(uid for uid in noted if uid in held))

    def note(self, pods: Iterable[Object]) -> Self:
        """Add pods that have just ended."""
        return replace(self, noted=tuple(dict.fromkeys([*self.noted, *map(uid_of, pods)])))


def _completed_indexes(state: JobObservation, ended_well: Iterable[Object]) -> frozenset[int]:
    if not state.spec.indexed:
        return frozenset()
    known = parse_indexes(state.status.get("completedIndexes") or "", state.spec.completions or 0)
    indexes = map(completion_index, ended_well)
    return known.union(index for index in indexes if index is not None and state.spec.has_index(index))
