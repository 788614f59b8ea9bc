"""JobSet `jobset.x-k8s.io/v1alpha2`: what a TrainJob becomes. Pod templates stay plain dicts."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import ConfigDict, Field

from trainer.api import patterns, rules
from trainer.api.builtin_schemas import built_in
from trainer.api.corev1 import PersistentVolumeClaim, PodTemplate
from trainer.api.metadata import TemplateMetadata
from trainer.api.model import ApiModel, Count, Int64, JsonObject, atomic_list, list_map, text

JobNames = Annotated[list[str], Field(json_schema_extra=atomic_list(100))]
"""Names of replicated Jobs."""


class JobSpec(ApiModel):
    """A batch/v1 Job."""

    parallelism: Count | None = None
    """How many pods run at the same time; set to the number of nodes for the trainer."""
    completions: Count | None = None
    """How many pods must succeed; set to the number of nodes for the trainer."""
    completion_mode: Literal["Indexed", "NonIndexed"] | None = None
    """Whether pods have an index; JobSet defaults to Indexed, which training needs."""
    active_deadline_seconds: Annotated[Int64, Field(ge=0)] | None = None
    """Seconds after its start at which the Job fails if it still runs."""
    backoff_limit: Count | None = None
    """How many pod failures are retried before the Job fails. Kubernetes defaults to 6."""
    backoff_limit_per_index: Count | None = None
    """How many failures of each index are retried."""
    max_failed_indexes: Count | None = None
    """How many indexes may fail before the Job fails; only with backoffLimitPerIndex."""
    pod_failure_policy: Annotated[JsonObject, Field(json_schema_extra=built_in("PodFailurePolicy"))] | None = None
    """What to do about particular pod failures, by exit code or pod condition."""
    success_policy: Annotated[JsonObject, Field(json_schema_extra=built_in("SuccessPolicy"))] | None = None
    """When the Job counts as succeeded although not all pods are."""
    pod_replacement_policy: Literal["TerminatingOrFailed", "Failed"] | None = None
    """When a replacement for a pod that goes away is created."""
    suspend: bool | None = None
    """Overwritten by JobSet."""
    managed_by: str | None = None
    """Controller that reconciles the Job; the built-in one by default."""
    selector: Annotated[JsonObject, Field(json_schema_extra=built_in("LabelSelector"))] | None = None
    """Pods that belong to the Job; leave it out, Kubernetes generates it."""
    manual_selector: bool | None = None
    """Whether the selector was written by hand."""
    ttl_seconds_after_finished: Count | None = None
    """Refused: JobSet makes a Job again that is deleted before all have ended. TrainJobs have a field of this name."""
    template: PodTemplate
    """The pods of the Job."""


class JobTemplate(ApiModel):
    """Metadata and spec of the Jobs of one replicated Job."""

    metadata: TemplateMetadata | None = None
    """Labels and annotations of the Jobs. The label trainer.kubeflow.org/trainjob-ancestor-step says what they do."""
    spec: JobSpec
    """The Jobs."""


class DependsOn(ApiModel):
    """A replicated Job that must be there first."""

    name: str
    """Name of an earlier replicated Job."""
    status: Literal["Ready", "Complete"]
    """The state that it must have reached."""


class ReplicatedJob(ApiModel):
    """A group of equal Jobs in a JobSet."""

    name: Annotated[str, Field(min_length=1, json_schema_extra=text(pattern=patterns.JOB_NAME, longest=63))]
    """Unique name; part of the names of Jobs, pods and hosts. Upper-case letters become lower-case."""
    group_name: Annotated[str, Field(json_schema_extra=text(pattern=patterns.HOST_LABEL, longest=63))] | None = None
    """Group that the Jobs belong to. JobSet defaults to default."""
    replicas: Count | None = None
    """How many Jobs are made from the template. JobSet defaults to 1, and trainer and initializers need 1."""
    template: JobTemplate
    """The Jobs."""
    depends_on: Annotated[list[DependsOn], Field(max_length=5, json_schema_extra=list_map("name"))] | None = None
    """Replicated Jobs that must be ready or complete before these Jobs are created."""


class Network(ApiModel):
    """How pods of a JobSet find each other."""

    enable_dns_hostnames: Annotated[bool | None, Field(alias="enableDNSHostnames")] = None
    """Whether pods have DNS names. JobSet defaults to true, which distributed training needs."""
    subdomain: Annotated[str, Field(json_schema_extra=text(pattern=patterns.HOST_LABEL, longest=63))] | None = None
    """Subdomain of the pods' DNS names. JobSet defaults to its own name."""
    publish_not_ready_addresses: bool | None = None
    """Whether names resolve before pods are ready. JobSet defaults to true."""


class SuccessPolicy(ApiModel):
    """When a JobSet has succeeded."""

    operator: Literal["All", "Any"]
    """Whether all or any of the targeted Jobs must succeed."""
    target_replicated_jobs: JobNames | None = None
    """Replicated Jobs that count; all of them when absent."""


