"""What `spec.trainer` changes with v1alpha1.

The label on the template of a Job says that it trains, and several may have it. `trainer` is for the container `node`.
MPI knows its Jobs by name, `launcher` and `node`: the label of the launcher makes `trainer` mean the launcher, and
`runLauncherAsNode` adds the nodes for environment and resources.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainer.api.labels import ANCESTOR_LABEL
from trainer.api.trainingruntime import MLPolicy
from trainer.api.trainjob import TrainJob
from trainer.framework import LAUNCHER, Ancestor, Container, PodSet, RuntimeInfo, split_command, trainer_env
from trainer.framework.building.resources import merged

NODE = "node"
"""Name of the container that trains, and of the nodes of an MPI training."""

_BOTH_FIRST = frozenset({"mpi", "jax"})
"""Policies whose variables come before those of the TrainJob in any case."""


def mark(info: RuntimeInfo) -> None:
    """Mark the pod sets that train, each with `mlPolicy.numNodes` pods; a Job with a step has one replica."""
    for pod_set in info.pod_sets:
        pod_set.ancestor = _label(info, pod_set)
        if pod_set.ancestor in set(Ancestor):
            pod_set.replicas = 1
    for pod_set in info.pod_sets:
        if pod_set.ancestor == Ancestor.TRAINER:
            pod_set.main = _node(pod_set)
            if _has_policy(info):
                # Several launchers would all run the command.
                pod_set.count = 1 if pod_set is info.launcher else max(info.ml_policy.num_nodes or 1, 1)
    if info.ml_policy.mpi is not None:
        _mark_mpi(info)


def apply(info: RuntimeInfo, train_job: TrainJob) -> None:
    """Put image, command, args, resources and number of nodes into the pod sets that train."""
    trainer = train_job.spec.trainer
    if trainer is None:
        return
    for container in _containers(_labelled(info)):
        if trainer.image is not None:
            container.image = trainer.image
        if trainer.command is not None:
            container.command = split_command(trainer.command, "spec.trainer.command")
        if trainer.args is not None:
            container.args = list(trainer.args)
    labelled = next(_labelled(info), None)
    if trainer.num_nodes is not None and labelled is not None and info.ml_policy.mpi is None:
        labelled.count = trainer.num_nodes
    if trainer.resources_per_node is not None and _has_policy(info):
        for container in _containers(_with_nodes(info)):
            container.resources = merged(container.resources, trainer.resources_per_node)
    if info.ml_policy.source not in _BOTH_FIRST:
        apply_env(info, train_job)


def apply_env(info: RuntimeInfo, train_job: TrainJob) -> None:
    """Merge `spec.trainer.env` into the pod sets that train: it takes precedence over the runtime and the plugins."""
    variables = trainer_env(train_job)
    for container in _containers(_with_nodes(info)):
        container.set_env(variables)


def _has_policy(info: RuntimeInfo) -> bool:
    """Whether the runtime has a `mlPolicy`; an empty one is decoded as that of one node."""
    return info.ml_policy != MLPolicy()


def _mark_mpi(info: RuntimeInfo) -> None:
    """Make the Jobs called node and launcher nodes and launcher, as plugins know them; a launcher alone is both."""
    has_nodes = any(pod_set.name == NODE for pod_set in info.pod_sets)
    for pod_set in info.pod_sets:
        if pod_set.name == NODE:
            pod_set.ancestor, pod_set.main = Ancestor.TRAINER, _node(pod_set)
        elif pod_set.name == LAUNCHER and has_nodes:
            pod_set.ancestor, pod_set.main = None, _node(pod_set)


def _label(info: RuntimeInfo, pod_set: PodSet) -> str | None:
    metadata = info.job_of(pod_set).template.metadata
    return ((metadata and metadata.labels) or {}).get(ANCESTOR_LABEL)


def _labelled(info: RuntimeInfo) -> Iterator[PodSet]:
    return (pod_set for pod_set in info.pod_sets if _label(info, pod_set) == Ancestor.TRAINER)


def _with_nodes(info: RuntimeInfo) -> Iterator[PodSet]:
    """The labelled pod sets, and the nodes of an MPI training whose launcher is one of them."""
    mpi = info.ml_policy.mpi
    for pod_set in info.pod_sets:
        is_node = mpi is not None and mpi.run_launcher_as_node and pod_set.name == NODE
        if is_node or _label(info, pod_set) == Ancestor.TRAINER:
            yield pod_set


def _containers(pod_sets: Iterator[PodSet]) -> Iterator[Container]:
    return (container for pod_set in pod_sets if (container := _node(pod_set)) is not None)


def _node(pod_set: PodSet) -> Container | None:
    return next((container for container in pod_set.containers if container.name == NODE), None)
