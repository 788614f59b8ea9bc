"""Workload: gang scheduling by Kubernetes itself (KEP-3015 of Kubeflow Trainer).

The pods of the nodes name their PodGroup in `spec.schedulingGroup`; kube-scheduler binds none of them before it has
found a place for `minCount` of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainer.api.trainjob import TrainJob
from trainer.framework import Component, Reader, RuntimeInfo, Watch, unique_name
from trainer.plugins.workload.versions import VERSIONS

TEMPLATE = "trainer"
"""Name of the template of the gang in its Workload, and part of the name of its PodGroup (KEP-3015)."""


class Workload:
    """Builds Workload and PodGroup of the nodes and assigns their pods to the group."""

    name = "workload"
    pod_group_policy_sources = frozenset({"workload"})

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def watches(self) -> Iterator[Watch]:
        """PodGroups and Workloads, if the cluster serves them."""
        for version in VERSIONS:
            yield Watch(version.pod_groups, optional=True)
            yield Watch(version.workloads, optional=True)

    def enforce_pod_group_policy(self, info: RuntimeInfo, train_job: TrainJob) -> None:
        """Name the PodGroup in the pods of the gang."""
        if info.pod_group_policy.workload is not None:
            for pod_set in info.gang:
                pod_set.scheduling_group = unique_name(train_job, TEMPLATE)

    def build(self, info: RuntimeInfo, train_job: TrainJob) -> Iterator[Component]:
        """The Workload and its PodGroup."""
        yield from ()