JobFailureReason: TypeAlias = Literal[
    "BackoffLimitExceeded", "DeadlineExceeded", "FailedIndexes", "MaxFailedIndexesExceeded", "PodFailurePolicy"
]


class FailurePolicyRule(ApiModel):
    """What to do about one kind of Job failure."""

    name: Annotated[str, Field(json_schema_extra=text(pattern=patterns.RULE_NAME, longest=128))] | None = None
    """Name of the rule, unique in the policy."""
    action: Literal[
        "FailJobSet",
        "RestartJobSet",
        "RestartJobSetAndIgnoreMaxRestarts",
        "RestartJob",
        "RestartJobAndIgnoreMaxRestarts",
    ]
    """What happens."""
    on_job_failure_reasons: Annotated[list[JobFailureReason], Field(json_schema_extra=atomic_list(5))] | None = None
    """Reasons of the Job's Failed condition that match; any when absent."""
    on_job_failure_message_patterns: Annotated[list[str], Field(json_schema_extra=atomic_list(50))] | None = None
    """Regular expressions of which one must match the message of the Job's Failed condition."""
    target_replicated_jobs: JobNames | None = None
    """Replicated Jobs to which the rule applies; all of them when absent."""


class FailurePolicy(ApiModel):
    """What to do when a Job fails; without a policy the JobSet fails."""

    max_restarts: Count | None = None
    """How often all Jobs are restarted before the JobSet fails. JobSet defaults to 0."""
    restart_strategy: Literal["Recreate", "BlockingRecreate", "InPlaceRestart"] | None = None
    """Whether Jobs are recreated one by one or only when all old ones are gone."""
    rules: Annotated[list[FailurePolicyRule], Field(json_schema_extra=atomic_list(50))] | None = None
    """Rules in order; the first that matches decides. A failure that no rule matches restarts the JobSet."""


class StartupPolicy(ApiModel):
    """In which order replicated Jobs start."""

    startup_policy_order: Literal["AnyOrder", "InOrder"]
    """InOrder waits for the pods of each replicated Job before it starts the next; dependsOn says it more precisely."""


class Coordinator(ApiModel):
    """The pod whose address all Jobs and pods carry as a label."""

    replicated_job: str
    """Replicated Job of the pod."""
    job_index: Count | None = None
    """Index of the Job in the replicated Job. Defaults to 0."""
    pod_index: Count | None = None
    """Index of the pod in the Job. Defaults to 0."""


class VolumeRetentionPolicy(ApiModel):
    """What happens to claims when the JobSet is deleted."""

    when_deleted: Literal["Delete", "Retain"] | None = None
    """Whether claims go with the JobSet. JobSet defaults to Delete."""


class VolumeClaimPolicy(ApiModel):
    """Volume claims that a JobSet makes for its pods."""

    templates: Annotated[list[PersistentVolumeClaim], Field(json_schema_extra=atomic_list(50, min_items=1))]
    """PersistentVolumeClaims; pods use one by mounting a volume of its name."""
    retention_policy: VolumeRetentionPolicy | None = None
    """What happens to the claims when the JobSet is deleted."""


class JobSetSpec(ApiModel):
    """The desired JobSet."""

    model_config = ConfigDict(
        json_schema_extra=rules.cel_rules(
            rules.cel_rule(
                "!(has(self.startupPolicy) && self.startupPolicy.startupPolicyOrder == 'InOrder'"
                " && has(self.replicatedJobs) && self.replicatedJobs.exists(job, has(job.dependsOn)))",
                rules.ORDER_OR_DEPENDENCIES,
            )
        )
    )

    replicated_jobs: (
        Annotated[list[ReplicatedJob], Field(json_schema_extra=list_map("name", 100) | {"minItems": 1})] | None
    ) = None
    """The groups of Jobs."""
    network: Network | None = None
    """How pods find each other."""
    success_policy: SuccessPolicy | None = None
    """When the JobSet has succeeded. JobSet defaults to when all Jobs have."""
    failure_policy: FailurePolicy | None = None
    """What to do when a Job fails. By default the JobSet fails."""
    startup_policy: StartupPolicy | None = None
    """In which order replicated Jobs start. JobSet defaults to any order."""
    suspend: bool | None = None
    """Whether no pods may run; in a runtime it is overwritten by the TrainJob's suspend."""
    coordinator: Coordinator | None = None
    """The pod whose address all Jobs and pods carry as a label."""
    managed_by: str | None = None
    """Controller that reconciles the JobSet; the JobSet controller by default."""
    ttl_seconds_after_finished: Count | None = None
    """Refused: a JobSet that deletes itself unseen would run again. TrainJobs have a field of this name."""
    volume_claim_policies: Annotated[list[VolumeClaimPolicy], Field(json_schema_extra=atomic_list(50))] | None = None
    """Volume claims that are made for the pods."""
