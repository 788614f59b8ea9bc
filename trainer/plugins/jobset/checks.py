"""Checks of the JobSet to be built, with the settings of the TrainJob merged into it.

JobSet's webhook refuses wrong references only when the JobSet is created; Kubernetes refuses wrong Jobs and pods where
only events say so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from trainer.api.container import HUGE_PAGES, check_request
from trainer.api.jobset import JobSetSpec, JobSpec
from trainer.api.kueue import QUEUE_LABEL
from trainer.api.trainjob import TrainJob
from trainer.framework import (
    ANCESTOR_LABEL,
    AdmissionWarning,
    Ancestor,
    Container,
    PodSet,
    RuntimeInfo,
    container_overrides,
    is_exclusive,
    pod_spec_of,
)
from trainer.kube.field_errors import OMITTED, FieldError, duplicate, forbidden, invalid, listed, required
from trainer.kube.objects import Object
from trainer.kube.quantity import parse_quantity

_INITIALIZERS = frozenset({Ancestor.DATASET_INITIALIZER, Ancestor.MODEL_INITIALIZER})


def check_references(info: RuntimeInfo) -> Iterator[FieldError]:
    """Errors of references to replicated Jobs that are missing or later, to missing pods, and to missing steps."""
    path = f"{info.runtime} spec.template.spec"
    yield from _steps(info, path)
    yield from _dependencies(info.template, path)
    yield from _success_policy(info.template, path)
    yield from _restart_rules(info.template, path)
    yield from _coordinator(info, path)


def warn_of_queue(info: RuntimeInfo, train_job: TrainJob) -> Iterator[AdmissionWarning]:
    """A queue of Kueue where Kueue does not look for it: with v2alpha1 it queues the JobSet."""
    is_queued = QUEUE_LABEL in (train_job.spec.labels or {})
    if not info.queues_train_job and QUEUE_LABEL in (train_job.metadata.labels or {}) and not is_queued:
        rule = "has no effect, for Kueue queues the JobSet of a TrainJob of v2alpha1: write it into spec.labels"
        yield AdmissionWarning(f"metadata.labels[{QUEUE_LABEL}]", rule)


def _steps(info: RuntimeInfo, path: str) -> Iterator[FieldError]:
    """Errors of an initializer that is there twice, or lacks the container that the TrainJob's settings change."""
    for pod_set in info.pod_sets:
        if pod_set.ancestor not in _INITIALIZERS:
            continue
        field = f"{path}.replicatedJobs[{pod_set.name}]"
        if pod_set.replicas != 1:
            yield invalid(f"{field}.replicas", pod_set.replicas, f"must be 1 for the step {pod_set.ancestor}")
        names = [container.name for container in (*pod_set.containers, *pod_set.init_containers)]
        if pod_set.ancestor not in names:
            detail = f"must have a container {pod_set.ancestor}, because the label {ANCESTOR_LABEL} names this step"
            yield invalid(f"{field}.template.spec.template.spec.containers", names, detail)


def _dependencies(template: JobSetSpec, path: str) -> Iterator[FieldError]:
    earlier: dict[str, None] = {}
    for job in template.replicated_jobs or []:
        field = f"{path}.replicatedJobs[{job.name}].dependsOn"
        if job.depends_on and not earlier:
            yield forbidden(field, "the first replicated Job cannot depend on another")
        for index, dependency in enumerate(job.depends_on or [] if earlier else []):
            if dependency.name not in earlier:
                detail = f"must be a replicated Job before {job.name}: {listed([*earlier])}"
                yield invalid(f"{field}[{index}].name", dependency.name, detail)
        earlier[job.name] = None


def _success_policy(template: JobSetSpec, path: str) -> Iterator[FieldError]:
    if template.success_policy is not None:
        targets = template.success_policy.target_replicated_jobs or []
        yield from _targets(template, targets, f"{path}.successPolicy.targetReplicatedJobs")


