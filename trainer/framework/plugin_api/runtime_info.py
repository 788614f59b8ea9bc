"""RuntimeInfo: what a runtime and a TrainJob say, in the form that plugins read and change (KEP-2170)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, NamedTuple, overload

from trainer.api.jobset import JobSetSpec, ReplicatedJob, SuccessPolicy
from trainer.api.labels import ANCESTOR_LABEL
from trainer.api.progress import PRIMARY_POD
from trainer.api.trainingruntime import MLPolicy, PodGroupPolicy
from trainer.api.trainjob import TrainJob
from trainer.framework.plugin_api.component import unique_name
from trainer.framework.plugin_api.devices import USUAL_DEVICES, Devices, DeviceTable
from trainer.framework.plugin_api.errors import BuildError
from trainer.kube.field_errors import invalid
from trainer.kube.objects import Object, annotations_of

Key = Callable[[Object], Hashable]

RENDEZVOUS_PORT = 29400
"""Port of the first node, where the others meet it, in every framework; torchrun's default (KEP-2170 examples)."""

LAUNCHER = "launcher"
"""Name of the replicated Job that starts an MPI training on its nodes (KEP-2170, "MPI Runtime")."""

NODE_RANK = {"fieldRef": {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}
"""`valueFrom` of a node's rank: its index in an Indexed Job."""


@dataclass(frozen=True, slots=True)
class Endpoints(Sequence[str]):
    """The names of the pods of one replicated Job, in the order of Jobs and then of pods."""

    prefix: str
    """The common prefix of the names: `<JobSet>-<replicated Job>`."""
    domain: str
    """Subdomain of the pods, perhaps with the domain of namespace and cluster."""
    replicas: int
    """Jobs of the replicated Job."""
    pods: int
    """Pods of each Job."""

    def __len__(self) -> int:
        return self.replicas * self.pods

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...

    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if isinstance(index, slice):
            return tuple(self[position] for position in range(*index.indices(len(self))))
        position = range(len(self))[index]
        return self.of(position // self.pods, position % self.pods)

    def of(self, replica: int, pod: int) -> str:
        """The name of one pod, whether or not there are so many."""
        return f"{self.prefix}-{replica}-{pod}.{self.domain}"


class Ancestor(StrEnum):
    """The step that a replicated Job is in a TrainJob: the values of `ANCESTOR_LABEL`."""

    TRAINER = "trainer"
    DATASET_INITIALIZER = "dataset-initializer"
    MODEL_INITIALIZER = "model-initializer"


@dataclass(slots=True)
class Container:
    """The part of a container that plugins may change; everything else stays in the template."""

    name: str
    image: str = ""
    command: list[str] = field(default_factory=list)
    args: list[str] = field(default_factory=list)
    env: list[Object] = field(default_factory=list)
    env_from: list[Object] = field(default_factory=list)
    ports: list[Object] = field(default_factory=list)
    volume_mounts: list[Object] = field(default_factory=list)
    resources: Object = field(default_factory=dict)

    def set_env(self, variables: Iterable[Object]) -> None:
        """Add variables; one that exists keeps its place and gets the new value."""
        upsert(self.env, variables, by_name)

    def mount(self, mounts: Iterable[Object]) -> None:
        """Add volume mounts; what is mounted at the same path already gives way."""
        upsert(self.volume_mounts, mounts, by_mount_path)

    def expose(self, port: int) -> None:
        """Declare a TCP port."""
        upsert(self.ports, [{"containerPort": port, "protocol": "TCP"}], by_port)


class NodeRange(NamedTuple):
    """The bounds of the number of nodes of an elastic training."""

    least: int
    most: int


@dataclass(slots=True)
class PodSet:
    """The pods of one replicated Job."""

    name: str
    """Name of the replicated Job, in lower case."""
    ancestor: str | None = None
    """The step of the pods, such as `trainer`; None when the runtime does not say."""
    count: int = 1
    """Pods of each Job."""
    replicas: int = 1
    """Jobs of the replicated Job."""
    containers: list[Container] = field(default_factory=list)
    init_containers: list[Container] = field(default_factory=list)
    volumes: list[Object] = field(default_factory=list)
    main: Container | None = None
    """The container that trains; only in the pod sets of the trainer, of an MPI launcher and of peers."""
    is_peer: bool = False
    """Whether the pods train together with the nodes in another role, such as parameter servers."""
    labels: dict[str, str] = field(default_factory=dict)
    """Labels that the pods get besides those of the template and of the TrainJob."""
    annotations: dict[str, str] = field(default_factory=dict)
    """Annotations that the pods get besides those of the template and of the TrainJob."""
    scheduling_group: str = ""
    """Name of the PodGroup of Kubernetes' Workload API that the pods are members of. Defaults to none."""
    elastic: NodeRange | None = None
    """The bounds of `count`, which may change while the pods run; None when it is fixed."""
    endpoints: Sequence[str] = ()
    """DNS names of the pods in the order of their index; known after the phase PodNetwork."""

    @property
    def most(self) -> int:
        """The greatest number of pods that each Job may ever have."""
        return max(self.count, self.elastic.most) if self.elastic else self.count

    @property
    def least(self) -> int:
        """The least number of pods of all its Jobs together with which they are of use."""
        return (self.elastic.least if self.elastic else self.count) * self.replicas

    @property
    def main_container(self) -> Container:
        """The container that trains, of a pod set that has one."""
        assert self.main is not None, "the pod sets of trainer and launcher have a main container"
        return self.main


@dataclass(slots=True)
class RuntimeInfo:
    """The abstract form of the objects that a TrainJob becomes.

    An API version whose objects differ has a class of its own (`Profile.info`); this one is that of v2alpha1.
    """

    rendezvous_port: ClassVar[int] = RENDEZVOUS_PORT
    """Port of the first node, where the others meet it."""
    queues_train_job: ClassVar[bool] = False
    """Whether Kueue queues the TrainJob, and not its JobSet."""
    counts_gpus_by_name: ClassVar[bool] = False
    """See `DeviceTable.devices_of`."""

    job_name: str
    """Name of the TrainJob and of its JobSet."""
    runtime: str
    """The runtime in words, such as `ClusterTrainingRuntime/torch-distributed`; the start of error messages."""
    pod_domain: str = ""
    """The end of the pods' DNS names, behind the subdomain, such as `.team-a.svc.cluster.local`. Defaults to nothing:
    short names resolve within their namespace, whatever the domain of the cluster."""
    namespace: str = ""
    """The namespace of the TrainJob."""
    device_table: DeviceTable = USUAL_DEVICES
    """Says which resources are devices. Defaults to the usual ones."""
    template: JobSetSpec = field(default_factory=JobSetSpec)
    """The JobSet of the runtime with the TrainJob's pod overrides; private to this info."""
    labels: dict[str, str] = field(default_factory=dict)
    """Labels that the runtime gives the JobSet."""
    annotations: dict[str, str] = field(default_factory=dict)
    """Annotations that the runtime gives the JobSet."""
    train_job_labels: dict[str, str] = field(default_factory=dict)
    """Labels that the TrainJob gives the JobSet, its Jobs and pods; they win over the runtime's."""
    train_job_annotations: dict[str, str] = field(default_factory=dict)
    """Annotations that the TrainJob gives the JobSet, its Jobs and pods; they win over the runtime's."""
    ml_policy: MLPolicy = field(default_factory=MLPolicy)
    pod_group_policy: PodGroupPolicy = field(default_factory=PodGroupPolicy)
    has_default_gang: bool = False
    """Whether podGroupPolicy comes from gangScheduling of the manager, and not from the runtime. Defaults to no."""
    pod_sets: list[PodSet] = field(default_factory=list)
    """One for each replicated Job of the template, in the same order."""

    @property
    def trainer(self) -> PodSet:
        """The pod set of the training nodes; `count` is their number, without an MPI launcher that trains as well.

        Raises:
            BuildError: the runtime has none.
        """
        for pod_set in self.pod_sets:
            if pod_set.ancestor == Ancestor.TRAINER:
                return pod_set
        names = [pod_set.name for pod_set in self.pod_sets]
        label = f"{ANCESTOR_LABEL}: {Ancestor.TRAINER}"
        rule = f"none of them is the trainer; name one node or trainer-node, or label its template {label}"
        raise BuildError(invalid(f"{self.runtime} spec.template.spec.replicatedJobs", names, rule))

    @property
    def launcher(self) -> PodSet | None:
        """The pod that starts an MPI training on its nodes; None where every node starts by itself."""
        if self.ml_policy.mpi is None:
            return None
        return next((pod_set for pod_set in self.pod_sets if pod_set.name == LAUNCHER), None)

    @property
    def launcher_trains(self) -> bool:
        """Whether an MPI launcher is one of the nodes."""
        mpi = self.ml_policy.mpi
        return mpi is not None and mpi.run_launcher_as_node and self.launcher is not None

    @property
    def gang(self) -> list[PodSet]:
        """The pods that are of use only together, of one replicated Job or more: the training nodes and their peers.

        Initializers and exporters run before and after them, and a launcher that does not train waits until they are
        ready: as members they would keep the nodes waiting forever. A launcher that trains is a member, and does not
        wait.
        """
        launcher = self.launcher if self.launcher_trains else None
        return [*([] if launcher in (None, self.trainer) else [launcher]), self.trainer, *self.peers]

    @property
    def trains(self) -> bool:
        """Whether the runtime has a container that trains."""
        return True

    def gets_variables(self, train_job: TrainJob) -> bool:  # noqa: ARG002 - other versions decide by it
        """Whether the container that trains gets the variables of its framework."""
        return self.trains

    def sizing_container(self, train_job: TrainJob) -> Container:  # noqa: ARG002 - other versions decide by it
        """What the CPUs of a node are counted of."""
        return self.main_container

    def secret_name(self, train_job: TrainJob, suffix: str) -> str:
        """The name of a Secret that is generated for the TrainJob."""
        return unique_name(train_job, suffix)

    @property
    def peers(self) -> list[PodSet]:
        """The pod sets that train together with the nodes in another role, such as parameter servers."""
        return [pod_set for pod_set in self.pod_sets if pod_set.is_peer]

    @property
    def training_pod_sets(self) -> list[PodSet]:
        """An MPI launcher, if there is one, the nodes and their peers.

        The main container of the first runs the command.
        """
        return [*([self.launcher] if self.launcher else []), self.trainer, *self.peers]

    @property
    def main_container(self) -> Container:
        """The container that runs the command of the TrainJob: that of an MPI launcher, else of a node."""
        return (self.launcher or self.trainer).main_container

    @property
    def training_containers(self) -> list[Container]:
        """The main containers of nodes, peers and an MPI launcher, which share image and environment."""
        return [pod_set.main_container for pod_set in self.training_pod_sets]

    def devices_of(self, container: Container) -> Devices:
        """The devices of a container, by its resources and claims."""
        holders = {id(each): pod_set for pod_set in self.pod_sets for each in pod_set.containers}
        holder = holders.get(id(container))
        pod = self.job_of(holder).template.spec.template.get("spec") if holder else None
        return self.device_table.devices_of(
            container.resources, pod or {}, self.namespace, by_name=self.counts_gpus_by_name
        )

    def job_of(self, pod_set: PodSet) -> ReplicatedJob:
        """The replicated Job of a pod set, for what RuntimeInfo has no field for."""
        for job in self.template.replicated_jobs or []:
            if job.name == pod_set.name:
                return job
        raise LookupError(f"{self.runtime} has no replicated Job {pod_set.name}")

    def report_from(self, pod_set: PodSet) -> None:
        """Make the first pod of a pod set the primary pod (KEP-2779), unless a template of the runtime has one."""
        templates = (job.template.spec.template for job in self.template.replicated_jobs or [])
        if not any(PRIMARY_POD in annotations_of(template) for template in templates):
            pod_set.annotations[PRIMARY_POD] = "true"

    def succeed_without(self, pod_sets: Collection[PodSet]) -> None:
        """Make success depend on all other pod sets, since these never end, unless the runtime has a policy."""
        if self.template.success_policy is None:
            names = [pod_set.name for pod_set in self.pod_sets if pod_set not in pod_sets]
            self.template.success_policy = SuccessPolicy(operator="All", target_replicated_jobs=names)

    @property
    def subdomain(self) -> str:
        """Subdomain of the DNS names of all pods."""
        network = self.template.network
        return (network and network.subdomain) or self.job_name

    def endpoints_of(self, pod_set: PodSet) -> Endpoints:
        """DNS names of the pods of a pod set as it is at this moment."""
        domain = f"{self.subdomain}{self.pod_domain}"
        return Endpoints(f"{self.job_name}-{pod_set.name}", domain, pod_set.replicas, pod_set.count)

    def head_address(self) -> str:
        """DNS name of the first training node, where the others meet."""
        network = self.template.network
        if network and network.enable_dns_hostnames is False:
            field = f"{self.runtime} spec.template.spec.network.enableDNSHostnames"
            rule = "must not be false: training nodes find each other by their DNS names"
            raise BuildError(invalid(field, value=False, detail=rule))
        return self.endpoints_of(self.trainer).of(0, 0)


def upsert(items: list[Object], additions: Iterable[Object], key: Key) -> None:
    """Replace the entry of `items` with the same key, in its place, or append."""
    positions = {key(item): position for position, item in enumerate(items)}
    for addition in additions:
        position = positions.setdefault(key(addition), len(items))
        items[position : position + 1] = [addition]


def by_name(item: Object) -> Hashable:
    """Key of environment variables and volumes."""
    return item.get("name")


def by_mount_path(item: Object) -> Hashable:
    """Key of volume mounts."""
    return item.get("mountPath")


def by_port(item: Object) -> Hashable:
    """Key of container ports; TCP is the protocol when none is named."""
    return item.get("containerPort"), item.get("protocol") or "TCP"


def by_source(item: Object) -> Hashable:
    """Key of sources of environment variables: which ConfigMap or Secret, and the prefix."""
    config_map, secret = item.get("configMapRef") or {}, item.get("secretRef") or {}
    return config_map.get("name"), secret.get("name"), item.get("prefix") or ""


def by_taint(item: Object) -> Hashable:
    """Key of tolerations: which taint they tolerate."""
    return item.get("key") or "", item.get("effect") or ""
