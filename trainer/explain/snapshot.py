"""What was read about one TrainJob at one moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from trainer.api.jobset_labels import JOBSET_UID
from trainer.api.jobset_pods import is_made_by, place_of, recency_of
from trainer.api.trainjob import TrainJob
from trainer.explain.cause import Subject, Unread
from trainer.framework import StaticReader
from trainer.kube.clock import parse_timestamp
from trainer.kube.objects import (
    Object,
    controller_of,
    is_being_deleted,
    is_controlled_by,
    labels_of,
    metadata_of,
    name_of,
    namespace_of,
    uid_of,
)
from trainer.kube.resource import EVENTS, NODES, PODS
from trainer.plugins.jobset import JobSetPlugin
from trainer.workloads import JOBSETS
from trainer.workloads.scheduling_groups import POD_GROUPS, scheduling_group


class QueuePosition(NamedTuple):
    """Where a Workload of Kueue stands, counted from 0."""

    in_local_queue: int
    in_cluster_queue: int


@dataclass(frozen=True)
class Snapshot:
    """The objects of one TrainJob and what they depend on; what is missing was not read, or is not there."""

    train_job: Object
    """Converted to v2alpha1, with managedFields."""
    now: datetime
    objects: Sequence[Object] = ()
    """JobSet, Jobs, pods, events, nodes, PodGroup and Workloads, in any order."""
    logs: Mapping[tuple[str, str], Sequence[str]] = field(default_factory=dict)
    """The last lines of logs, by pod and container."""
    position: QueuePosition | None = None
    """The position of the Workload in its queue."""
    unread: tuple[Unread, ...] = ()

    @cached_property
    def model(self) -> TrainJob:
        """The TrainJob as the plugins see it.

        Raises:
            InvalidObjectError: it does not fit the model.
        """
        return TrainJob.from_object(self.train_job)

    @cached_property
    def reader(self) -> StaticReader:
        """What the plugins read, with the indexes that they ask for."""
        indexes = {
            name: function
            for watch in JobSetPlugin(StaticReader()).watches()
            for name, function in watch.indexes.items()
        }
        # The PodGroup is read of pods that name one, which they do not where the API server drops the field.
        is_read = any(map(scheduling_group, self.pods)) and not self.could_not_read(POD_GROUPS[0].plural)
        unserved = () if is_read else POD_GROUPS
        return StaticReader(*self.objects, indexes=indexes, unserved=unserved)

    @property
    def name(self) -> str:
        """The name of the TrainJob."""
        return name_of(self.train_job)

    @property
    def namespace(self) -> str:
        """The namespace of the TrainJob and of all its objects."""
        return namespace_of(self.train_job)

    @property
    def subject(self) -> Subject:
        """The TrainJob."""
        return Subject("TrainJob", self.name, self.namespace)

    def of_kind(self, kind: str) -> list[Object]:
        """The objects of a kind."""
        return [obj for obj in self.objects if obj.get("kind") == kind]

    @cached_property
    def jobset(self) -> Object | None:
        """The JobSet that the TrainJob controls."""
        found = (each for each in self.of_kind(JOBSETS.kind) if is_controlled_by(each, self.train_job))
        return next(found, None)

    @cached_property
    def pods(self) -> list[Object]:
        """The present pod of each node, in their order; those of others and of a predecessor do not count."""
        if self.jobset is None and not self.could_not_read(JOBSETS.plural):
            return []
        newest: dict[tuple[object, ...], Object] = {}
        for pod in self.of_kind(PODS.kind):
            owner = controller_of(pod) or {}
            if not is_made_by(owner.get("kind"), owner.get("name"), labels_of(pod)) or self._is_of_another(pod):
                continue
            place = tuple(place_of(pod))
            if place not in newest or recency_of(newest[place]) < recency_of(pod):
                newest[place] = pod
        return [newest[place] for place in sorted(newest, key=str)]

    def _is_of_another(self, pod: Object) -> bool:
        """Whether a pod is one of another JobSet of the same name; older versions of JobSet do not label it."""
        return self.jobset is not None and labels_of(pod).get(JOBSET_UID) not in {None, uid_of(self.jobset)}

    @cached_property
    def nodes(self) -> list[Object]:
        """The nodes that are not being deleted; those that are not ready have taints."""
        return [each for each in self.of_kind(NODES.kind) if not is_being_deleted(each)]

    def events_about(self, kind: str, name: str, *reasons: str) -> list[Object]:
        """Events about an object for one of the reasons."""
        return [
            event
            for event in self.of_kind(EVENTS.kind)
            if event.get("reason") in reasons
            and (about := event.get("involvedObject") or {}).get("kind") == kind
            and about.get("name") == name
        ]

    def age(self, obj: Object) -> float:
        """Seconds since an object was created; 0 if that is unknown."""
        created = metadata_of(obj).get("creationTimestamp")
        return (self.now - parse_timestamp(created)).total_seconds() if created else 0.0

    def could_not_read(self, *kinds: str) -> bool:
        """Whether one of these could not be read."""
        return any(each.what in kinds for each in self.unread)
