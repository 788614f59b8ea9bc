"""Failures index by index (`backoffLimitPerIndex`, KEP-3850).

How often an index has failed is written on its pods: a new pod carries the count of the one that it replaces. So the
last failed pod of an index keeps the tracking finalizer, and with it exists, until its replacement does.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from trainer.kube.objects import is_condition_true
from trainer_devcluster.controllers.job.endings import counts_as_failed, is_counted
from trainer_devcluster.controllers.job.failure_policy import Action, match_failure_policy
from trainer_devcluster.controllers.job.indexes import parse_indexes
from trainer_devcluster.controllers.job.pods import (
    FAILURE_COUNT,
    IGNORED_FAILURE_COUNT,
    completion_index,
    failure_count,
    finished_at,
    ignored_failure_count,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from trainer.kube.objects import Object
    from trainer_devcluster.controllers.job.state import JobState


@dataclass(frozen=True, slots=True)
class IndexFailures:
    """What has failed of a Job with backoffLimitPerIndex."""

    failed: frozenset[int]
    """Indexes that are not tried again."""
    awaiting: Mapping[int, Object]
    """The last failed pod of each index that is to be tried again."""


NO_INDEX_FAILURES = IndexFailures(frozenset(), MappingProxyType({}))


def index_failures(state: JobState, completed: frozenset[int]) -> IndexFailures:
    """What has failed index by index; nothing for a Job that counts its failures as a whole."""
    limit = state.spec.backoff_limit_per_index
    if limit is None:
        return NO_INDEX_FAILURES
    known = parse_indexes(state.status.get("failedIndexes") or "", state.spec.completions or 0)
    if is_condition_true(state.job, "FailureTarget"):
        # The Job has failed: its other pods end now because of that, which is no failure of their indexes.
        return IndexFailures(known, NO_INDEX_FAILURES.awaiting)
    by_index: dict[int, list[Object]] = {}
    for pod in state.tracked:
        index = completion_index(pod)
        if index is not None and state.spec.has_index(index) and counts_as_failed(state, pod):
            by_index.setdefault(index, []).append(pod)
    failed = known | {index for index, pods in by_index.items() if any(_fails_index(state, pod, limit) for pod in pods)}
    done = completed | failed | {completion_index(pod) for pod in state.active}
    return IndexFailures(failed, {index: max(by_index[index], key=_age) for index in by_index if index not in done})


def failure_annotations(job: Object, replaced: Object | None) -> dict[str, str]:
    """What a new pod carries on from the failed one that it replaces, if there is one."""
    if replaced is None:
        return {FAILURE_COUNT: "0"}
    is_ignored = match_failure_policy(job, replaced).action is Action.IGNORE
    ignored = ignored_failure_count(replaced) + is_ignored
    counts = {FAILURE_COUNT: str(failure_count(replaced) + (not is_ignored))}
    return counts | ({IGNORED_FAILURE_COUNT: str(ignored)} if ignored else {})


def failures_in_a_row(pod: Object) -> int:
    """How often the index of a failed pod has failed, ignored failures and this one included."""
    return _failures(pod) + 1


def _fails_index(state: JobState, pod: Object, limit: int) -> bool:
    if match_failure_policy(state.job, pod).action is Action.FAIL_INDEX:
        return True
    return is_counted(state, pod) and failure_count(pod) >= limit


def _failures(pod: Object) -> int:
    return failure_count(pod) + ignored_failure_count(pod)


def _age(pod: Object) -> tuple[int, datetime]:
    return _failures(pod), finished_at(pod)
