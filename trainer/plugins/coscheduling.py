"""Coscheduling: gang scheduling by the coscheduling plugin of the Kubernetes scheduler-plugins (KEP-2170).

The pods of the nodes name their PodGroup in a label; the scheduler that `schedulerName` of the runtime names binds none
of them before it has found a place for all, and gives up those that it has found after `scheduleTimeoutSeconds`.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainer.api.trainjob import TrainJob
from trainer.framework import Component, Finding, PodGroups, Reader, RuntimeInfo, Watch, scheduler_warnings
from trainer.kube.resource import Resource

POD_GROUPS = Resource("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup")

POD_GROUP_LABEL = "scheduling.x-k8s.io/pod-group"
"""Label of the pods of a gang: the name of their PodGroup."""

DEFAULT_TIMEOUT = 60
"""Seconds that a `scheduleTimeoutSeconds` of 0 stands for."""


class Coscheduling:
    """Builds the PodGroup of the nodes and assigns their pods to it."""

    name = "coscheduling"
    pod_group_policy_sources = frozenset({"coscheduling"})

    def __init__(self, reader: Reader) -> None:
        self._pod_groups = PodGroups(POD_GROUPS, self.name, "Kubernetes scheduler-plugins", reader)

    def watches(self) -> Iterator[Watch]:
        """PodGroups, if the cluster serves them, and the objects that their amounts come from."""
        yield from self._pod_groups.watches()

    def validate(self, info: RuntimeInfo, old: TrainJob | None, new: TrainJob) -> Iterator[Finding]:
        """Refuse gangs while the cluster does not serve PodGroups; warn of pods without a schedulerName."""
        if info.pod_group_policy.coscheduling is None:
            return
        yield from self._pod_groups.check(info)
        text = (
            "is {scheduler}, so the default scheduler decides about each pod alone, unless it has the coscheduling "
            "plugin; name the scheduler that has it, even default-scheduler"
        )
        yield from scheduler_warnings(info, info.gang, bool, text)

    def enforce_pod_group_policy(self, info: RuntimeInfo, train_job: TrainJob) -> None:
        """Label the pods of the gang."""
        if info.pod_group_policy.coscheduling is not None:
            for pod_set in info.gang:
                pod_set.labels[POD_GROUP_LABEL] = info.job_name

    def build(self, info: RuntimeInfo, train_job: TrainJob) -> Iterator[Component]:
        """The PodGroup."""
        policy = info.pod_group_policy.coscheduling
        if policy is not None:
            timeout = policy.schedule_timeout_seconds or DEFAULT_TIMEOUT
            yield from self._pod_groups.build(info, train_job, {"scheduleTimeoutSeconds": timeout})
