"""Pod spec overrides of a TrainJob (KEP-2170, "The PodSpecOverride APIs")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.framework.errors import BuildError
from trainer.framework.template import pod_spec_of, split_command
from trainer.framework.upsert import by_mount_path, by_name, upsert

if TYPE_CHECKING:
    from trainer.api.jobset import JobSetSpec, ReplicatedJob
    from trainer.api.trainjob import ContainerOverride, PodSpecOverride
    from trainer.kube.objects import Object


def apply_overrides(template: JobSetSpec, overrides: list[PodSpecOverride], runtime: str) -> None:
    """Change the pod templates that the overrides name; later overrides win.

    Raises:
        BuildError: the runtime has no such replicated Job or container.
    """
    for index, override in enumerate(overrides):
        path = f"spec.podSpecOverrides[{index}]"
        if not override.target_jobs:
            raise BuildError.at(f"{path}.targetJobs", "must name at least one replicated Job of the runtime")
        for position, target in enumerate(override.target_jobs):
            job = _find_job(template, target.name, f"{path}.targetJobs[{position}].name", runtime)
            _override_pod(pod_spec_of(job), override, path, f"replicated Job {job.name} of {runtime}")


def _find_job(template: JobSetSpec, name: str, path: str, runtime: str) -> ReplicatedJob:
    jobs = {job.name: job for job in template.replicated_jobs or []}
    if name.lower() not in jobs:
        raise BuildError.at(path, f"{runtime} has no replicated Job {name}; it has {', '.join(jobs)}")
    return jobs[name.lower()]


def _override_pod(pod_spec: Object, override: PodSpecOverride, path: str, owner: str) -> None:
    for kind, changes in (("containers", override.containers), ("initContainers", override.init_containers)):
        containers = {container["name"]: container for container in pod_spec.get(kind) or []}
        for change in changes or []:
            field = f"{path}.{kind}[{change.name}]"
            if change.name not in containers:
                raise BuildError.at(field, f"{owner} has no such container; it has {', '.join(containers) or 'none'}")
            _override_container(containers[change.name], change, field)
    if override.volumes:
        upsert(pod_spec.setdefault("volumes", []), [volume.to_object() for volume in override.volumes], by_name)
    if override.service_account_name:
        pod_spec["serviceAccountName"] = override.service_account_name
    if override.node_selector:
        pod_spec["nodeSelector"] = (pod_spec.get("nodeSelector") or {}) | override.node_selector
    if override.tolerations:
        present = pod_spec.setdefault("tolerations", [])
        present += [toleration for toleration in override.tolerations if toleration not in present]


def _override_container(container: Object, change: ContainerOverride, path: str) -> None:
    if change.command is not None:
        container["command"] = split_command(change.command, f"{path}.command")
    if change.args is not None:
        container["args"] = list(change.args)
    if change.env:
        upsert(container.setdefault("env", []), [variable.to_object() for variable in change.env], by_name)
    if change.env_from:
        container.setdefault("envFrom", []).extend(change.env_from)
    if change.volume_mounts:
        mounts = [mount.to_object() for mount in change.volume_mounts]
        upsert(container.setdefault("volumeMounts", []), mounts, by_mount_path)
