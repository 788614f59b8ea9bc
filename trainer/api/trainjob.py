"""TrainJob: what a data scientist writes (KEP-2170, "The TrainJob API")."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from trainer.api import patterns, rules
from trainer.api.checkpoints import check_checkpoints_annotation
from trainer.api.container import check_env, check_env_from, check_mounts, check_resources, check_words
from trainer.api.corev1 import (
    Affinity,
    EnvFromSource,
    EnvVar,
    EnvVars,
    LocalObjectReference,
    PodSecurityContext,
    ResourceRequirements,
    SchedulingGate,
    SecurityContext,
    Toleration,
    Volume,
    VolumeMount,
    Words,
)
from trainer.api.image_reference import check_image
from trainer.api.labels import check_annotations, check_keys, is_qualified_name
from trainer.api.metadata import Labels, ObjectMetadata, ServedVersion, TemplateMetadata
from trainer.api.model import ApiModel, Count, Int32, Int64, NumberOfProcesses, Time, atomic_list, list_map, text
from trainer.api.pod_template import check_tolerations, check_volumes
from trainer.api.progress import check_progress_annotations
from trainer.api.trainjob_status import TrainJobStatus
from trainer.kube.field_errors import FieldError, invalid
from trainer.kube.resource import Resource

TRAIN_JOBS = Resource("trainer.kubeflow.org", "v2alpha1", "trainjobs", "TrainJob")

TRAIN_JOB_CONTROLLER = "kubeflow.org/trainjob-controller"
"""The value of `spec.managedBy` that names this controller."""
CODE_VOLUME = "trainer-source"
"""The volume of pods by which `trainer run` mounts the ConfigMap with the code."""
GIT_REVISION = "trainer.kubeflow.org/git-revision"
"""Annotation of a TrainJob: the commit of its code, with `-dirty` behind it where the code differs."""
DIRTY = "-dirty"
"""As in `git describe --dirty`."""


def is_managed_here(train_job: Mapping[str, Any]) -> bool:
    """Whether this controller manages a TrainJob, given as JSON (`spec.managedBy`)."""
    return ((train_job.get("spec") or {}).get("managedBy") or TRAIN_JOB_CONTROLLER) == TRAIN_JOB_CONTROLLER


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

    image: Annotated[str, Field(json_schema_extra=text(pattern=patterns.IMAGE, longest=500))] | None = None
    """Container image."""
    command: Words | None = None
    """Entrypoint; a single item with spaces is split as a shell would."""
    args: Words | None = None
    """Arguments of the entrypoint."""
    env: EnvVars | None = None
    """Environment variables, merged into those of the runtime by name."""
    # Tolerant reading accepts less, because v1alpha1 allows it.
    num_nodes: Annotated[Int32, Field(json_schema_extra={"minimum": 1})] | None = None
    """Number of training nodes. Defaults to the runtime's mlPolicy.numNodes."""
    resources_per_node: ResourceRequirements | None = None
    """Compute resources of each node, merged into those of the runtime by resource name."""
    num_proc_per_node: NumberOfProcesses | None = None
    """Processes on every node. For torch: auto, cpu, gpu or an integer; for MPI: an integer."""


class StorageSettings(ApiModel):
    """Where a dataset or model comes from or goes to."""

    storage_uri: Annotated[str, Field(json_schema_extra=text(pattern=patterns.STORAGE_URI, longest=2048))] | None = None
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
    command: Words | None = None
    """Entrypoint."""
    args: Words | None = None
    """Arguments of the entrypoint."""
    env: EnvVars | None = None
    """Environment variables, merged into those of the runtime by name."""
    env_from: Annotated[list[EnvFromSource], Field(json_schema_extra=atomic_list(128))] | None = None
    """Sources of environment variables, added to those of the runtime."""
    volume_mounts: Annotated[list[VolumeMount], Field(json_schema_extra=list_map("mountPath", 128))] | None = None
    """Volume mounts, merged into those of the runtime by mountPath."""
    security_context: SecurityContext | None = None
    """User, privileges and capabilities, merged into those of the runtime by field; lists are replaced."""


class PodSpecOverrideTargetJob(ApiModel):
    """A replicated Job of the runtime."""

    name: Annotated[str, Field(min_length=1)]
    """Name of the replicated Job."""


