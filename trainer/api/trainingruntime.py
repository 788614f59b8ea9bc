"""TrainingRuntime and ClusterTrainingRuntime: the blueprints (KEP-2170, "The Training Runtime API")."""

from __future__ import annotations

from typing import Annotated, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from trainer.api.jobset import JobSetSpec
from trainer.api.metadata import ObjectMetadata, TemplateMetadata
from trainer.api.model import ApiModel, Count, Int32, JsonObject, NumberOfProcesses, cel_rule
from trainer.kube.resource import Resource

TRAINING_RUNTIMES = Resource("trainer.kubeflow.org", "v2alpha1", "trainingruntimes", "TrainingRuntime")
CLUSTER_TRAINING_RUNTIMES = Resource(
    "trainer.kubeflow.org", "v2alpha1", "clustertrainingruntimes", "ClusterTrainingRuntime", namespaced=False
)


class TorchElasticPolicy(ApiModel):
    """Elastic PyTorch training: nodes may come and go. numNodes must be left out."""

    max_restarts: Count | None = None
    """How often the training may be restarted."""
    min_nodes: Annotated[Int32, Field(ge=1)] | None = None
    """The fewest nodes with which the training goes on."""
    max_nodes: Annotated[Int32, Field(ge=1)] | None = None
    """The most nodes that the training may grow to."""
    metrics: list[JsonObject] | None = None
    """Metrics of the HorizontalPodAutoscaler (autoscaling/v2) that chooses the number of nodes."""


class TorchMLPolicySource(ApiModel):
    """Distributed PyTorch, started by torchrun."""

    num_proc_per_node: NumberOfProcesses | None = None
    """Processes on every node: auto, cpu, gpu or an integer. Defaults to auto."""
    elastic_policy: TorchElasticPolicy | None = None
    """Elastic training."""


class MPIMLPolicySource(ApiModel):
    """Training that is orchestrated by MPI."""

    num_proc_per_node: Annotated[Int32, Field(ge=1)] | None = None
    """Processes on every node: the slots in the host file."""
    mpi_implementation: Literal["OpenMPI", "Intel", "MPICH"] | None = None
    """Flavour of the host file. Defaults to OpenMPI."""
    ssh_auth_mount_path: Annotated[str | None, Field(alias="SSHAuthMountPath")] = None
    """Directory where the SSH keys are mounted."""
    run_launcher_as_node: bool | None = None
    """Whether the launcher trains as well. Defaults to false."""


class JAXMLPolicySource(ApiModel):
    """Distributed JAX."""


_SOURCES = ("torch", "mpi", "jax")


class MLPolicy(ApiModel):
    """Settings of the training that depend on the machine learning framework."""

    num_nodes: Annotated[Int32, Field(ge=1)] | None = None
    """Number of training nodes. Defaults to 1."""
    torch: TorchMLPolicySource | None = None
    """Distributed PyTorch."""
    mpi: MPIMLPolicySource | None = None
    """Training that is orchestrated by MPI."""
    jax: JAXMLPolicySource | None = None
    """Distributed JAX."""

    @property
    def source(self) -> str | None:
        """The member that is set: `torch`, `mpi` or `jax`; None for a runtime of no particular framework."""
        return next((name for name in _SOURCES if getattr(self, name) is not None), None)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if sum(getattr(self, name) is not None for name in _SOURCES) > 1:
            raise ValueError(f"only one of {', '.join(_SOURCES)} may be set")
        if self.torch and self.torch.elastic_policy and self.num_nodes is not None:
            raise ValueError("numNodes must be left out when torch.elasticPolicy is set; use minNodes and maxNodes")
        return self


class CoschedulingPodGroupPolicySource(ApiModel):
    """Gang scheduling by the coscheduling plugin of the Kubernetes scheduler-plugins."""

    schedule_timeout_seconds: Annotated[Int32, Field(ge=0)] | None = None
    """Seconds to wait until all pods can be scheduled. Defaults to 60."""


class PodGroupPolicy(ApiModel):
    """Gang scheduling: start all pods or none."""

    coscheduling: CoschedulingPodGroupPolicySource | None = None
    """Gang scheduling by the coscheduling plugin of the Kubernetes scheduler-plugins."""

    @property
    def source(self) -> str | None:
        """The member that is set, or None."""
        return "coscheduling" if self.coscheduling is not None else None


class JobSetTemplate(ApiModel):
    """The JobSet that TrainJobs become; it gets their name and namespace."""

    metadata: TemplateMetadata | None = None
    """Labels and annotations of the JobSet."""
    spec: JobSetSpec = Field(default_factory=JobSetSpec)
    """The JobSet."""


class TrainingRuntimeSpec(ApiModel):
    """The blueprint."""

    ml_policy: Annotated[
        MLPolicy | None,
        Field(
            json_schema_extra=cel_rule(
                "[has(self.torch), has(self.mpi), has(self.jax)].filter(present, present).size() <= 1",
                "only one of torch, mpi, jax may be set",
            )
        ),
    ] = None
    """Settings that depend on the machine learning framework."""
    pod_group_policy: PodGroupPolicy | None = None
    """Gang scheduling."""
    template: JobSetTemplate
    """The JobSet that TrainJobs become."""


class TrainingRuntime(ApiModel):
    """A blueprint for TrainJobs of its namespace."""

    api_version: Literal["trainer.kubeflow.org/v2alpha1"] = "trainer.kubeflow.org/v2alpha1"
    kind: Literal["TrainingRuntime"] = "TrainingRuntime"
    metadata: ObjectMetadata = Field(default_factory=ObjectMetadata)
    spec: TrainingRuntimeSpec
    """The blueprint."""


class ClusterTrainingRuntime(ApiModel):
    """A blueprint for TrainJobs of all namespaces."""

    api_version: Literal["trainer.kubeflow.org/v2alpha1"] = "trainer.kubeflow.org/v2alpha1"
    kind: Literal["ClusterTrainingRuntime"] = "ClusterTrainingRuntime"
    metadata: ObjectMetadata = Field(default_factory=ObjectMetadata)
    spec: TrainingRuntimeSpec
    """The blueprint."""


Runtime: TypeAlias = TrainingRuntime | ClusterTrainingRuntime
"""Either kind of blueprint; they differ only in who may use them."""
