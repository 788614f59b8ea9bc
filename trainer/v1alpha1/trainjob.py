"""TrainJob of v1alpha1, for its CustomResourceDefinition; objects are read by `trainer.v1alpha1.decode`.

The texts of the rules are those of Kubeflow Trainer (Go), which clients may compare.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field

from trainer.api import rules, trainjob_status
from trainer.api.bounds import LONGEST_WORD
from trainer.api.corev1 import (
    Affinity,
    EnvVar,
    PodSecurityContext,
    ResourceRequirements,
    SchedulingGate,
    SecurityContext,
    Toleration,
    Volume,
    VolumeMount,
)
from trainer.api.metadata import Condition, ObjectMetadata, TemplateMetadata
from trainer.api.model import ApiModel, Int32, Int64, Time, atomic_list, list_map, text

_IMMUTABLE: Final = rules.immutable("field is immutable")
_URI: Final = "self == '' || self.matches('^[A-Za-z][A-Za-z0-9+.-]*://.+$')"
_MANAGERS: Final = "['trainer.kubeflow.org/trainjob-controller', 'kueue.x-k8s.io/multikueue']"


def _immutable_list(key: str, most: int) -> dict[str, Any]:
    return list_map(key, most) | _IMMUTABLE


_Words = Annotated[
    list[Annotated[str, Field(json_schema_extra=text(longest=LONGEST_WORD))]],
    Field(json_schema_extra=atomic_list(128)),
]
Env = Annotated[list[EnvVar], Field(json_schema_extra=list_map("name", 128))]
"""Environment variables by name."""


class RuntimeRef(ApiModel):
    """The training runtime that a TrainJob builds on."""

    name: Annotated[str, Field(min_length=1, max_length=253)]
    """Name of the runtime. A TrainingRuntime must be in the namespace of the TrainJob."""
    api_group: Annotated[str, Field(max_length=253)] = "trainer.kubeflow.org"
    """API group of the runtime."""
    kind: Annotated[str, Field(max_length=253)] = "ClusterTrainingRuntime"
    """Kind of the runtime: TrainingRuntime or ClusterTrainingRuntime."""


class SecretReference(ApiModel):
    """A Secret of the namespace; the empty name means none."""

    name: Annotated[str, Field(max_length=253)] = ""
    """Name of the Secret."""


class StorageSource(ApiModel):
    """Where a dataset or model comes from."""

    storage_uri: (
        Annotated[
            str,
            Field(
                max_length=2048,
                json_schema_extra=rules.cel_rules(
                    rules.cel_rule(_URI, "storageUri may be empty, or it must be a valid URI (scheme://...)")
                ),
            ),
        ]
        | None
    ) = None
    """Location, such as s3://bucket/path or hf://repository; handed to the container as STORAGE_URI."""
    env: Env | None = None
    """Environment variables of the container."""
    secret_ref: SecretReference | None = None
    """Secret with credentials for the storage."""


class Initializer(ApiModel):
    """What is fetched before the training begins."""

    dataset: StorageSource | None = None
    """The training dataset."""
    model: StorageSource | None = None
    """The pre-trained model."""


class Trainer(ApiModel):
    """Settings of the training container."""

    image: Annotated[str, Field(max_length=500)] | None = None
    """Container image."""
    command: _Words | None = None
    """Entrypoint."""
    args: _Words | None = None
    """Arguments of the entrypoint."""
    env: Env | None = None
    """Environment variables of the container."""
    num_nodes: Int32 | None = None
    """Number of training nodes."""
    resources_per_node: ResourceRequirements | None = None
    """Compute resources of each node."""
    num_proc_per_node: Int32 | None = None
    """Processes on every node."""