class PodSpecOverride(ApiModel):
    """Changes to the pods of some replicated Jobs of the runtime."""

    target_jobs: Annotated[list[PodSpecOverrideTargetJob], Field(json_schema_extra=atomic_list(100, min_items=1))]
    """The replicated Jobs whose pods are changed."""
    manager: Annotated[str, Field(min_length=1, max_length=253)] | None = None
    """Who makes the changes, such as kueue.x-k8s.io/manager; for readers only."""
    time: Time | None = None
    """When the changes were made; for readers only."""
    containers: Annotated[list[ContainerOverride], Field(json_schema_extra=list_map("name", 64))] | None = None
    """Changes to containers."""
    init_containers: Annotated[list[ContainerOverride], Field(json_schema_extra=list_map("name", 64))] | None = None
    """Changes to init containers."""
    volumes: Annotated[list[Volume], Field(json_schema_extra=list_map("name", 128))] | None = None
    """Volumes, merged into those of the runtime by name."""
    service_account_name: (
        Annotated[str, Field(json_schema_extra=text(pattern=patterns.OBJECT_NAME, longest=253))] | None
    ) = None
    """Service account of the pods."""
    image_pull_secrets: Annotated[list[LocalObjectReference], Field(json_schema_extra=list_map("name", 32))] | None = (
        None
    )
    """Secrets with credentials for the registries of images, added to those of the runtime."""
    security_context: PodSecurityContext | None = None
    """Users, groups and kernel settings, merged into those of the runtime by field; lists are replaced."""
    termination_grace_period_seconds: Annotated[Int64, Field(ge=0)] | None = None
    """Seconds that the processes have to end after SIGTERM."""
    node_selector: Labels | None = None
    """Labels that a node must have, merged into those of the runtime by key."""
    affinity: Affinity | None = None
    """Rules for placement, merged into those of the runtime by field; lists are replaced."""
    tolerations: Annotated[list[Toleration], Field(json_schema_extra=atomic_list(128))] | None = None
    """Tolerations, added to those of the runtime or in their place."""
    toleration_policy: Literal["Merge", "Replace"] | None = None
    """Whether tolerations are merged into those of the runtime by key and effect, or replace them. Defaults to
    Merge."""
    scheduling_gates: Annotated[list[SchedulingGate], Field(json_schema_extra=list_map("name", 16))] | None = None
    """Scheduling gates, added to those of the runtime."""
    metadata: TemplateMetadata | None = None
    """Labels and annotations of the pods, merged into those of the runtime by key; labels and annotations of the
    TrainJob win over them."""
    job_metadata: TemplateMetadata | None = None
    """Labels and annotations of the Jobs alone, merged into those of the runtime by key; labels and annotations of the
    TrainJob win over them."""


class TrainJobSpec(ApiModel):
    """The desired training."""

    model_config = ConfigDict(
        json_schema_extra=rules.cel_rules(rules.immutable_member("activeDeadlineSeconds", rules.DEADLINE_IMMUTABLE))
    )

    runtime_ref: RuntimeRef
    """The training runtime to build on. Cannot be changed once the Jobs have been created."""
    trainer: Trainer | None = None
    """Settings of the training container."""
    dataset_config: DatasetConfig | None = None
    """The training dataset."""
    model_config_: Annotated[ModelConfig | None, Field(alias="modelConfig")] = None
    """The pre-trained and the trained model."""
    labels: Labels | None = None
    """Labels of the JobSet, its Jobs and pods; merged into those of the runtime."""
    annotations: dict[str, str] | None = None
    """Annotations of the JobSet, its Jobs and pods; merged into those of the runtime."""
    job_set_metadata: TemplateMetadata | None = None
    """Labels and annotations of the JobSet alone, merged into those of the runtime by key; labels and annotations
    above win over them."""
    pod_spec_overrides: Annotated[list[PodSpecOverride], Field(json_schema_extra=atomic_list(16))] | None = None
    """Changes to the pods of the runtime, usually made by admission webhooks and queueing systems."""
    suspend: bool = False
    """Whether the training is suspended: its pods are deleted until it is resumed."""
    max_restarts: Count | None = None
    """How often all nodes start again after a failure, before the training fails. What the runtime says when absent:
    with ours 0, and disruptions do not count. Once the Jobs have been created it can be changed while suspended."""
    active_deadline_seconds: Annotated[Int64, Field(ge=1)] | None = None
    """Seconds that the training may take, from its creation or from the last time it was resumed; then it fails with
    DeadlineExceeded and its Jobs are deleted. No limit when absent. Cannot be changed."""
    ttl_seconds_after_finished: Count | None = None
    """Seconds after which the finished TrainJob is deleted, with all that belongs to it; it stays when absent."""
    managed_by: Annotated[
        Literal["", "kubeflow.org/trainjob-controller", "kueue.x-k8s.io/multikueue"],
        Field(json_schema_extra=rules.immutable(rules.MANAGED_BY_IMMUTABLE)),
    ] = "kubeflow.org/trainjob-controller"
    """Who manages the TrainJob; every value but kueue.x-k8s.io/multikueue is this controller. Cannot be changed."""

    def storage_settings(self) -> Iterator[tuple[str, StorageSettings]]:
        """Where datasets and models come from and go to, each with its path in a TrainJob."""
        model = self.model_config_
        if self.dataset_config is not None:
            yield "spec.datasetConfig", self.dataset_config
        if model is not None and model.input is not None:
            yield "spec.modelConfig.input", model.input
        if model is not None and model.output is not None:
            yield "spec.modelConfig.output", model.output


