"""TrainingRuntime and ClusterTrainingRuntime of v1alpha1, for their CustomResourceDefinitions.

The JobSet template is that of v2alpha1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final, Literal

from pydantic import ConfigDict, Field

from trainer.api import rules
from trainer.api.metadata import ObjectMetadata
from trainer.api.model import ApiModel, Int32, list_map, set_list
from trainer.api.trainingruntime import JobSetTemplate, VolcanoNetworkTopology, WorkloadPodGroupPolicySource
from trainer.kube.field_errors import OMITTED, FieldError, invalid

_POLICIES: Final = ("torch", "mpi", "jax", "xgboost", "flux")
_ONE_POLICY: Final = "Only one of the policy can be configured"
_NOT_NODE: Final = (
    "containerNames must not include the main node container because PET_* envs are always injected into it"
)


class EnvInjectionTarget(ApiModel):
    """Containers of one replicated Job that need the variables of torchrun, too."""

    job_name: Annotated[str, Field(min_length=1, max_length=253)]
    """Name of the replicated Job."""
    container_names: Annotated[
        list[Annotated[str, Field(max_length=63)]],
        Field(
            json_schema_extra=set_list(8, 1)
            | rules.cel_rules(rules.cel_rule("!self.exists(c, c == 'node')", _NOT_NODE))
        ),
    ]
    """Names of containers and init containers."""


class EnvInjection(ApiModel):
    """Which other containers get the variables of torchrun."""

    targets: Annotated[list[EnvInjectionTarget], Field(json_schema_extra=list_map("jobName", 16))] | None = None
    """The containers, by replicated Job."""


class TorchMLPolicySource(ApiModel):
    """Distributed PyTorch, started by torchrun."""

    env_injection: EnvInjection | None = None
    """Which other containers get the variables of torchrun."""


class MPIMLPolicySource(ApiModel):
    """Training that is orchestrated by MPI."""

    num_proc_per_node: Int32 = 1
    """Processes on every node: the slots in the host file; 1 counts the GPUs of a node where it has any."""
    mpi_implementation: Literal["OpenMPI", ""] = "OpenMPI"
    """Flavour of the host file."""
    ssh_auth_mount_path: Annotated[str, Field(max_length=4096)] = "/root/.ssh"
    """Directory where the SSH keys are mounted."""
    run_launcher_as_node: bool = False
    """Whether the launcher trains as well."""


class JAXMLPolicySource(ApiModel):
    """Distributed JAX."""


class XGBoostMLPolicySource(ApiModel):
    """Distributed XGBoost."""


class FluxMLPolicySource(ApiModel):
    """Training that Flux starts, whose brokers are installed in the pods."""

    num_proc_per_node: Annotated[
        Int32,
        Field(
            json_schema_extra=rules.cel_rules(rules.cel_rule("self >= 1", "NumProcPerNode in fluxPolicy must be >= 1"))
        ),
    ] = 1
    """Processes on every node."""


class MLPolicy(ApiModel):
    """Settings of the training that depend on the machine learning framework."""

    model_config = ConfigDict(json_schema_extra=rules.cel_rules(rules.at_most_one(_POLICIES, _ONE_POLICY)))

    num_nodes: Int32 | None = None
    """Number of training nodes. Defaults to 1."""
    torch: TorchMLPolicySource | None = None
    """Distributed PyTorch."""
    mpi: MPIMLPolicySource | None = None
    """Training that is orchestrated by MPI."""
    jax: JAXMLPolicySource | None = None
    """Distributed JAX."""
    xgboost: XGBoostMLPolicySource | None = None
    """Distributed XGBoost."""
    flux: FluxMLPolicySource | None = None
    """Training that is started by Flux."""


class CoschedulingPodGroupPolicySource(ApiModel):
    """Gang scheduling by the coscheduling plugin of the Kubernetes scheduler-plugins."""

    schedule_timeout_seconds: Int32 = 60
    """Seconds to wait until all pods can be scheduled; 0 stands for the default."""


class VolcanoPodGroupPolicySource(ApiModel):
    """Gang scheduling by Volcano."""

    network_topology: VolcanoNetworkTopology | None = None
    """How near to each other the network must bring the pods."""


class PodGroupPolicy(ApiModel):
    """Gang scheduling: start all pods or none."""

    coscheduling: CoschedulingPodGroupPolicySource | None = None
    """Gang scheduling by the coscheduling plugin of the Kubernetes scheduler-plugins."""
    volcano: VolcanoPodGroupPolicySource | None = None
    """Gang scheduling by Volcano."""
    workload: WorkloadPodGroupPolicySource | None = None
    """Gang scheduling by Kubernetes itself."""


class TrainingRuntimeSpec(ApiModel):
    """The blueprint."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    ml_policy: MLPolicy | None = None
    """Settings that depend on the machine learning framework."""
    pod_group_policy: PodGroupPolicy | None = None
    """Gang scheduling."""
    template: Annotated[JobSetTemplate, Field(json_schema_extra={"minProperties": 1})] | None = None
    """The JobSet that TrainJobs become."""


def _schema_errors(spec: TrainingRuntimeSpec | None) -> Iterator[FieldError]:
    """What the API server refuses by `minProperties` and by the rule of the policies."""
    if spec is None:
        return
    for path, value in (("spec", spec), ("spec.template", spec.template)):
        if value is not None and not value.model_fields_set:
            yield invalid(path, OMITTED, "should have at least 1 properties")
    policies = [name for name in _POLICIES if getattr(spec.ml_policy, name, None) is not None]
    if len(policies) > 1:
        yield invalid("spec.mlPolicy", OMITTED, f"{_ONE_POLICY}: leave all but one of {', '.join(policies)} out")


class TrainingRuntime(ApiModel):
    """A blueprint for TrainJobs of its namespace."""

    api_version: Literal["trainer.kubeflow.org/v1alpha1"] = "trainer.kubeflow.org/v1alpha1"
    kind: Literal["TrainingRuntime"] = "TrainingRuntime"
    metadata: ObjectMetadata = Field(default_factory=ObjectMetadata)
    spec: TrainingRuntimeSpec | None = None
    """The blueprint."""

    def semantic_errors(self) -> Iterator[FieldError]:
        """What its schema refuses, too, by rules that the check of schemas does not know."""
        return _schema_errors(self.spec)


class ClusterTrainingRuntime(ApiModel):
    """A blueprint for TrainJobs of all namespaces."""

    api_version: Literal["trainer.kubeflow.org/v1alpha1"] = "trainer.kubeflow.org/v1alpha1"
    kind: Literal["ClusterTrainingRuntime"] = "ClusterTrainingRuntime"
    metadata: ObjectMetadata = Field(default_factory=ObjectMetadata)
    spec: TrainingRuntimeSpec | None = None
    """The blueprint."""

    def semantic_errors(self) -> Iterator[FieldError]:
        """What its schema refuses, too, by rules that the check of schemas does not know."""
        return _schema_errors(self.spec)
