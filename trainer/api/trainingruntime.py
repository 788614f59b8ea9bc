"""TrainingRuntime and ClusterTrainingRuntime: the blueprints (KEP-2170, "The Training Runtime API")."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import ConfigDict, Field, model_validator

from trainer.api import patterns, rules
from trainer.api.builtin_schemas import built_in
from trainer.api.checkpoints import check_checkpoints_annotation
from trainer.api.jobset import JobSetSpec
from trainer.api.labels import check_annotations, check_keys
from trainer.api.metadata import ObjectMetadata, ServedVersion, TemplateMetadata
from trainer.api.model import (
    ApiModel,
    Count,
    Int32,
    JsonObject,
    NumberOfProcesses,
    atomic_list,
    list_map,
    set_list,
    text,
)
from trainer.api.pod_template import semantic_pod_template_errors
from trainer.api.progress import check_progress_annotations
from trainer.kube.field_errors import OMITTED, FieldError, invalid
from trainer.kube.objects import annotations_of
from trainer.kube.resource import Resource

TRAINING_RUNTIMES = Resource("trainer.kubeflow.org", "v2alpha1", "trainingruntimes", "TrainingRuntime")
CLUSTER_TRAINING_RUNTIMES = Resource(
    "trainer.kubeflow.org", "v2alpha1", "clustertrainingruntimes", "ClusterTrainingRuntime", namespaced=False
)


FRAMEWORK_LABEL = "trainer.kubeflow.org/framework"
"""Label of a runtime: the framework that it is for, as in Kubeflow Trainer."""
SUPPORT_LABEL = "trainer.kubeflow.org/support"
"""Label of a runtime: with `deprecated`, the authors of TrainJobs that refer to it are warned."""
DEPRECATED = "deprecated"
"""Value of `SUPPORT_LABEL` on a runtime that will be removed."""


class Policy(ApiModel):
    """A policy of a runtime; it cannot be changed, since all TrainJobs of the runtime share it."""

    model_config = ConfigDict(frozen=True)


class TorchElasticPolicy(Policy):
    """Elastic PyTorch training: nodes may come and go. numNodes must be left out."""

    model_config = ConfigDict(
        json_schema_extra=rules.cel_rules(
            rules.cel_rule(
                "!has(self.minNodes) || !has(self.maxNodes) || self.minNodes <= self.maxNodes", rules.ELASTIC_RANGE
            )
        )
    )

    max_restarts: Count | None = None
    """How often the training may be restarted."""
    min_nodes: Annotated[Int32, Field(ge=1)] | None = None
    """The fewest nodes with which the training goes on."""
    max_nodes: Annotated[Int32, Field(ge=1)] | None = None
    """The most nodes that the training may grow to."""
    metrics: (
        Annotated[
            list[Annotated[JsonObject, Field(json_schema_extra=built_in("MetricSpec"))]],
            Field(json_schema_extra=atomic_list(32)),
        ]
        | None
    ) = None
    """Metrics of the HorizontalPodAutoscaler (autoscaling/v2) that chooses the number of nodes."""

    @property
    def bounds(self) -> tuple[int, int] | None:
        """The fewest and the most nodes; each defaults to the other, and None means that the policy names neither."""
        least = self.min_nodes if self.min_nodes is not None else self.max_nodes
        most = self.max_nodes if self.max_nodes is not None else self.min_nodes
        return None if least is None or most is None else (least, most)

    @model_validator(mode="after")
    def _check_range(self) -> Self:
        if self.min_nodes is not None and self.max_nodes is not None and self.min_nodes > self.max_nodes:
            raise ValueError(rules.ELASTIC_RANGE)
        return self


class EnvInjectionTarget(Policy):
    """Containers of one replicated Job that need the variables of torchrun, too."""

    job_name: Annotated[str, Field(min_length=1, json_schema_extra=text(pattern=patterns.JOB_NAME, longest=63))]
    """Name of the replicated Job."""
    container_names: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=63)]],
        Field(min_length=1, json_schema_extra=set_list(8)),
    ]
    """Names of containers and init containers. The container that trains has the variables anyway."""


class EnvInjection(Policy):
    """Which other containers get the variables of torchrun, such as an init container that checks the network."""

    targets: Annotated[list[EnvInjectionTarget], Field(min_length=1, json_schema_extra=list_map("jobName", 16))]
    """The containers, by replicated Job."""


class TorchMLPolicySource(Policy):
    """Distributed PyTorch, started by torchrun."""

    num_proc_per_node: NumberOfProcesses = "auto"
    """Processes on every node: auto, cpu, gpu or an integer. Defaults to auto."""
    elastic_policy: TorchElasticPolicy | None = None
    """Elastic training."""
    env_injection: EnvInjection | None = None
    """Which other containers get the variables of torchrun. Defaults to none."""


class MPIMLPolicySource(Policy):
    """Training that is orchestrated by MPI."""

    num_proc_per_node: Annotated[Int32, Field(ge=1)] | None = None
    """Processes on every node: the slots in the host file."""
    mpi_implementation: Literal["OpenMPI", "Intel", "MPICH"] = "OpenMPI"
    """Flavour of the host file. Defaults to OpenMPI."""
    ssh_auth_mount_path: Annotated[
        str, Field(alias="SSHAuthMountPath", json_schema_extra=text(pattern=patterns.ABSOLUTE_PATH, longest=4096))
    ] = "/root/.ssh"
    """Directory where the SSH keys are mounted. Defaults to /root/.ssh."""
    run_launcher_as_node: bool = False
    """Whether the launcher trains as well. Defaults to false."""


class JAXMLPolicySource(Policy):
    """Distributed JAX."""


class XGBoostMLPolicySource(Policy):
    """Distributed XGBoost, whose workers meet at a tracker on the first node."""


TENSORFLOW_ROLES = ("chief", "ps", "evaluator")
"""Names of the replicated Jobs that have a role of their own in a TensorFlow training, as in a TFJob."""


class TensorFlowMLPolicySource(Policy):
    """Distributed TensorFlow: every node is a worker.

    Replicated Jobs called chief, ps and evaluator have these roles beside them.
    """


class PaddleMLPolicySource(Policy):
    """Distributed PaddlePaddle, started by paddle.distributed.launch."""


class FluxMLPolicySource(ApiModel):
    """Training that Flux starts, whose brokers are installed in the pods."""

    num_proc_per_node: Annotated[Int32, Field(ge=1)] = 1
    """Processes on every node. Defaults to 1."""


_SOURCES = ("torch", "mpi", "jax", "xgboost", "tensorflow", "paddle", "flux")


class MLPolicy(Policy):
    """Settings of the training that depend on the machine learning framework."""

    model_config = ConfigDict(
        json_schema_extra=rules.cel_rules(
            rules.at_most_one(_SOURCES, rules.ONE_SOURCE),
            rules.cel_rule(
                "!(has(self.numNodes) && has(self.torch) && has(self.torch.elasticPolicy))", rules.ELASTIC_NODES
            ),
        )
    )

    num_nodes: Annotated[Int32, Field(ge=1)] | None = None
    """Number of training nodes. Defaults to 1."""
    torch: TorchMLPolicySource | None = None
    """Distributed PyTorch."""
    mpi: MPIMLPolicySource | None = None
    """Training that is orchestrated by MPI."""
    jax: JAXMLPolicySource | None = None
    """Distributed JAX."""
    xgboost: XGBoostMLPolicySource | None = None
    """Distributed XGBoost."""
    tensorflow: TensorFlowMLPolicySource | None = None
    """Distributed TensorFlow."""
    paddle: PaddleMLPolicySource | None = None
    """Distributed PaddlePaddle."""
    flux: FluxMLPolicySource | None = None
    """Training that is started by Flux."""

    @property
    def source(self) -> str | None:
        """The member that is set, such as `torch`; None for a runtime of no particular framework."""
        return next((name for name in _SOURCES if getattr(self, name) is not None), None)

    @property
    def peers(self) -> tuple[str, ...]:
        """Names of the replicated Jobs that train together with the nodes, where a runtime has them."""
        return TENSORFLOW_ROLES if self.tensorflow is not None else ()

    @model_validator(mode="after")
    def _check(self) -> Self:
        if sum(getattr(self, name) is not None for name in _SOURCES) > 1:
            raise ValueError(rules.ONE_SOURCE)
        if self.torch and self.torch.elastic_policy and self.num_nodes is not None:
            raise ValueError(rules.ELASTIC_NODES)
        return self


class CoschedulingPodGroupPolicySource(Policy):
    """Gang scheduling by the coscheduling plugin of the Kubernetes scheduler-plugins."""

    schedule_timeout_seconds: Annotated[Int32, Field(ge=0)] = 60
    """Seconds to wait until all pods can be scheduled; 0 stands for the default. Defaults to 60."""


class VolcanoNetworkTopology(Policy):
    """How near to each other the network must bring the pods."""

    mode: Literal["hard", "soft"] = "hard"
    """Whether pods wait until they fit (hard) or are merely preferred near each other (soft). Defaults to hard."""
    highest_tier_allowed: Annotated[Int32, Field(ge=1)] = 1
    """The highest tier of Volcano's HyperNodes that the pods may span. Defaults to 1."""


