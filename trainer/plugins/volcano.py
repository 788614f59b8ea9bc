"""Volcano: gang scheduling, queues and network topology by the Volcano scheduler (KEP-2437).

The pods of the nodes name their PodGroup in an annotation; `schedulerName` of the runtime must be that of Volcano,
which is `volcano` unless it was installed under another name.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainer.api.labels import VOLCANO_QUEUE
from trainer.api.trainjob import TrainJob
from trainer.framework import Component, Finding, PodGroups, Reader, RuntimeInfo, Watch, gang_specs, scheduler_warnings
from trainer.kube.field_errors import invalid
from trainer.kube.resource import Resource
from trainer.workloads import DEFAULT_SCHEDULER

POD_GROUPS = Resource("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup")

GROUP_NAME_ANNOTATION = "scheduling.k8s.io/group-name"
"""Annotation of the pods of a gang: the name of their PodGroup."""

_OTHER_SCHEDULERS = ("", DEFAULT_SCHEDULER)
"""Scheduler names that Volcano never has."""


class Volcano:
    """Builds the PodGroup of the nodes and assigns their pods to it."""

    name = "volcano"
    pod_group_policy_sources = frozenset({"volcano"})

    def __init__(self, reader: Reader) -> None:
        self._pod_groups = PodGroups(POD_GROUPS, self.name, "Volcano", reader)

    def watches(self) -> Iterator[Watch]:
        """PodGroups, if the cluster serves them, and the objects that their amounts come from."""
        yield from self._pod_groups.watches()

    def validate(self, info: RuntimeInfo, old: TrainJob | None, new: TrainJob) -> Iterator[Finding]:
        """Refuse gangs while the cluster does not serve PodGroups, and empty queue names; warn of other schedulers."""
        if info.pod_group_policy.volcano is None:
            return
        yield from self._pod_groups.check(info)
        if _queue(info) == "":
            is_own = VOLCANO_QUEUE in info.train_job_annotations
            path = "spec.annotations" if is_own else f"{info.runtime} spec.template.metadata.annotations"
            yield invalid(f"{path}[{VOLCANO_QUEUE}]", "", "must name a queue of Volcano; remove it for the default")
        text = "is {scheduler}, so the default scheduler decides about each pod alone; set it to volcano"
        yield from scheduler_warnings(info, info.gang, lambda name: name not in _OTHER_SCHEDULERS, text)

    def enforce_pod_group_policy(self, info: RuntimeInfo, train_job: TrainJob) -> None:
        """Annotate the pods of the gang."""
        if info.pod_group_policy.volcano is not None:
            for pod_set in info.gang:
                pod_set.annotations[GROUP_NAME_ANNOTATION] = info.job_name

    def build(self, info: RuntimeInfo, train_job: TrainJob) -> Iterator[Component]:
        """The PodGroup, with queue, priority and network topology."""
        policy = info.pod_group_policy.volcano
        if policy is None:
            return
        topology = policy.network_topology
        classes = [spec["priorityClassName"] for spec in gang_specs(info) if spec.get("priorityClassName")]
        spec = {
            "queue": _queue(info),
            "priorityClassName": classes[-1] if classes else None,
            "networkTopology": topology.to_object() if topology is not None else None,
        }
        yield from self._pod_groups.build(info, train_job, {name: value for name, value in spec.items() if value})


def _queue(info: RuntimeInfo) -> str | None:
    """The queue that TrainJob or runtime name; None means Volcano's queue `default`."""
    return (info.annotations | info.train_job_annotations).get(VOLCANO_QUEUE)
