"""Which part of a runtime trains, and what `spec.trainer` changes there (KEP-2170, "The Trainer API")."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from trainer.api.jobset import ReplicatedJob
from trainer.api.labels import ANCESTOR_LABEL
from trainer.api.trainingruntime import MLPolicy
from trainer.api.trainjob import TrainJob
from trainer.framework.building.overrides import container_overrides
from trainer.framework.building.resources import completed, merged, without_devices
from trainer.framework.building.template import split_command
from trainer.framework.plugin_api.errors import BuildError
from trainer.framework.plugin_api.runtime_info import Ancestor, Container, NodeRange, PodSet, RuntimeInfo
from trainer.kube.field_errors import FieldError, forbidden, invalid
from trainer.kube.objects import Object
from trainer.workloads.containers import TRAINER_CONTAINERS

TRAINER_JOBS = ("node", "trainer-node")
"""Names of replicated Jobs that train unless a label names another: those of the KEP and of Kubeflow Trainer."""
PROCESSES = "spec.trainer.numProcPerNode"
"""The field of `stated_processes`, for errors."""


class NodeCount(NamedTuple):
    """The nodes of a training."""

    nodes: int
    """The number at the start."""
    elastic: NodeRange | None
    """The bounds of an elastic training; None for a fixed number."""


def node_count(policy: MLPolicy, of_template: int, stated: int | None = None) -> NodeCount:
    """Webhooks, build and commands all ask this; nothing that a webhook defaults is needed.

    Each bound of an elastic policy defaults to the other, and both to the number at the start.

    Args:
        policy: of the runtime.
        of_template: pods of the Job that trains, as its template has them.
        stated: `numNodes` of the TrainJob. Defaults to the least of an elastic training, else `numNodes` of the policy,
            else the number of the template.
    """
    count = of_template if policy.num_nodes is None else policy.num_nodes
    elastic = policy.torch.elastic_policy if policy.torch is not None else None
    if elastic is None:
        return NodeCount(count if stated is None else stated, None)
    if stated is None:
        stated = count if elastic.bounds is None else elastic.bounds[0]
    return NodeCount(stated, NodeRange(*(elastic.bounds or (stated, stated))))


def stated_ancestor(job: ReplicatedJob) -> str | None:
    """The label that says what a replicated Job does, on its Job template or its pod template."""
    job_labels = (job.template.metadata and job.template.metadata.labels) or {}
    pod_labels = (job.template.spec.template.get("metadata") or {}).get("labels") or {}
    return job_labels.get(ANCESTOR_LABEL) or pod_labels.get(ANCESTOR_LABEL)


def mark_trainer(info: RuntimeInfo) -> None:
    """Find the pod set that trains, its main container and its number of nodes; a runtime may have none."""
    pod_set = _find_pod_set(info)
    if pod_set is None:
        return
    launcher = info.launcher
    if launcher is not None:
        # Runtimes of Kubeflow Trainer label it as the trainer; the nodes are what numNodes counts.
        launcher.ancestor = None
        launcher.main = _find_main(launcher, f"{_path(info, launcher)}.template.spec.template.spec.containers")
    _take_part(info, pod_set, "spec.mlPolicy.numNodes")
    pod_set.ancestor = Ancestor.TRAINER
    if launcher is not None and info.launcher_trains:
        container = launcher.main_container
        container.resources = completed(container.resources, pod_set.main_container.resources)
    for peer in _peers(info):
        _take_part(info, peer, "parallelism of the Job")
        peer.ancestor, peer.is_peer = None, True
    pod_set.count, pod_set.elastic = node_count(info.ml_policy, pod_set.count)


def _take_part(info: RuntimeInfo, pod_set: PodSet, size: str) -> None:
    """Find the main container of pods that have a rank in the training, and refuse Jobs that give them none."""
    path = _path(info, pod_set)
    if pod_set.replicas != 1:
        who = "for the trainer" if pod_set not in _peers(info) else f"for {pod_set.name}"
        raise BuildError(invalid(f"{path}.replicas", pod_set.replicas, f"must be 1 {who}; set {size} instead"))
    if info.job_of(pod_set).template.spec.completion_mode == "NonIndexed":
        rule = "must be Indexed: a node's rank is its index"
        raise BuildError(invalid(f"{path}.template.spec.completionMode", "NonIndexed", rule))
    pod_set.main = _find_main(pod_set, f"{path}.template.spec.template.spec.containers")


def _peers(info: RuntimeInfo) -> list[PodSet]:
    return [pod_set for pod_set in info.pod_sets if pod_set.name in info.ml_policy.peers]


def apply_trainer(info: RuntimeInfo, train_job: TrainJob) -> None:
    """Put image, command, args, resources and number of nodes of `spec.trainer` into the trainer.

    With an MPI launcher, which starts the training, command and args are the launcher's; the image is that of both,
    for what is started must be on every node; and resources are for the nodes, and for a launcher that is one of them,
    which has those of a node in the runtime as well, where it states none of its own. Peers of the nodes that state
    neither processors nor memory get as much as a node has of them.
    """
    trainer = train_job.spec.trainer
    if trainer is None:
        return
    container = info.main_container
    if trainer.image is not None:
        for each in info.training_containers:
            each.image = trainer.image
    if trainer.command is not None:
        container.command = split_command(trainer.command, "spec.trainer.command")
    if trainer.args is not None:
        container.args = list(trainer.args)
    if trainer.num_nodes is not None:
        nodes = info.trainer
        nodes.count, nodes.elastic = node_count(info.ml_policy, nodes.count, trainer.num_nodes)
    if trainer.resources_per_node is not None:
        for each in _containers_of_nodes(info):
            each.resources = merged(each.resources, trainer.resources_per_node)
        for peer in info.peers:
            if not without_devices(peer.main_container.resources):
                shared = without_devices(info.trainer.main_container.resources)
                peer.main_container.resources = completed(peer.main_container.resources, shared)


def apply_trainer_env(info: RuntimeInfo, train_job: TrainJob) -> None:
    """Merge `spec.trainer.env` into the training containers: it wins over the runtime and over plugins.

    Variables that a plugin must have its way with are refused by its validation. Being appended last, the TrainJob's
    variables can refer to those of the plugins as $(NAME).
    """
    variables = trainer_env(train_job)
    if not variables:
        return
    for container in info.training_containers:
        container.set_env(variables)


def trainer_env(train_job: TrainJob) -> list[Object]:
    """The environment variables of `spec.trainer`, as JSON."""
    trainer = train_job.spec.trainer
    return [variable.to_object() for variable in (trainer and trainer.env) or []]


def nodes_field(info: RuntimeInfo, train_job: TrainJob) -> str:
    """The field that says how many nodes there are, for errors about their number."""
    trainer = train_job.spec.trainer
    is_own = trainer is not None and trainer.num_nodes is not None
    return "spec.trainer.numNodes" if is_own else f"{info.runtime} spec.mlPolicy.numNodes"


def stated_processes(train_job: TrainJob) -> int | str | None:
    """The processes on a node that the TrainJob asks for: a number, auto, cpu or gpu; None if it says nothing."""
    trainer = train_job.spec.trainer
    stated = trainer.num_proc_per_node if trainer else None
    return int(stated) if isinstance(stated, str) and stated.isdigit() else stated


def check_processes(stated: int | str | None, gpus: int, reason: str = "") -> Iterator[FieldError]:
    """Refuse `gpu` on nodes without GPUs, and `cpu` if there is a reason."""
    if stated == "cpu" and reason:
        yield invalid(PROCESSES, stated, f"must be a number, gpu or auto: {reason}")
    if stated == "gpu" and not gpus:
        yield invalid(PROCESSES, stated, "must not be gpu without GPUs; add them to spec.trainer.resourcesPerNode")


def check_one_process_per_node(train_job: TrainJob) -> Iterator[FieldError]:
    """Refuse a number of processes that a framework with one process per node would ignore."""
    trainer = train_job.spec.trainer
    if trainer is not None and stated_processes(train_job) not in {None, "auto", 1}:
        rule = "must be 1 or absent: only torch, MPI and JAX runtimes start several processes on a node"
        yield invalid(PROCESSES, trainer.num_proc_per_node, rule)


def _find_pod_set(info: RuntimeInfo) -> PodSet | None:
    others = [info.launcher, *_peers(info)]
    labelled = [pod_set for pod_set in info.pod_sets if pod_set.ancestor == Ancestor.TRAINER and pod_set not in others]
    candidates = labelled or [
        pod_set for pod_set in info.pod_sets if pod_set.ancestor is None and pod_set.name in TRAINER_JOBS
    ]
    if len(candidates) > 1:
        names = [pod_set.name for pod_set in candidates]
        rule = f"each of them could be the trainer; label the template of one {ANCESTOR_LABEL}: {Ancestor.TRAINER}"
        raise BuildError(invalid(f"{info.runtime} spec.template.spec.replicatedJobs", names, rule))
    return candidates[0] if candidates else None


def _containers_of_nodes(info: RuntimeInfo) -> list[Container]:
    return info.training_containers if info.launcher_trains else [info.trainer.main_container]


def _path(info: RuntimeInfo, pod_set: PodSet) -> str:
    return f"{info.runtime} spec.template.spec.replicatedJobs[{pod_set.name}]"


def _find_main(pod_set: PodSet, path: str) -> Container:
    by_name = {container.name: container for container in pod_set.containers}
    for name in TRAINER_CONTAINERS:
        if name in by_name:
            return by_name[name]
    if len(pod_set.containers) > 1:
        raise BuildError(
            invalid(path, list(by_name), "one must be called trainer, because nothing else tells which of them trains")
        )
    return pod_set.containers[0]


def check_reserved_env(
    info: RuntimeInfo, train_job: TrainJob, reserved: AbstractSet[str], plugin: str
) -> Iterator[FieldError]:
    """Refuse variables of a TrainJob that only a plugin sets, wherever it can set them for a training container."""
    for path, names in _env_names(info, train_job):
        found = sorted(reserved & set(names))
        if found:
            yield forbidden(path, f"must not set {', '.join(found)}, which the {plugin} plugin sets; remove it")


def _env_names(info: RuntimeInfo, train_job: TrainJob) -> Iterator[tuple[str, list[str]]]:
    yield "spec.trainer.env", [variable["name"] for variable in trainer_env(train_job)]
    for pod_set in info.training_pod_sets:
        for path, change in container_overrides(train_job, pod_set, pod_set.main_container):
            yield f"{path}.env", [variable.name for variable in change.env or []]