class VolcanoPodGroupPolicySource(Policy):
    """Gang scheduling by Volcano. The runtime or the TrainJob names the queue in an annotation of the JobSet."""

    network_topology: VolcanoNetworkTopology | None = None
    """How near to each other the network must bring the pods. Defaults to anywhere."""


class WorkloadPodGroupPolicySource(Policy):
    """Gang scheduling by Kubernetes itself: the Workload API (scheduling.k8s.io) of Kubernetes 1.36 and later."""

    topology_key: (
        Annotated[str, Field(min_length=1, json_schema_extra=text(pattern=patterns.LABEL_KEY, longest=317))] | None
    ) = None
    """Label of nodes, such as topology.kubernetes.io/rack: all pods of the gang run on nodes with one value of it.
    Defaults to any nodes. Needs the feature gate TopologyAwareWorkloadScheduling."""
    disruption_mode: Literal["Pod", "PodGroup"] = "Pod"
    """Whether the scheduler preempts single pods of the gang (Pod) or all of them together (PodGroup). Defaults to
    Pod. PodGroup needs the feature gate WorkloadAwarePreemption."""
    resource_claims: (
        Annotated[
            list[Annotated[str, Field(min_length=1, json_schema_extra=text(pattern=patterns.DNS_LABEL, longest=63))]],
            Field(json_schema_extra=set_list(4)),
        ]
        | None
    ) = None
    """Names of claims in spec.resourceClaims of the pods of which the gang has one, not each pod. Defaults to none.
    Without the feature gate DRAWorkloadResourceClaims each pod has its own."""