class ContainerPatch(ApiModel):
    """Changes to one container of the runtime."""

    name: Annotated[str, Field(min_length=1, max_length=253)]
    """Name of the container."""
    env: Env | None = None
    """Environment variables, merged by name."""
    volume_mounts: Annotated[list[VolumeMount], Field(json_schema_extra=list_map("name", 128))] | None = None
    """Volume mounts, merged by mountPath."""
    security_context: SecurityContext | None = None
    """User, privileges and capabilities."""


class PodSpecPatch(ApiModel):
    """Changes to pods."""

    service_account_name: Annotated[str, Field(max_length=253, json_schema_extra=_IMMUTABLE)] | None = None
    """Service account."""
    node_selector: dict[str, str] | None = None
    """Labels that a node must have."""
    affinity: Affinity | None = None
    """Rules for placement."""
    tolerations: Annotated[list[Toleration], Field(json_schema_extra=atomic_list(128))] | None = None
    """Tolerations, which replace those of the runtime."""
    volumes: Annotated[list[Volume], Field(json_schema_extra=_immutable_list("name", 128))] | None = None
    """Volumes, merged by name."""
    init_containers: Annotated[list[ContainerPatch], Field(json_schema_extra=_immutable_list("name", 64))] | None = None
    """Changes to init containers."""
    containers: Annotated[list[ContainerPatch], Field(json_schema_extra=_immutable_list("name", 64))] | None = None
    """Changes to containers."""
    image_pull_secrets: (
        Annotated[list[SecretReference], Field(json_schema_extra=_immutable_list("name", 64))] | None
    ) = None
    """Secrets with credentials for the registries of images."""
    scheduling_gates: Annotated[list[SchedulingGate], Field(json_schema_extra=list_map("name", 16))] | None = None
    """Scheduling gates."""
    security_context: Annotated[PodSecurityContext, Field(json_schema_extra=_IMMUTABLE)] | None = None
    """Users, groups and kernel settings."""
    termination_grace_period_seconds: Annotated[Int64, Field(ge=0, json_schema_extra=_IMMUTABLE)] | None = None
    """Seconds that the processes have to end after SIGTERM."""


class PodTemplatePatch(ApiModel):
    """Changes to the pods of a Job."""

    metadata: TemplateMetadata | None = None
    """Labels and annotations of the pods."""
    spec: PodSpecPatch | None = None
    """The pods."""


class JobSpecPatch(ApiModel):
    """Changes to a Job."""

    template: PodTemplatePatch | None = None
    """Its pods."""


class JobTemplatePatch(ApiModel):
    """Changes to the Jobs of a replicated Job."""

    metadata: TemplateMetadata | None = None
    """Labels and annotations of the Jobs."""
    spec: JobSpecPatch | None = None
    """The Jobs."""


class ReplicatedJobPatch(ApiModel):
    """Changes to one replicated Job."""

    name: Annotated[str, Field(min_length=1, max_length=253)]
    """Name of the replicated Job."""
    template: JobTemplatePatch | None = None
    """The Jobs."""


class JobSetSpecPatch(ApiModel):
    """Changes to the JobSet."""

    replicated_jobs: Annotated[list[ReplicatedJobPatch], Field(json_schema_extra=list_map("name", 100))] | None = None
    """The replicated Jobs that change."""


class JobSetTemplatePatch(ApiModel):
    """Changes to metadata and spec of the JobSet."""

    metadata: TemplateMetadata | None = None
    """Labels and annotations of the JobSet."""
    spec: JobSetSpecPatch | None = None
    """The JobSet."""


class RuntimeSpecPatch(ApiModel):
    """Changes to the spec of the runtime."""

    template: JobSetTemplatePatch | None = None
    """The JobSet."""


class RuntimePatch(ApiModel):
    """What one manager changes of the runtime."""

    manager: Annotated[str, Field(min_length=1, max_length=253, json_schema_extra=_IMMUTABLE)]
    """Who makes the changes, such as kueue.x-k8s.io/manager."""
    time: Time | None = None
    """When the entry was last changed; set by the webhook."""
    training_runtime_spec: RuntimeSpecPatch | None = None
    """The changes."""