def _restart_rules(template: JobSetSpec, path: str) -> Iterator[FieldError]:
    names: set[str] = set()
    for index, rule in enumerate((template.failure_policy and template.failure_policy.rules) or []):
        field = f"{path}.failurePolicy.rules[{index}]"
        if rule.name is not None and rule.name in names:
            yield duplicate(f"{field}.name", rule.name)
        names |= {rule.name} if rule.name is not None else set()
        yield from _targets(template, rule.target_replicated_jobs or [], f"{field}.targetReplicatedJobs")


def _targets(template: JobSetSpec, targets: Sequence[str], path: str) -> Iterator[FieldError]:
    names = {job.name: job for job in template.replicated_jobs or []}
    for index, target in enumerate(targets):
        if target not in names:
            yield invalid(f"{path}[{index}]", target, f"must be a replicated Job: {listed([*names])}")


def _coordinator(info: RuntimeInfo, path: str) -> Iterator[FieldError]:
    coordinator = info.template.coordinator
    if coordinator is None:
        return
    field = f"{path}.coordinator"
    pod_set = next((pod_set for pod_set in info.pod_sets if pod_set.name == coordinator.replicated_job), None)
    if pod_set is None:
        names = listed([pod_set.name for pod_set in info.pod_sets])
        yield invalid(f"{field}.replicatedJob", coordinator.replicated_job, f"must be a replicated Job: {names}")
        return
    for name, index, count in (
        ("jobIndex", coordinator.job_index or 0, pod_set.replicas),
        ("podIndex", coordinator.pod_index or 0, pod_set.count),
    ):
        if index >= count:
            yield invalid(f"{field}.{name}", index, f"must be less than {count}, the number there is in {pod_set.name}")