class TrainJob(ApiModel):
    """A training or fine-tuning of a model on one or more nodes, built on a training runtime."""

    api_version: ServedVersion = "trainer.kubeflow.org/v2alpha1"
    kind: Literal["TrainJob"] = "TrainJob"
    metadata: ObjectMetadata = Field(default_factory=ObjectMetadata)
    spec: TrainJobSpec
    """The desired training."""
    status: TrainJobStatus | None = None
    """How the training goes; written by the system."""

    def semantic_errors(self) -> Iterator[FieldError]:
        """What is wrong with labels, environments, resources and overrides although they fit their schemas."""
        spec = self.spec
        if self.metadata.annotations:
            yield from check_progress_annotations(self.metadata.annotations, "metadata.annotations")
            yield from check_checkpoints_annotation(self.metadata.annotations, "metadata.annotations")
        if spec.labels or spec.annotations:
            yield from check_keys(spec.labels, "spec.labels")
            yield from check_annotations(spec.annotations, "spec.annotations")
            yield from check_progress_annotations(spec.annotations, "spec.annotations")
            yield from check_checkpoints_annotation(spec.annotations, "spec.annotations")
        yield from _check_metadata(spec.job_set_metadata, "spec.jobSetMetadata")
        if spec.trainer is not None:
            yield from check_image(spec.trainer.image, "spec.trainer.image")
            yield from check_words(spec.trainer.command, "spec.trainer.command")
            yield from check_words(spec.trainer.args, "spec.trainer.args")
            yield from _check_env(spec.trainer.env, "spec.trainer.env")
            if spec.trainer.resources_per_node is not None:
                resources = spec.trainer.resources_per_node.to_object()
                yield from check_resources(resources, "spec.trainer.resourcesPerNode")
        for path, settings in spec.storage_settings():
            yield from _check_env(settings.env, f"{path}.env")
        for index, override in enumerate(spec.pod_spec_overrides or []):
            yield from _check_override(override, f"spec.podSpecOverrides[{index}]")


def _check_override(override: PodSpecOverride, path: str) -> Iterator[FieldError]:
    for kind, containers in (("containers", override.containers), ("initContainers", override.init_containers)):
        for index, container in enumerate(containers or []):
            field = f"{path}.{kind}[{index}]"
            yield from check_words(container.command, f"{field}.command")
            yield from check_words(container.args, f"{field}.args")
            yield from _check_env(container.env, f"{field}.env")
            yield from check_env_from(container.env_from, f"{field}.envFrom")
            mounts = [mount.to_object() for mount in container.volume_mounts or []]
            yield from check_mounts(mounts, f"{field}.volumeMounts")
    yield from check_volumes([volume.to_object() for volume in override.volumes or []], f"{path}.volumes")
    yield from check_keys(override.node_selector, f"{path}.nodeSelector")
    yield from check_tolerations(override.tolerations, f"{path}.tolerations")
    for index, gate in enumerate(override.scheduling_gates or []):
        if not is_qualified_name(gate.name):
            rule = "must be a name of letters, digits, -, _ and ., such as example.com/gate"
            yield invalid(f"{path}.schedulingGates[{index}].name", gate.name, rule)
    yield from _check_metadata(override.metadata, f"{path}.metadata")
    yield from _check_metadata(override.job_metadata, f"{path}.jobMetadata")


def _check_metadata(metadata: TemplateMetadata | None, path: str) -> Iterator[FieldError]:
    if metadata is not None:
        yield from check_keys(metadata.labels, f"{path}.labels")
        yield from check_annotations(metadata.annotations, f"{path}.annotations")
        yield from check_progress_annotations(metadata.annotations, f"{path}.annotations")
        yield from check_checkpoints_annotation(metadata.annotations, f"{path}.annotations")


def _check_env(variables: list[EnvVar] | None, path: str) -> Iterator[FieldError]:
    return check_env([variable.to_object() for variable in variables or []], path)
