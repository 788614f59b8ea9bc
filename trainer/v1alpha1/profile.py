"""The profile of v1alpha1: what Kubeflow Trainer (Go) makes of runtimes and TrainJobs.

The label on the template of a Job says that it trains, and several may have it. `trainer` is for the container `node`.
MPI knows its Jobs by name, `launcher` and `node`: the label of the launcher makes `trainer` mean the launcher, and
`runLauncherAsNode` adds the nodes for environment and resources.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Iterator
from typing import ClassVar

from trainer.api.labels import ANCESTOR_LABEL
from trainer.api.trainingruntime import MLPolicy
from trainer.api.trainjob import TrainJob
from trainer.framework import LAUNCHER, Ancestor, Container, PodSet, RuntimeInfo, split_command, trainer_env
from trainer.framework.building.profile import Profile
from trainer.framework.building.resources import merged
from trainer.framework.plugin_api.runtime_info import Key
from trainer.kube.field_errors import FieldError
from trainer.kube.merge_patch import merge_patch
from trainer.kube.objects import Object
from trainer.v1alpha1.decode import is_larger_than_the_model

NODE = "node"
"""Name of the container that trains, and of the nodes of an MPI training."""

_BOTH_FIRST = frozenset({"mpi", "jax"})
"""Policies whose variables come before those of the TrainJob in any case."""


def _mark(info: RuntimeInfo) -> None:
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


def _apply_trainer(info: RuntimeInfo, train_job: TrainJob) -> None:
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
        _apply_env(info, train_job)


def _apply_env(info: RuntimeInfo, train_job: TrainJob) -> None:
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


def _strategic_merge(items: list[Object], additions: Iterable[Object], key: Key) -> None:
    """Merge `additions` into the `items` with the same keys, which then stand in the order of the additions.

    New items come as early as that allows: `[A, B]` and `[N]` become `[N, A, B]`, `[A, B]` and `[A, C]` become
    `[A, C, B]`, and `[A, B, C]` and `[C]` keep their order.
    """
    changed = {key(addition): addition for addition in additions}
    if not changed:
        return
    places = {key(item): place for place, item in enumerate(items)}
    own = deque(place for place, item in enumerate(items) if key(item) not in changed)
    result: list[Object] = []
    for name, addition in changed.items():
        place = places.get(name)
        while own and place is not None and own[0] < place:
            result.append(items[own.popleft()])
        result.append(addition if place is None else _merged(items[place], addition))
    items[:] = [*result, *(items[place] for place in own)]


def _merged(item: Object, addition: Object) -> Object:
    """An item with the changes of another; one that says something else, such as another kind of volume, replaces it.

    A kind is a member that is an object: the source of a volume or of the value of a variable.
    """
    if _kinds(item) != _kinds(addition):
        return addition
    return merge_patch(item, addition)


def _kinds(item: Object) -> set[Hashable]:
    kinds: set[Hashable] = {name for name, value in item.items() if isinstance(value, dict)}
    sources = item.get("valueFrom")
    return kinds | {("valueFrom", name) for name in sources} if isinstance(sources, dict) else kinds


class V1Alpha1Info(RuntimeInfo):
    """What plugins get in a cluster of v1alpha1."""

    __slots__ = ()

    rendezvous_port: ClassVar[int] = 29500
    queues_train_job: ClassVar[bool] = True
    counts_gpus_by_name: ClassVar[bool] = True

    @property
    def gang(self) -> list[PodSet]:
        """All pods, if they can all run at the same time; else nodes and peers, and a launcher that trains with them.

        A launcher that starts after the nodes is no member.
        """
        jobs = self.template.replicated_jobs or []
        waits = self._is_in_order or any(job.depends_on for job in jobs)
        if not (waits and self._trainers):
            return self.pod_sets
        members, launcher = super().gang, self.launcher
        if launcher is None or launcher is self.trainer or not self._follows(launcher):
            return members
        return [each for each in members if each is not launcher]

    @property
    def trains(self) -> bool:
        """Whether the first Job with the label of a trainer has the container `node`; a runtime need not have one."""
        return any(pod_set.main for pod_set in self._trainers[:1])

    def gets_variables(self, train_job: TrainJob) -> bool:
        """Whether something trains, and the TrainJob has `spec.trainer`."""
        return self.trains and train_job.spec.trainer is not None

    def sizing_container(self, train_job: TrainJob) -> Container:
        """The main container, or what the TrainJob alone says of it."""
        trainer = train_job.spec.trainer
        if trainer is None or trainer.resources_per_node is None:
            return self.main_container
        return Container(self.main_container.name, resources=trainer.resources_per_node.to_object())

    def secret_name(self, train_job: TrainJob, suffix: str) -> str:
        """A name without a hash."""
        return f"{train_job.metadata.name}-{suffix}"

    @property
    def _trainers(self) -> list[PodSet]:
        return [pod_set for pod_set in self.pod_sets if pod_set.ancestor == Ancestor.TRAINER]

    @property
    def _is_in_order(self) -> bool:
        policy = self.template.startup_policy
        return policy is not None and policy.startup_policy_order == "InOrder"

    def _follows(self, launcher: PodSet) -> bool:
        dependencies = self.job_of(launcher).depends_on or []
        return self._is_in_order or any(each.name == self.trainer.name for each in dependencies)


class V1Alpha1Profile(Profile):
    """The order of Jobs is JobSet's, and what overrides add is merged as by a strategic merge patch."""

    info = V1Alpha1Info
    validates_builds = False
    mark = staticmethod(_mark)
    apply_trainer = staticmethod(_apply_trainer)
    apply_env = staticmethod(_apply_env)
    merge = staticmethod(_strategic_merge)

    def has_bound(self, error: FieldError) -> bool:
        """Whether the CRDs of v1alpha1 have it, too."""
        return not is_larger_than_the_model(error)


V1ALPHA1_PROFILE = V1Alpha1Profile()
