"""TrainJob: what a data scientist writes (KEP-2170, "The TrainJob API")."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from trainer.api.corev1 import EnvVars, LocalObjectReference, ResourceRequirements, Volume, VolumeMount
from trainer.api.metadata import ObjectMetadata
from trainer.api.model import ApiModel, Count, Int32, Int64, JsonObject, NumberOfProcesses, cel_rule, list_map
from trainer.api.trainjob_status import TrainJobStatus
from trainer.kube.resource import Resource

TRAIN_JOBS = Resource("trainer.kubeflow.org", "v2alpha1", "trainjobs", "TrainJob")

TRAIN_JOB_CONTROLLER = "kubeflow.org/trainjob-controller"
"""The value of `spec.managedBy` that is ours."""


class RuntimeRef(ApiModel):
    """The training runtime that a TrainJob builds on."""

    name: Annotated[str, Field(min_length=1, max_length=253)]
    """Name of the runtime. A TrainingRuntime must be in the namespace of the TrainJob."""
    api_group: Literal["trainer.kubeflow.org"] = "trainer.kubeflow.org"
    """API group of the runtime."""
    kind: Literal["TrainingRuntime", "ClusterTrainingRuntime"] = "ClusterTrainingRuntime"
    """Kind of the runtime."""


class Trainer(ApiModel):
    """Settings of the training container, which runs on every training node."""

    image: str | None = None
    """Container image."""
    command: list[str] | None = None
    """Entrypoint; a single item with spaces is split as a shell would."""
    args: list[str] | None = None
    """Arguments of the entrypoint."""
    env: EnvVars | None = None
    """Environment variables, merged into those of the runtime by name."""
    num_nodes: Annotated[Int32, Field(ge=1)] | None = None
    """Number of training nodes. Defaults to the runtime's mlPolicy.numNodes."""
    resources_per_node: ResourceRequirements | None = None
    """Compute resources of each node, merged into those of the runtime by resource name."""
    num_proc_per_node: NumberOfProcesses | None = None
    """Processes on every node. For torch: auto, cpu, gpu or an integer; for MPI: an integer."""


class StorageSettings(ApiModel):
    """Where a dataset or model comes from or goes to."""

    storage_uri: str | None = None
    """Location, such as s3://bucket/path or hf://repository; handed to the container as STORAGE_URI."""
    env: EnvVars | None = None
    """Environment variables of the container, merged into those of the runtime by name."""
    secret_ref: LocalObjectReference | None = None
    """Secret with credentials for the storage; its keys become environment variables of the container."""


class DatasetConfig(StorageSettings):
    """The dataset; the runtime must have a container dataset-initializer."""


class InputModel(StorageSettings):
    """The pre-trained model; the runtime must have a container model-initializer."""


class OutputModel(StorageSettings):
    """The trained model; the runtime must have a container model-exporter."""


class ModelConfig(ApiModel):
    """The model before and after the training."""

    input: InputModel | None = None
    """The pre-trained model; the runtime must have a container model-initializer."""
    output: OutputModel | None = None
    """The trained model; the runtime must have a container model-exporter."""


class ContainerOverride(ApiModel):
    """Changes to one container of the runtime; settings in trainer, datasetConfig and modelConfig win over them."""

    name: Annotated[str, Field(min_length=1)]
    """Name of the container; the runtime must have it."""
    command: list[str] | None = None
    """Entrypoint."""
    args: list[str] | None = None
    """Arguments of the entrypoint."""
    env: EnvVars | None = None
    """Environment variables, merged into those of the runtime by name."""
    env_from: list[JsonObject] | None = None
    """Sources of environment variables, added to those of the runtime."""
    volume_mounts: Annotated[list[VolumeMount], Field(json_schema_extra=list_map("mountPath"))] | None = None
    """Volume mounts, merged into those of the runtime by mountPath."""


class PodSpecOverrideTargetJob(ApiModel):
    """A replicated Job of the runtime."""

    name: Annotated[str, Field(min_length=1)]
    """Name of the replicated Job."""


class PodSpecOverride(ApiModel):
    """Changes to the pods of some replicated Jobs of the runtime."""

    target_jobs: list[PodSpecOverrideTargetJob]
    """The replicated Jobs whose pods are changed."""
    containers: Annotated[list[ContainerOverride], Field(json_schema_extra=list_map("name"))] | None = None
    """Changes to containers."""
    init_containers: Annotated[list[ContainerOverride], Field(json_schema_extra=list_map("name"))] | None = None
    """Changes to init containers."""
    volumes: Annotated[list[Volume], Field(json_schema_extra=list_map("name"))] | None = None
    """Volumes, merged into those of the runtime by name."""
    service_account_name: str | None = None
    """Service account of the pods."""
    node_selector: dict[str, str] | None = None
    """Labels that a node must have, merged into those of the runtime by key."""
    tolerations: list[JsonObject] | None = None
    """Tolerations, added to those of the runtime."""


class TrainJobSpec(ApiModel):
    """The desired training."""

    runtime_ref: Annotated[RuntimeRef, Field(json_schema_extra=cel_rule("self == oldSelf", "runtimeRef is immutable"))]
    """The training runtime to build on. Cannot be changed."""
    trainer: Trainer | None = None
    """Settings of the training container."""
    dataset_config: DatasetConfig | None = None
    """The training dataset."""
    model_config_: Annotated[ModelConfig | None, Field(alias="modelConfig")] = None
    """The pre-trained and the trained model."""
    labels: dict[str, str] | None = None
    """Labels of the JobSet, its Jobs and pods; merged into those of the runtime."""
    annotations: dict[str, str] | None = None
    """Annotations of the JobSet, its Jobs and pods; merged into those of the runtime."""
    pod_spec_overrides: list[PodSpecOverride] | None = None
    """Changes to the pods of the runtime, usually made by admission webhooks and queueing systems."""
    suspend: bool = False
    """Whether the training is suspended: its pods are deleted until it is resumed."""
    active_deadline_seconds: Annotated[Int64, Field(ge=1)] | None = None
    """Seconds that the training may take, from its creation or from the last time it was resumed; then it fails with
    DeadlineExceeded and its Jobs are deleted. No limit when absent. Cannot be changed."""
    ttl_seconds_after_finished: Count | None = None
    """Seconds after which the finished TrainJob is deleted, with all that belongs to it; it stays when absent."""
    managed_by: Annotated[
        Literal["", "kubeflow.org/trainjob-controller", "kueue.x-k8s.io/multikueue"],
        Field(json_schema_extra=cel_rule("self == oldSelf", "managedBy is immutable")),
    ] = "kubeflow.org/trainjob-controller"
    """Who manages the TrainJob; every value but kueue.x-k8s.io/multikueue is this controller. Cannot be changed."""


class TrainJob(ApiModel):
    """A training or fine-tuning of a model on one or more nodes, built on a training runtime."""

    api_version: Literal["trainer.kubeflow.org/v2alpha1"] = "trainer.kubeflow.org/v2alpha1"
    kind: Literal["TrainJob"] = "TrainJob"
    metadata: ObjectMetadata = Field(default_factory=ObjectMetadata)
    spec: TrainJobSpec
    """The desired training."""
    status: TrainJobStatus | None = None
    """How the training goes; written by the system."""
