"""Which pods of a running Job are missing and which are too many."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from trainer.kube.clock import parse_timestamp
from trainer.kube.objects import metadata_of
from trainer_devcluster.controllers.job.pods import completion_index, is_ready, is_terminating, phase_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trainer.kube.objects import Object
    from trainer_devcluster.controllers.job.accounts import Accounts
    from trainer_devcluster.controllers.job.spec import JobSpec, JobState

MAX_PODS_PER_ROUND = 500
"""Most pods made or removed before the status is looked at again, as in Kubernetes."""


@dataclass(frozen=True, slots=True)
class Scaling:
    """The difference between the pods that a Job has and those that it wants; never both at once."""

    missing: tuple[int | None, ...] = ()
    """One entry per pod to make: its completion index, or None for a NonIndexed Job."""
    surplus: tuple[Object, ...] = ()


def scale(state: JobState, accounts: Accounts) -> Scaling:
    """Compare the active pods with parallelism, completions and, for Indexed Jobs, the indexes still to do."""
    spec, active = state.spec, sorted(state.active, key=_worth)
    wanted = _wanted(spec, len(active), accounts)
    surplus = _surplus(spec, active, accounts, len(active) - wanted)
    if surplus:
        return Scaling(surplus=tuple(surplus[:MAX_PODS_PER_ROUND]))
    # A terminating pod keeps its place only when the Job waits for it to have failed.
    leaving = [pod for pod in state.pods if spec.replace_only_failed and is_terminating(pod)]
    count = min(wanted - len(active) - len(leaving), MAX_PODS_PER_ROUND)
    if count <= 0:
        return Scaling()
    if not spec.indexed:
        return Scaling(missing=(None,) * count)
    worked_on = {completion_index(pod) for pod in (*active, *leaving)}
    taken = accounts.completed_indexes | worked_on
    pending = (index for index in range(spec.completions or 0) if index not in taken)
    return Scaling(missing=tuple(islice(pending, count)))


def _wanted(spec: JobSpec, active: int, accounts: Accounts) -> int:
    if spec.completions is None:
        # A work queue: after the first success nothing new is started, and what runs may finish.
        return active if accounts.total_succeeded > 0 else spec.parallelism
    return max(min(spec.parallelism, spec.completions - accounts.total_succeeded), 0)


def _surplus(spec: JobSpec, active: Sequence[Object], accounts: Accounts, excess: int) -> list[Object]:
    misplaced = list(_misplaced(spec, active, accounts)) if spec.indexed else []
    others = [pod for pod in active if pod not in misplaced]
    return misplaced + others[: max(excess - len(misplaced), 0)]


def _misplaced(spec: JobSpec, active: Sequence[Object], accounts: Accounts) -> Iterator[Object]:
    """Pods whose index is out of range (highest first), done, or worked on by a pod that is further along."""
    taken = set(accounts.completed_indexes)
    yield from sorted((pod for pod in active if not spec.has_index(completion_index(pod))), key=_index, reverse=True)
    for pod in reversed(active):
        index = completion_index(pod)
        if index in taken:
            yield pod
        elif index is not None and spec.has_index(index):
            taken.add(index)


def _index(pod: Object) -> int:
    index = completion_index(pod)
    return -1 if index is None else index


def _worth(pod: Object) -> tuple[bool, bool, bool, float]:
    """Sort key: what is lost least comes first (unscheduled, not running, not ready, youngest)."""
    created = parse_timestamp(metadata_of(pod)["creationTimestamp"]).timestamp()
    return bool(pod["spec"].get("nodeName")), phase_of(pod) == "Running", is_ready(pod), -created
