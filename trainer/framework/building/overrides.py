"""Pod spec overrides of a TrainJob (KEP-2170, "The PodSpecOverride APIs")."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from trainer.api.metadata import TemplateMetadata
from trainer.api.trainjob import ContainerOverride, PodSpecOverride, TrainJob
from trainer.framework.building.template import pod_spec_of, split_command
from trainer.framework.plugin_api.errors import BuildError
from trainer.framework.plugin_api.runtime_info import (
    Container,
    Key,
    PodSet,
    RuntimeInfo,
    by_mount_path,
    by_name,
    by_source,
    by_taint,
    upsert,
)
from trainer.kube.field_errors import FieldError, duplicate, listed, not_found, required
from trainer.kube.merge_patch import merge_patch
from trainer.kube.objects import Object

Merge: TypeAlias = Callable[[list[Object], Iterable[Object], Key], None]
"""Merges the second list into the first."""


def apply_override(info: RuntimeInfo, override: PodSpecOverride, path: str, merge: Merge) -> None:
    """Change the pods that the override names; `merge` combines lists that have items in common."""
    errors = [*_unknown(info, override, path)]
    if errors:
        raise BuildError(*errors)
    for pod_set in _targets(info, override):
        _override_pod_set(pod_set, override, path, merge)
        job = info.job_of(pod_set)
        _override_pod_spec(pod_spec_of(job), override, merge)
        if override.metadata is not None:
            _override_pod_metadata(job.template.spec.template, override.metadata)
        if override.job_metadata is not None:
            job.template.metadata = (job.template.metadata or TemplateMetadata()).merged(override.job_metadata)


def container_overrides(
    train_job: TrainJob, pod_set: PodSet, container: Container, kind: str = "containers"
) -> Iterator[tuple[str, ContainerOverride]]:
    """What a TrainJob changes in one container of a pod set, from weak to strong, each with its path."""
    for index, override in enumerate(train_job.spec.pod_spec_overrides or []):
        if pod_set.name not in {target.name.lower() for target in override.target_jobs}:
            continue
        changes = override.containers if kind == "containers" else override.init_containers
        for position, change in enumerate(changes or []):
            if change.name == container.name:
                yield f"spec.podSpecOverrides[{index}].{kind}[{position}]", change


def _targets(info: RuntimeInfo, override: PodSpecOverride) -> list[PodSet]:
    names = {target.name.lower() for target in override.target_jobs}
    return [pod_set for pod_set in info.pod_sets if pod_set.name in names]


def _unknown(info: RuntimeInfo, override: PodSpecOverride, path: str) -> Iterator[FieldError]:
    if not override.target_jobs:
        yield required(f"{path}.targetJobs", "name at least one replicated Job of the runtime")
    present = {pod_set.name: pod_set for pod_set in info.pod_sets}
    seen: set[str] = set()
    for position, target in enumerate(override.target_jobs):
        field, name = f"{path}.targetJobs[{position}].name", target.name.lower()
        if name not in present:
            detail = f"{info.runtime} has no such replicated Job; it has {listed([*present])}"
            yield not_found(field, target.name, detail)
        elif name in seen:
            yield duplicate(field, target.name)
        seen.add(name)
    for pod_set in _targets(info, override):
        yield from _unknown_containers(info, pod_set, override, path)


def _unknown_containers(
    info: RuntimeInfo, pod_set: PodSet, override: PodSpecOverride, path: str
) -> Iterator[FieldError]:
    for kind, changes, containers in (
        ("containers", override.containers, pod_set.containers),
        ("initContainers", override.init_containers, pod_set.init_containers),
    ):
        names = {container.name: container for container in containers}
        for position, change in enumerate(changes or []):
            if change.name not in names:
                detail = (
                    f"replicated Job {pod_set.name} of {info.runtime} has no such container; it has {listed([*names])}"
                )
                yield not_found(f"{path}.{kind}[{position}].name", change.name, detail)


def _override_pod_set(pod_set: PodSet, override: PodSpecOverride, path: str, merge: Merge) -> None:
    for kind, changes, containers in (
        ("containers", override.containers, pod_set.containers),
        ("initContainers", override.init_containers, pod_set.init_containers),
    ):
        named = {container.name: container for container in containers}
        for position, change in enumerate(changes or []):
            _override_container(named[change.name], change, f"{path}.{kind}[{position}]", merge)
    merge(pod_set.volumes, [volume.to_object() for volume in override.volumes or []], by_name)


def _override_container(container: Container, change: ContainerOverride, path: str, merge: Merge) -> None:
    if change.command is not None:
        container.command = split_command(change.command, f"{path}.command")
    if change.args is not None:
        container.args = list(change.args)
    merge(container.env, [variable.to_object() for variable in change.env or []], by_name)
    upsert(container.env_from, change.env_from or [], by_source)
    merge(container.volume_mounts, [mount.to_object() for mount in change.volume_mounts or []], by_mount_path)


def _override_pod_spec(pod_spec: Object, override: PodSpecOverride, merge: Merge) -> None:
    if override.service_account_name:
        pod_spec["serviceAccountName"] = override.service_account_name
    if override.termination_grace_period_seconds is not None:
        pod_spec["terminationGracePeriodSeconds"] = override.termination_grace_period_seconds
    _merge(pod_spec, "affinity", override.affinity)
    _merge(pod_spec, "securityContext", override.security_context)
    secrets = [secret.to_object() for secret in override.image_pull_secrets or []]
    if secrets:
        merge(pod_spec.setdefault("imagePullSecrets", []), secrets, by_name)
    for kind, changes in (("containers", override.containers), ("initContainers", override.init_containers)):
        templates = {template["name"]: template for template in pod_spec.get(kind) or []}
        for change in changes or []:
            _merge(templates[change.name], "securityContext", change.security_context)
    if override.node_selector:
        pod_spec["nodeSelector"] = (pod_spec.get("nodeSelector") or {}) | override.node_selector
    if override.toleration_policy == "Replace":
        pod_spec["tolerations"] = list(override.tolerations or [])
    elif override.tolerations:
        upsert(pod_spec.setdefault("tolerations", []), override.tolerations, by_taint)
    gates = [gate.to_object() for gate in override.scheduling_gates or []]
    if gates:
        merge(pod_spec.setdefault("schedulingGates", []), gates, by_name)


def _merge(parent: Object, name: str, changes: Object | None) -> None:
    if changes:
        parent[name] = merge_patch(parent.get(name) or {}, changes)


def _override_pod_metadata(pod_template: Object, changes: TemplateMetadata) -> None:
    metadata = dict(pod_template.get("metadata") or {})
    for name, additions in (("labels", changes.labels), ("annotations", changes.annotations)):
        if additions:
            metadata[name] = (metadata.get(name) or {}) | additions
    if metadata:
        pod_template["metadata"] = metadata
