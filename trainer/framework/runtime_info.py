"""RuntimeInfo: what a runtime and a TrainJob say, in the form that plugins read and change (KEP-2170)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from trainer.api.jobset import JobSetSpec
from trainer.api.trainingruntime import MLPolicy, PodGroupPolicy
from trainer.framework.endpoints import Endpoints
from trainer.framework.errors import BuildError
from trainer.framework.upsert import by_name, by_port, upsert
from trainer.kube.field_errors import invalid

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from trainer.kube.objects import Object

RENDEZVOUS_PORT = 29400
"""Where the first node waits for the others, whatever the framework; torchrun's default (KEP-2170 examples)."""

NODE_RANK = {"fieldRef": {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}
"""`valueFrom` of a node's rank: its index in an Indexed Job."""


class Ancestor(StrEnum):
    """What a replicated Job does for the TrainJob: values of `ANCESTOR_LABEL`."""

    TRAINER = "trainer"
    DATASET_INITIALIZER = "dataset-initializer"
    MODEL_INITIALIZER = "model-initializer"


ANCESTOR_LABEL = "trainer.kubeflow.org/trainjob-ancestor-step"


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

    def expose(self, port: int) -> None:
        """Declare a TCP port."""
        upsert(self.ports, [{"containerPort": port, "protocol": "TCP"}], by_port)


@dataclass(slots=True)
class PodSet:
    """The pods of one replicated Job."""

    name: str
    """Name of the replicated Job, in lower case."""
    ancestor: str | None = None
    """What the pods do, such as `trainer`; None when the runtime does not say."""
    count: int = 1
    """Pods of each Job."""
    replicas: int = 1
    """Jobs of the replicated Job."""
    containers: list[Container] = field(default_factory=list)
    init_containers: list[Container] = field(default_factory=list)
    volumes: list[Object] = field(default_factory=list)
    main: Container | None = None
    """The container that trains; only in the trainer's pod set."""
    endpoints: Sequence[str] = ()
    """DNS names of the pods in the order of their index; known after the phase PodNetwork."""


@dataclass(slots=True)
class Scheduler:
    """What the pods of all pod sets tell the scheduler."""

    pod_labels: dict[str, str] = field(default_factory=dict)
    pod_annotations: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class RuntimeInfo:
    """The abstract form of the objects that a TrainJob becomes."""

    job_name: str
    """Name of the TrainJob and of its JobSet."""
    runtime: str
    """The runtime in words, such as `ClusterTrainingRuntime/torch-distributed`; the start of error messages."""
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
    pod_sets: list[PodSet] = field(default_factory=list)
    """One for each replicated Job of the template, in the same order."""
    scheduler: Scheduler = field(default_factory=Scheduler)

    @property
    def trainer(self) -> PodSet:
        """The pod set that trains.

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
    def main_container(self) -> Container:
        """The container that trains.

        Raises:
            BuildError: the runtime has no trainer.
        """
        main = self.trainer.main
        assert main is not None, "the trainer's pod set has a main container"
        return main

    @property
    def subdomain(self) -> str:
        """Subdomain of the DNS names of all pods."""
        network = self.template.network
        return (network and network.subdomain) or self.job_name

    def endpoints_of(self, pod_set: PodSet) -> Endpoints:
        """DNS names of the pods of a pod set as it is at this moment."""
        return Endpoints(f"{self.job_name}-{pod_set.name}", self.subdomain, pod_set.replicas, pod_set.count)

    def head_address(self) -> str:
        """DNS name of the first training node, where the others meet.

        Raises:
            BuildError: the runtime has no trainer, or gives its pods no DNS names.
        """
        network = self.template.network
        if network and network.enable_dns_hostnames is False:
            field = f"{self.runtime} spec.template.spec.network.enableDNSHostnames"
            rule = "must not be false: training nodes find each other by their DNS names"
            raise BuildError(invalid(field, value=False, detail=rule))
        return self.endpoints_of(self.trainer).of(0, 0)