_GROUP_SOURCES = ("coscheduling", "volcano", "workload")


class PodGroupPolicy(Policy):
    """Gang scheduling: start all pods or none."""

    model_config = ConfigDict(
        json_schema_extra=rules.cel_rules(rules.at_most_one(_GROUP_SOURCES, rules.ONE_GROUP_SOURCE))
    )

    coscheduling: CoschedulingPodGroupPolicySource | None = None
    """Gang scheduling by the coscheduling plugin of the Kubernetes scheduler-plugins."""
    volcano: VolcanoPodGroupPolicySource | None = None
    """Gang scheduling by Volcano."""
    workload: WorkloadPodGroupPolicySource | None = None
    """Gang scheduling by Kubernetes itself."""

    @property
    def source(self) -> str | None:
        """The member that is set, or None."""
        return next((name for name in _GROUP_SOURCES if getattr(self, name) is not None), None)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if sum(getattr(self, name) is not None for name in _GROUP_SOURCES) > 1:
            raise ValueError(rules.ONE_GROUP_SOURCE)
        return self


class JobSetTemplate(ApiModel):
    """The JobSet that TrainJobs become; it gets their name and namespace."""

    metadata: TemplateMetadata | None = None
    """Labels and annotations of the JobSet."""
    spec: JobSetSpec = Field(default_factory=JobSetSpec)
    """The JobSet."""


class TrainingRuntimeSpec(ApiModel):
    """The blueprint."""

    model_config = ConfigDict(json_schema_extra=rules.immutable(rules.RUNTIME_IMMUTABLE))

    ml_policy: MLPolicy | None = None
    """Settings that depend on the machine learning framework."""
    pod_group_policy: PodGroupPolicy | None = None
    """Gang scheduling."""
    template: JobSetTemplate
    """The JobSet that TrainJobs become."""


class TrainingRuntime(ApiModel):
    """A blueprint for TrainJobs of its namespace."""

    api_version: ServedVersion = "trainer.kubeflow.org/v2alpha1"
    kind: Literal["TrainingRuntime"] = "TrainingRuntime"
    metadata: ObjectMetadata = Field(default_factory=ObjectMetadata)
    spec: TrainingRuntimeSpec
    """The blueprint."""

    def semantic_errors(self) -> Iterator[FieldError]:
        """What is wrong with labels and pod templates although they fit their schemas."""
        return _semantic_errors(self.spec.template)


class ClusterTrainingRuntime(ApiModel):
    """A blueprint for TrainJobs of all namespaces."""

    api_version: ServedVersion = "trainer.kubeflow.org/v2alpha1"
    kind: Literal["ClusterTrainingRuntime"] = "ClusterTrainingRuntime"
    metadata: ObjectMetadata = Field(default_factory=ObjectMetadata)
    spec: TrainingRuntimeSpec
    """The blueprint."""

    def semantic_errors(self) -> Iterator[FieldError]:
        """What is wrong with labels and pod templates although they fit their schemas."""
        return _semantic_errors(self.spec.template)


def _semantic_errors(template: JobSetTemplate) -> Iterator[FieldError]:
    path = "spec.template"
    yield from _check_metadata(template.metadata, f"{path}.metadata")
    policy, jobs = template.spec.startup_policy, template.spec.replicated_jobs or []
    if policy and policy.startup_policy_order == "InOrder" and any(job.depends_on is not None for job in jobs):
        yield invalid(f"{path}.spec", OMITTED, rules.ORDER_OR_DEPENDENCIES)
    for index, job in enumerate(jobs):
        field = f"{path}.spec.replicatedJobs[{index}].template"
        yield from _check_metadata(job.template.metadata, f"{field}.metadata")
        pod_template, field = job.template.spec.template, f"{field}.spec.template"
        yield from semantic_pod_template_errors(pod_template, field)
        yield from check_progress_annotations(annotations_of(pod_template), f"{field}.metadata.annotations")


def _check_metadata(metadata: TemplateMetadata | None, path: str) -> Iterator[FieldError]:
    if metadata is not None:
        yield from check_keys(metadata.labels, f"{path}.labels")
        yield from check_annotations(metadata.annotations, f"{path}.annotations")
        yield from check_progress_annotations(metadata.annotations, f"{path}.annotations")
        yield from check_checkpoints_annotation(metadata.annotations, f"{path}.annotations")


Runtime: TypeAlias = TrainingRuntime | ClusterTrainingRuntime
"""Either kind of blueprint; they differ only in who may use them."""
