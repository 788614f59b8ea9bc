"""Checks of Jobs that Kubernetes makes and JobSet does not.

The Jobs would never come, and only an event of the JobSet would say why.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from trainer.framework import Ancestor
from trainer.kube.field_errors import OMITTED, duplicate, forbidden, invalid, listed, required

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainer.api.jobset import JobSpec
    from trainer.framework import PodSet, RuntimeInfo
    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object

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
    yield from _claims(info, f"{path}.volumeClaimPolicies")


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


def _claims(info: RuntimeInfo, path: str) -> Iterator[FieldError]:
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
