"""Which role and index a pod of a JobSet has in its v1 job, and how the pods of each role are doing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from trainer.api.jobset_pods import Place, place_of, recency_of
from trainer.kube.objects import Object, is_being_deleted


class ReplicaIndex(NamedTuple):
    """A pod as the v1 job counts it."""

    role: str
    """Such as Worker."""
    number: int
    """Among the pods of the role, from 0."""


@dataclass(frozen=True, slots=True)
class Counts:
    """How the pods of one role are doing; each replica counts once, with its newest pod."""

    active: int = 0
    """Pods that run."""
    succeeded: int = 0
    failed: int = 0
    """Those that have failed, and those that run and are being deleted."""
    stopped: int = 0
    """Those among the succeeded that are being deleted: many programs exit with 0 on SIGTERM."""

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.active + other.active,
            self.succeeded + other.succeeded,
            self.failed + other.failed,
            self.stopped + other.stopped,
        )


class ReplicaLayout:
    """The roles in the pods of a JobSet.

    Args:
        roles: the roles of each replicated Job, with the number of their pods in the order of the indexes; the last
            role has all further pods.
    """

    def __init__(self, roles: Mapping[str, tuple[tuple[str, int], ...]]) -> None:
        self._roles = roles

    def has(self, role: str) -> bool:
        """Whether there are pods of this role."""
        return any(role == name for roles in self._roles.values() for name, _ in roles)

    def index_of(self, place: Place) -> ReplicaIndex | None:
        """The replica of a pod; None for one of a replicated Job that has no role, such as an initializer."""
        roles = self._roles.get(place.replicated_job)
        if not roles:
            return None
        index = place.completion_index + place.job_index
        for role, size in roles[:-1]:
            if index < size:
                return ReplicaIndex(role, index)
            index -= size
        return ReplicaIndex(roles[-1][0], index)

    def counts(self, pods: Iterable[Object]) -> dict[str, Counts]:
        """The counts of each role, also of those without pods."""
        newest: dict[Place, Object] = {}
        for pod in pods:
            place = place_of(pod)
            other = newest.get(place)
            if other is None or recency_of(pod) > recency_of(other):
                newest[place] = pod
        found = {role: Counts() for roles in self._roles.values() for role, _ in roles}
        for place, pod in newest.items():
            replica = self.index_of(place)
            if replica is not None:
                found[replica.role] += _count(pod)
        return found


def _count(pod: Object) -> Counts:
    match (pod.get("status") or {}).get("phase"):
        case "Running":
            return Counts(failed=1) if is_being_deleted(pod) else Counts(active=1)
        case "Succeeded":
            return Counts(succeeded=1, stopped=int(is_being_deleted(pod)))
        case "Failed":
            return Counts(failed=1)
        case _:
            return Counts()
