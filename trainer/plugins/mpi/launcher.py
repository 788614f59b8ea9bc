"""The launcher's replicated Job: it starts after the nodes, ends the training, and may be a node itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.api.jobset import DependsOn, SuccessPolicy
from trainer.api.progress import PRIMARY_POD
from trainer.kube.objects import annotations_of

if TYPE_CHECKING:
    from trainer.framework import PodSet, RuntimeInfo


def count_as_node(info: RuntimeInfo) -> None:
    """Reduce the other nodes by one, as the launcher is a node; a single node leaves none.

    There is then no Job for them at all: a Job without pods would be one more object that says nothing.
    """
    nodes = info.trainer
    if nodes.count == 1:
        nodes.replicas = 0
    else:
        nodes.count -= 1


def start_after_nodes(info: RuntimeInfo, launcher: PodSet) -> None:
    """Start the launcher after its nodes are ready, and after the runtime's own dependencies.

    JobSet wants it behind them for that.
    """
    job, nodes = info.job_of(launcher), info.trainer
    dependencies = job.depends_on or []
    if any(dependency.name == nodes.name for dependency in dependencies):
        return
    job.depends_on = [*dependencies, DependsOn(name=nodes.name, status="Ready")]
    jobs = info.template.replicated_jobs or []
    if info.pod_sets.index(launcher) < info.pod_sets.index(nodes):
        info.pod_sets.remove(launcher)
        info.pod_sets.insert(info.pod_sets.index(nodes) + 1, launcher)
        order = {pod_set.name: position for position, pod_set in enumerate(info.pod_sets)}
        jobs.sort(key=lambda job: order[job.name])


def speak_for_nodes(info: RuntimeInfo, launcher: PodSet) -> None:
    """Make the launcher the primary pod, since its log has the nodes' output, unless the runtime names another.

    That is, unless pods of any template have the annotation (KEP-2779).
    """
    if not any(
        PRIMARY_POD in annotations_of(job.template.spec.template) for job in info.template.replicated_jobs or []
    ):
        launcher.annotations[PRIMARY_POD] = "true"


def end_with_launcher(info: RuntimeInfo) -> None:
    """Make success depend on the launcher alone, since the nodes' sshd never ends, unless the runtime has a policy."""
    if info.template.success_policy is None:
        names = [pod_set.name for pod_set in info.pod_sets if pod_set is not info.trainer]
        info.template.success_policy = SuccessPolicy(operator="All", target_replicated_jobs=names)
