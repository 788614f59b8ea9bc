"""The gang of a JobSet's pods by Kubernetes' Workload API: why it is not placed, and by whom it was disrupted.

The scheduler says it of each pod, since its word about a PodGroup that was scheduled once stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Self

from trainer.api.jobset_labels import REPLICATED_JOB
from trainer.api.trainjob_status import ConditionReason
from trainer.framework import FailedContainer
from trainer.kube.objects import Object, ObjectKey, labels_of, mapping_at, name_of, namespace_of, objects_in
from trainer.kube.resource import PODS
from trainer.plugins.jobset.pod_index import PodIndex
from trainer.plugins.jobset.wait import Example, WaitReason
from trainer.workloads.pod_life import wait_of
from trainer.workloads.scheduling_groups import (
    POD_GROUPS,
    disruption_of,
    is_refused,
    least_members,
    most_that_fit,
    preempts,
    scheduled,
    scheduling_group,
    topology_key,
)

_EXACT = 16
"""Up to so many pods without a place, and all of a gang, are counted exactly: each change of the number is written."""
_DEBOUNCE = 30
"""Seconds for which pods without a word of their scheduler are on their way."""
_UNSCHEDULABLE = "Unschedulable"


@dataclass(frozen=True, slots=True)
class Gang:
    """The pods of a JobSet that are placed together or not at all."""

    name: str
    """Of their PodGroup."""
    group: Object | None
    """The PodGroup; None where it does not exist."""
    members: frozenset[ObjectKey]
    """Its pods that have not ended."""

    @classmethod
    def of(cls, index: PodIndex) -> Self | None:
        """The gang of a JobSet; None where its pods are placed one by one, or no PodGroup can be read."""
        names = dict(_groups(index.jobset))
        if not names or not any(map(index.reader.serves, POD_GROUPS)):
            return None
        jobs = "|".join(map(re.escape, names))
        is_member = re.compile(rf"{re.escape(name_of(index.jobset))}-(?:{jobs})-\d+-\d+-[a-z0-9]+").fullmatch
        members = frozenset(key for key in index.there() if is_member(key.name))
        name = next(iter(names.values()))
        return cls(name, _pod_group(index, name), members)

    @property
    def least(self) -> int:
        """How many pods it needs at the same time; those that exist where no PodGroup says it."""
        return least_members(self.group) if self.group is not None else len(self.members)

    def without_room(self, index: PodIndex, waiting: AbstractSet[ObjectKey]) -> WaitReason | None:
        """Why it is not placed, by what the scheduler says of its pods; None where not the gang is the reason."""
        out = self.members & waiting
        if not out or (self.group is not None and len(self.members - waiting - index.unseen()) >= self.least):
            return None
        misfits = out - index.waiting_for_gang()
        if (self.group is None or not misfits) and (lacking := self._lacking(out)) is not None:
            return lacking
        pod = index.reader.get(PODS, min(misfits or out)) or {}
        said = _messages(index, misfits or out, min(out - misfits, default=None))
        if self.group is not None and scheduled(self.group).get("status") == "False":
            said.append(str(scheduled(self.group).get("message") or ""))
        return WaitReason(
            _UNSCHEDULABLE,
            self._headline(len(misfits), said),
            Example(PODS.kind, min(misfits or out).name, is_one_of_many=len(out) > 1),
            said[0],
            labels_of(pod).get(REPLICATED_JOB, ""),
        )

    def unseen(self, unseen: AbstractSet[ObjectKey]) -> WaitReason | None:
        """Why no scheduler has looked at its pods; None where not the gang is the reason."""
        out = self.members & unseen
        return self._lacking(out, debounce=_DEBOUNCE) if out else None

    def _lacking(self, pods: AbstractSet[ObjectKey], *, debounce: float = 0) -> WaitReason | None:
        """What has to exist before the scheduler tries."""
        example = Example(PODS.kind, min(pods).name, is_one_of_many=len(pods) > 1)
        if self.group is None:
            headline = f"PodGroup {self.name} of the pods does not exist"
            said = "waits for its PodGroup, which the manager makes where the cluster serves the Workload API"
            return WaitReason(ConditionReason.NO_POD_GROUP, headline, example, said, debounce=_DEBOUNCE)
        if len(self.members) < self.least:
            headline = f"the gang of {self.least} pods is not complete"
            said = f"waits for the others: {len(self.members)} of {self.least} exist"
            return WaitReason(ConditionReason.GANG_INCOMPLETE, headline, example, said, debounce=debounce)
        return None

    def _headline(self, misfits: int, said: Sequence[str]) -> str:
        if any(map(is_refused, said)):
            return f"the scheduler refuses the gang of {self.least} pods"
        if any(map(preempts, said)):
            return f"the gang of {self.least} pods waits until the pods that it preempts have ended"
        is_exact = misfits <= _EXACT or misfits == len(self.members)
        apart = misfits if is_exact else 1 << (misfits.bit_length() - 1)
        counted = [count for text in said if (count := most_that_fit(text)) is not None]
        fit = min([len(self.members) - apart, *counted])
        gang = f"the gang of {self.least} pods does not fit"
        if fit < self.least:
            most = f"at most {fit}" if fit > 0 else "none"
            return f"{gang}: {most} of them {'have' if fit > 1 else 'has'} a place"
        key = topology_key(self.group or {})
        return f"{gang} into one domain of {key}" if key else f"{gang} as a whole"


def disruption_of_gang(index: PodIndex) -> FailedContainer | None:
    """The disruption of the gang as a whole, as its PodGroup says, of this attempt or an earlier one; None if none."""
    name = next((name for _, name in _groups(index.jobset)), "")
    group = _pod_group(index, name) if name else None
    taken = disruption_of(group) if group is not None else None
    return FailedContainer.gang(name, taken) if taken is not None else None


def _groups(jobset: Object) -> Iterator[tuple[str, str]]:
    """The replicated Jobs whose pods are members of a gang, each with the name of the PodGroup."""
    for job in objects_in(mapping_at(jobset, "spec").get("replicatedJobs")):
        name = scheduling_group(mapping_at(job, "template", "spec", "template"))
        if name:
            yield str(job.get("name") or ""), name


def _pod_group(index: PodIndex, name: str) -> Object | None:
    key = ObjectKey(namespace_of(index.jobset), name)
    served = (resource for resource in POD_GROUPS if index.reader.serves(resource))
    return next((found for each in served if (found := index.reader.get(each, key)) is not None), None)


def _messages(index: PodIndex, first: AbstractSet[ObjectKey], other: ObjectKey | None) -> list[str]:
    """What the scheduler says of the example, and of a pod that waits for the gang."""
    keys = [min(first), *([other] if other is not None else [])]
    waits = [wait_of(index.reader.get(PODS, key) or {}) for key in keys]
    return [wait.message if wait is not None else "" for wait in waits]