_NAME_LIMIT = 63
_MANAGER = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[-A-Za-z0-9/_.~%!$&'()*+,;=:]+")
_INDEXES = re.compile(r"[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*")

_JOBSET_LIFETIME = "a JobSet that deletes itself before anybody has seen its end is built again, and trains again"
_JOB_LIFETIME = "JobSet makes Jobs again that are deleted before all have ended, and they run again"
_LIFETIME = "remove it; spec.ttlSecondsAfterFinished of a TrainJob deletes the TrainJob with all its Jobs"


def check_jobs(info: RuntimeInfo) -> Iterator[FieldError]:
    """Errors of policies that exclude each other, selectors, managers, and volume claims that no pod can use."""
    path = f"{info.runtime} spec.template.spec"
    jobs = info.template.replicated_jobs or []
    yield from _manager(info.template.managed_by, f"{path}.managedBy")
    if info.template.ttl_seconds_after_finished is not None:
        yield forbidden(f"{path}.ttlSecondsAfterFinished", f"{_JOBSET_LIFETIME}; {_LIFETIME}")
    for job, pod_set in zip(jobs, info.pod_sets, strict=True):
        field = f"{path}.replicatedJobs[{job.name}].template.spec"
        yield from _manager(job.template.spec.managed_by, f"{field}.managedBy")
        if job.template.spec.ttl_seconds_after_finished is not None:
            yield forbidden(f"{field}.ttlSecondsAfterFinished", f"{_JOB_LIFETIME}; {_LIFETIME}")
        yield from _selector(job.template.spec, field)
        yield from _indexes(job.template.spec, pod_set, field)
        yield from _failure_policy(job.template.spec, pod_set, field)
    yield from _claim_policies(info, f"{path}.volumeClaimPolicies")


def _manager(name: str | None, path: str) -> Iterator[FieldError]:
    if name is not None and not (len(name) <= _NAME_LIMIT and _MANAGER.fullmatch(name)):
        yield invalid(path, name, f"must be a path with a domain, such as example.com/name, of at most {_NAME_LIMIT}")


def _selector(job: JobSpec, path: str) -> Iterator[FieldError]:
    if job.manual_selector and job.selector is None:
        yield required(f"{path}.selector", "manualSelector is true")
    if job.selector is not None and not job.manual_selector:
        yield forbidden(f"{path}.selector", "Kubernetes generates it; remove it")


def _indexes(job: JobSpec, pod_set: PodSet, path: str) -> Iterator[FieldError]:
    """Errors of settings that only Indexed Jobs, JobSet's default, may have."""
    if job.completion_mode == "NonIndexed":
        for name, value in (
            ("backoffLimitPerIndex", job.backoff_limit_per_index),
            ("successPolicy", job.success_policy),
        ):
            if value is not None:
                yield forbidden(f"{path}.{name}", "completionMode must be Indexed")
    if job.max_failed_indexes is not None and job.backoff_limit_per_index is None:
        yield required(f"{path}.backoffLimitPerIndex", "maxFailedIndexes is set")
    pods = _completions(job, pod_set)
    if job.max_failed_indexes is not None and job.max_failed_indexes > pods:
        detail = f"must be at most {pods}, the number of pods"
        yield invalid(f"{path}.maxFailedIndexes", job.max_failed_indexes, detail)
    for index, rule in enumerate((job.success_policy or {}).get("rules") or []):
        yield from _success_rule(rule, pods, f"{path}.successPolicy.rules[{index}]")


def _completions(job: JobSpec, pod_set: PodSet) -> int:
    """Number of pods that have to succeed; for the trainer the number of nodes."""
    return pod_set.count if pod_set.ancestor == Ancestor.TRAINER or job.completions is None else job.completions


def _success_rule(rule: Object, pods: int, path: str) -> Iterator[FieldError]:
    indexes, count = rule.get("succeededIndexes"), rule.get("succeededCount")
    if indexes is None and count is None:
        yield required(path, "give it succeededCount, succeededIndexes or both")
    if indexes is not None and not _INDEXES.fullmatch(indexes):
        yield invalid(f"{path}.succeededIndexes", indexes, "must be numbers and ranges, such as 0,2-4")
    if count is not None and not 0 <= count <= pods:
        yield invalid(f"{path}.succeededCount", count, f"must be between 0 and {pods}, the number of pods")


def _failure_policy(job: JobSpec, pod_set: PodSet, path: str) -> Iterator[FieldError]:
    if job.pod_failure_policy is None:
        return
    restart_policy = job.template["spec"].get("restartPolicy")
    if restart_policy != "Never":
        field = f"{path}.template.spec.restartPolicy"
        yield invalid(field, restart_policy or "OnFailure", "must be Never when podFailurePolicy is set")
    if job.pod_replacement_policy not in {None, "Failed"}:
        field = f"{path}.podReplacementPolicy"
        yield invalid(field, job.pod_replacement_policy, "must be Failed when podFailurePolicy is set")
    containers = {container.name for container in (*pod_set.containers, *pod_set.init_containers)}
    for index, rule in enumerate(job.pod_failure_policy.get("rules") or []):
        field = f"{path}.podFailurePolicy.rules[{index}]"
        if rule["action"] == "FailIndex" and job.backoff_limit_per_index is None:
            yield invalid(f"{field}.action", "FailIndex", "needs backoffLimitPerIndex")
        yield from _failure_rule(rule, containers, field)


def _failure_rule(rule: Object, containers: set[str], path: str) -> Iterator[FieldError]:
    codes = rule.get("onExitCodes")
    if (codes is None) == (not rule.get("onPodConditions")):
        yield invalid(path, OMITTED, "must have exactly one of onExitCodes, onPodConditions")
    if codes is None:
        return
    if codes["operator"] == "In" and 0 in codes["values"]:
        yield invalid(f"{path}.onExitCodes.values", codes["values"], "must not contain 0 when operator is In")
    if codes["values"] != sorted(codes["values"]):
        yield invalid(f"{path}.onExitCodes.values", codes["values"], "must be in ascending order")
    name = codes.get("containerName")
    if name is not None and name not in containers:
        detail = f"must be a container of the pods: {listed(sorted(containers))}"
        yield invalid(f"{path}.onExitCodes.containerName", name, detail)


def _claim_policies(info: RuntimeInfo, path: str) -> Iterator[FieldError]:
    """Errors of a volume claim: JobSet requires a mount and a unique name, and Kubernetes a size."""
    volumes = {volume.get("name") for pod_set in info.pod_sets for volume in pod_set.volumes}
    mounted = {
        mount.get("name")
        for pod_set in info.pod_sets
        for container in (*pod_set.containers, *pod_set.init_containers)
        for mount in container.volume_mounts
    }
    names: set[str] = set()
    for index, policy in enumerate(info.template.volume_claim_policies or []):
        for position, claim in enumerate(policy.templates):
            field, name = f"{path}[{index}].templates[{position}]", claim["metadata"]["name"]
            if name in names:
                yield duplicate(f"{field}.metadata.name", name)
            names.add(name)
            if name in volumes:
                yield invalid(f"{field}.metadata.name", name, "is the name of a volume of the pods, too")
            elif name not in mounted:
                yield invalid(f"{field}.metadata.name", name, "no container mounts a volume of this name")
            if len(f"{name}-{info.job_name}") > _NAME_LIMIT:
                detail = f"is too long: the claim is called {name}-{info.job_name}, of at most {_NAME_LIMIT} characters"
                yield invalid("metadata.name", info.job_name, detail)
            yield from _claim_spec(claim["spec"], f"{field}.spec")


def _claim_spec(spec: Object, path: str) -> Iterator[FieldError]:
    if not spec.get("accessModes"):
        yield required(f"{path}.accessModes", "at least one access mode")
    if "storage" not in ((spec.get("resources") or {}).get("requests") or {}):
        yield required(f"{path}.resources.requests[storage]")


_OTHERS_LABELS = frozenset({"job-name", "controller-uid", ANCESTOR_LABEL})
_OTHERS_DOMAINS = ("batch.kubernetes.io/", "jobset.sigs.k8s.io/")
"""Labels by which Jobs and JobSets select their pods; Kubernetes refuses other values."""


def check_pods(info: RuntimeInfo, train_job: TrainJob) -> Iterator[FieldError]:
    """Errors of reserved labels, containers without an image, mounts without a volume, requests above limits."""
    for path, labels in _labels(train_job):
        for key in labels:
            if key in _OTHERS_LABELS or key.startswith(_OTHERS_DOMAINS):
                yield forbidden(f"{path}[{key}]", "is for JobSet and Kubernetes to set on Jobs and pods; remove it")
    claims, own_resources = _claims(info), _own_resources(train_job)
    for pod_set in info.pod_sets:
        volumes = {volume.get("name") for volume in pod_set.volumes} | claims
        for kind, containers in (("containers", pod_set.containers), ("initContainers", pod_set.init_containers)):
            for container in containers:
                path = _path(info, pod_set, kind, container)
                is_main = container is pod_set.main
                if not container.image:
                    field = "spec.trainer.image" if is_main else f"{path}.image"
                    yield required(field, f"container {container.name} of {info.runtime} has no image")
                if any(mount.get("name") not in volumes for mount in container.volume_mounts):
                    own = _own_mounts(train_job, pod_set, container, kind)
                    yield from _unknown_volumes(container, volumes, own, f"{path}.volumeMounts", pod_set.name)
                yield from _requests(own_resources if is_main else frozenset(), container, f"{path}.resources")
        yield from _unknown_claims(info, pod_set)


def _unknown_volumes(
    container: Container, volumes: set[object], own: Mapping[str, str], path: str, pods: str
) -> Iterator[FieldError]:
    for position, mount in enumerate(container.volume_mounts):
        if mount.get("name") not in volumes:
            field = own.get(mount["mountPath"], f"{path}[{position}]")
            yield invalid(f"{field}.name", mount.get("name"), f"is not a volume of the pods of {pods}")


def _labels(train_job: TrainJob) -> Iterator[tuple[str, Mapping[str, str]]]:
    """The labels that a TrainJob gives its JobSet, Jobs and pods, with their fields."""
    spec = train_job.spec
    yield "spec.labels", spec.labels or {}
    places = [("spec.jobSetMetadata", spec.job_set_metadata)]
    for index, override in enumerate(spec.pod_spec_overrides or []):
        path = f"spec.podSpecOverrides[{index}]"
        places += [(f"{path}.metadata", override.metadata), (f"{path}.jobMetadata", override.job_metadata)]
    for path, metadata in places:
        yield f"{path}.labels", (metadata and metadata.labels) or {}


def _path(info: RuntimeInfo, pod_set: PodSet, kind: str, container: Container) -> str:
    jobs = f"{info.runtime} spec.template.spec.replicatedJobs[{pod_set.name}]"
    return f"{jobs}.template.spec.template.spec.{kind}[{container.name}]"


def _claims(info: RuntimeInfo) -> set[str]:
    """Names of the volume claims that JobSet creates, which pods can mount as volumes."""
    policies = info.template.volume_claim_policies or []
    return {(template.get("metadata") or {}).get("name") or "" for policy in policies for template in policy.templates}


def _own_mounts(train_job: TrainJob, pod_set: PodSet, container: Container, kind: str) -> dict[str, str]:
    """The fields of the mounts that a TrainJob gives a container, by mount path; the last override counts."""
    return {
        mount.mount_path: f"{path}.volumeMounts[{position}]"
        for path, change in container_overrides(train_job, pod_set, container, kind)
        for position, mount in enumerate(change.volume_mounts or [])
    }


def _own_resources(train_job: TrainJob) -> frozenset[str]:
    """Resources that the TrainJob sets."""
    trainer = train_job.spec.trainer
    resources = trainer.resources_per_node if trainer is not None else None
    return frozenset() if resources is None else frozenset({*(resources.requests or {}), *(resources.limits or {})})


def _requests(own: frozenset[str], container: Container, path: str) -> Iterator[FieldError]:
    """Errors of requests above their limit, and of devices such as GPUs without a limit of the same amount.

    The TrainJob sets the amounts of the resources `own`; `path` is that of the others, in the runtime.
    """
    requests, limits = container.resources.get("requests") or {}, container.resources.get("limits") or {}
    named = {*requests, *limits}
    pages = sorted(name for name in named if name.startswith(HUGE_PAGES))
    if pages and not named & {"cpu", "memory"}:
        yield required(_place(own, pages[0], path), "huge pages need cpu or memory beside them")
    for name, amount in requests.items():
        field = f"{_place(own, name, path)}.requests[{name}]"
        limit = limits.get(name)
        if is_exclusive(name) and (limit is None or parse_quantity(limit) != parse_quantity(amount)):
            shown = "none" if limit is None else limit
            yield invalid(field, amount, f"must be equal to the {name} limit, which is {shown}: it cannot be shared")
        else:
            yield from check_request(name, amount, limit, field)


def _unknown_claims(info: RuntimeInfo, pod_set: PodSet) -> Iterator[FieldError]:
    """Errors of device claims that the TrainJob names and its pods lack."""
    if pod_set.main is None:
        return
    spec = pod_spec_of(info.job_of(pod_set))
    names = {str(claim.get("name")): claim for claim in spec.get("resourceClaims") or []}
    for index, claim in enumerate(pod_set.main.resources.get("claims") or []):
        if str(claim.get("name")) not in names:
            detail = (
                f"is not a resourceClaim of the pods of {pod_set.name} of {info.runtime}; they have {listed([*names])}"
            )
            yield invalid(f"spec.trainer.resourcesPerNode.claims[{index}].name", claim.get("name"), detail)


def _place(own: frozenset[str], name: str, path: str) -> str:
    """The field that sets a wrong amount: the TrainJob's if it sets that resource."""
    return "spec.trainer.resourcesPerNode" if name in own else path