class TrainJobSpec(ApiModel):
    """The desired training."""

    # Kubeflow Trainer (Go) lets no trainer change at all.
    model_config = ConfigDict(
        json_schema_extra=rules.cel_rules(
            rules.cel_rule(
                "!has(self.trainer) || !has(oldSelf.trainer) || self.trainer == oldSelf.trainer"
                " || (has(oldSelf.suspend) && oldSelf.suspend"
                f" && {rules.resized_trainer('self.trainer', 'oldSelf.trainer')})",
                "field is immutable",
                field_path=".trainer",
            )
        )
    )

    runtime_ref: Annotated[RuntimeRef, Field(json_schema_extra=_IMMUTABLE)]
    """The training runtime to build on."""
    initializer: Annotated[Initializer, Field(json_schema_extra=_IMMUTABLE)] | None = None
    """What is fetched before the training begins."""
    trainer: Trainer | None = None
    """Settings of the training container."""
    runtime_patches: Annotated[list[RuntimePatch], Field(json_schema_extra=list_map("manager", 16))] | None = None
    """Changes to the runtime, by who makes them."""
    suspend: bool = False
    """Whether the training is suspended."""
    active_deadline_seconds: Annotated[Int64, Field(ge=1, json_schema_extra=_IMMUTABLE)] | None = None
    """Seconds that the training may take."""
    managed_by: Annotated[
        str,
        Field(
            json_schema_extra=rules.cel_rules(
                rules.cel_rule(
                    f"self in {_MANAGERS}",
                    "ManagedBy must be trainer.kubeflow.org/trainjob-controller or kueue.x-k8s.io/multikueue if set",
                ),
                rules.cel_rule("self == oldSelf", "field is immutable"),
            )
            | text(longest=253)
        ),
    ] = "trainer.kubeflow.org/trainjob-controller"
    """Who manages the TrainJob."""


class Metric(ApiModel):
    """A metric of the training."""

    name: Annotated[str, Field(min_length=1, max_length=64)]
    """Its name."""
    value: Annotated[str, Field(min_length=1, max_length=64)]
    """The number as a string."""


class TrainerStatus(trainjob_status.TrainerStatus):
    """What the training tells about its progress."""

    metrics: Annotated[list[Metric], Field(json_schema_extra=atomic_list(256))] | None = None
    """Metrics of training and evaluation."""


class TrainJobStatus(trainjob_status.TrainJobStatus):
    """How a TrainJob is doing; clients of Kubeflow Trainer (Go) know conditions, jobsStatus and trainerStatus."""

    conditions: Annotated[list[Condition], Field(json_schema_extra=list_map("type", 8))] | None = None
    """Suspended, Complete and Failed."""
    further_conditions: Annotated[list[Condition], Field(json_schema_extra=list_map("type", 32))] | None = None
    """Created, Pending, Stopping, Restarting and Stalled, and what plugins add."""
    trainer_status: TrainerStatus | None = None
    """Progress and metrics of the training."""


class TrainJob(ApiModel):
    """A training or fine-tuning of a model on one or more nodes, built on a training runtime."""

    model_config = ConfigDict(
        json_schema_extra=rules.cel_rules(
            rules.cel_rule(
                "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
                "metadata.name must match RFC 1035 DNS label format",
            ),
            rules.cel_rule("size(self.metadata.name) <= 63", "metadata.name must be no more than 63 characters"),
        )
    )

    api_version: Literal["trainer.kubeflow.org/v1alpha1"] = "trainer.kubeflow.org/v1alpha1"
    kind: Literal["TrainJob"] = "TrainJob"
    metadata: ObjectMetadata = Field(default_factory=ObjectMetadata)
    spec: TrainJobSpec | None = None
    """The desired training."""
    status: TrainJobStatus | None = None
    """How the training goes; written by the system."""
