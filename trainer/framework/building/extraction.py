"""From a runtime and a TrainJob to RuntimeInfo, before any plugin.

From weak to strong: the runtime, `podSpecOverrides` in their order, the settings of `trainer`, `datasetConfig` and
`modelConfig`. `trainer.env` comes last of all, after the plugins (KEP-2170; docs/trainjob.md has the whole table).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from trainer.api.jobset import FailurePolicy, JobSetSpec, ReplicatedJob
from trainer.api.trainingruntime import MLPolicy, PodGroupPolicy, Runtime
from trainer.api.trainjob import StorageSettings, TrainJob
from trainer.framework.building.overrides import apply_override
from trainer.framework.building.profile import MODEL_EXPORTER, V2ALPHA1_PROFILE, Profile
from trainer.framework.building.template import normalised, normalised_once, pod_spec_of
from trainer.framework.building.trainer_step import stated_ancestor
from trainer.framework.plugin_api.devices import USUAL_DEVICES, DeviceTable
from trainer.framework.plugin_api.errors import BuildError
from trainer.framework.plugin_api.runtime_info import Ancestor, Container, PodSet, RuntimeInfo, by_source, upsert
from trainer.framework.runtimes.default_gang import DEFAULT_GANG
from trainer.kube.field_errors import FieldError, forbidden
from trainer.kube.objects import Object

_STORAGE_CONTAINERS = {
    "spec.datasetConfig": Ancestor.DATASET_INITIALIZER,
    "spec.modelConfig.input": Ancestor.MODEL_INITIALIZER,
    "spec.modelConfig.output": MODEL_EXPORTER,
}
"""The containers that fetch and export data (KEP-2170, "The Dataset Config API" and "The Model Config API")."""


def subject_of(runtime: Runtime) -> str:
    """Kind and name of a runtime, the prefix of the paths of its errors."""
    return f"{runtime.kind}/{runtime.metadata.name}"


def extract(
    train_job: TrainJob,
    runtime: Runtime,
    *,
    profile: Profile = V2ALPHA1_PROFILE,
    is_checked: bool = False,
    devices: DeviceTable = USUAL_DEVICES,
) -> RuntimeInfo:
    """Make the RuntimeInfo of a runtime, with the settings of the TrainJob that every kind of training has."""
    info = extract_runtime(train_job, runtime, profile=profile, is_checked=is_checked, devices=devices)
    for _ in apply_settings(info, train_job, profile):
        pass
    return info


def extract_runtime(
    train_job: TrainJob, runtime: Runtime, *, profile: Profile, is_checked: bool, devices: DeviceTable
) -> RuntimeInfo:
    """Make the RuntimeInfo of a runtime, without settings of the TrainJob."""
    check_growth(train_job, len(runtime.spec.template.spec.replicated_jobs or []))
    info = _info(train_job, runtime, profile, is_checked=is_checked)
    info.device_table = devices
    profile.mark(info)
    return info


def apply_settings(info: RuntimeInfo, train_job: TrainJob, profile: Profile) -> Iterator[str]:
    """Change `info` as the TrainJob says, from weak to strong; yields the field after each change."""
    for index, override in enumerate(train_job.spec.pod_spec_overrides or []):
        path = f"spec.podSpecOverrides[{index}]"
        apply_override(info, override, path, profile.merge)
        yield path
    profile.apply_trainer(info, train_job)
    yield "spec.trainer"
    for path, settings in train_job.spec.storage_settings():
        _apply_storage(info, path, settings)
        yield path
    if (changes := train_job.spec.job_set_metadata) is not None:
        info.labels |= changes.labels or {}
        info.annotations |= changes.annotations or {}
        yield "spec.jobSetMetadata"
    if train_job.spec.max_restarts is not None:
        _limit_restarts(info.template, train_job.spec.max_restarts)
        yield "spec.maxRestarts"
    info.train_job_labels = dict(train_job.spec.labels or {})
    yield "spec.labels"
    info.train_job_annotations = dict(train_job.spec.annotations or {})
    yield "spec.annotations"


def _limit_restarts(template: JobSetSpec, most: int) -> None:
    """Set how often all nodes start again; where the runtime has no policy, none of them before all have ended."""
    present = template.failure_policy or FailurePolicy(restart_strategy="BlockingRecreate")
    template.failure_policy = present.model_copy(update={"max_restarts": most})


_NO_POLICY: Final = MLPolicy()
_NO_GROUPS: Final = PodGroupPolicy()


def _info(train_job: TrainJob, runtime: Runtime, profile: Profile, *, is_checked: bool) -> RuntimeInfo:
    subject = subject_of(runtime)
    spec = runtime.spec.template.spec
    template = normalised(spec, subject, is_checked=True) if is_checked else normalised_once(spec, subject)
    metadata = runtime.spec.template.metadata
    return profile.info(
        job_name=train_job.metadata.name,
        runtime=subject,
        namespace=train_job.metadata.namespace or "",
        template=template,
        labels=dict((metadata and metadata.labels) or {}),
        annotations=dict((metadata and metadata.annotations) or {}),
        ml_policy=runtime.spec.ml_policy or _NO_POLICY,
        pod_group_policy=runtime.spec.pod_group_policy or _NO_GROUPS,
        has_default_gang=DEFAULT_GANG in (runtime.metadata.annotations or {}),
        pod_sets=[_pod_set(job) for job in template.replicated_jobs or []],
    )


def _pod_set(job: ReplicatedJob) -> PodSet:
    spec = pod_spec_of(job)
    return PodSet(
        name=job.name,
        ancestor=stated_ancestor(job),
        count=_number(job.template.spec.parallelism, _number(job.template.spec.completions, 1)),
        replicas=_number(job.replicas, 1),
        containers=[_container(container) for container in spec.get("containers") or []],
        init_containers=[_container(container) for container in spec.get("initContainers") or []],
        volumes=list(spec.get("volumes") or []),
    )


def _number(stated: int | None, default: int) -> int:
    return default if stated is None else stated


def _container(container: Object) -> Container:
    return Container(
        name=container["name"],
        image=container.get("image") or "",
        command=list(container.get("command") or []),
        args=list(container.get("args") or []),
        env=list(container.get("env") or []),
        env_from=list(container.get("envFrom") or []),
        ports=list(container.get("ports") or []),
        volume_mounts=list(container.get("volumeMounts") or []),
        resources=dict(container.get("resources") or {}),
    )


_MOST: Final = 3 * 1024 * 1024
"""Limit of the bytes of a request that an API server reads; it stores less."""


def check_growth(train_job: TrainJob, replicated_jobs: int) -> None:
    """Refuse settings whose objects would be larger than an API server reads.

    Labels, annotations and overrides are written once and stand in every Job and pod template that they are for, so
    that 256 KiB can become 50 MiB.
    """
    sizes = dict(_sizes(train_job, replicated_jobs))
    total = sum(sizes.values())
    if total > _MOST:
        largest = max(sizes, key=sizes.__getitem__)
        size, allowed = f"{sizes[largest] // 1024} of {total // 1024} KiB", f"{_MOST // 1024} KiB"
        rule = f"becomes {size} of settings in all Jobs and pods that they are for, which may have {allowed}"
        raise BuildError(FieldError(largest, f"Too long: {rule}", "FieldValueTooLong"))


def _sizes(train_job: TrainJob, replicated_jobs: int) -> Iterator[tuple[str, int]]:
    spec = train_job.spec
    # A replicated Job has them twice, for its Jobs and its pods, and the JobSet has them as well.
    yield "spec.labels", _size(spec.labels) * (2 * replicated_jobs + 1)
    yield "spec.annotations", _size(spec.annotations) * (2 * replicated_jobs + 1)
    for index, override in enumerate(spec.pod_spec_overrides or []):
        yield (
            f"spec.podSpecOverrides[{index}]",
            _size(override.to_object()) * min(len(override.target_jobs), replicated_jobs),
        )


def _size(value: Any) -> int:
    return len(msgspec.json.encode(value)) if value else 0


def _apply_storage(info: RuntimeInfo, path: str, settings: StorageSettings) -> None:
    """Give the container of these settings its URI, environment and credentials; `STORAGE_URI` in `env` wins."""
    name = _STORAGE_CONTAINERS[path]
    containers = [
        container
        for pod_set in info.pod_sets
        for container in (*pod_set.containers, *pod_set.init_containers)
        if container.name == name
    ]
    if not containers:
        detail = f"{info.runtime} has no container {name}; choose a runtime that has one, or remove this"
        raise BuildError(forbidden(path, detail))
    for container in containers:
        if settings.storage_uri is not None:
            container.set_env([{"name": "STORAGE_URI", "value": settings.storage_uri}])
        container.set_env(variable.to_object() for variable in settings.env or [])
        if settings.secret_ref:
            upsert(container.env_from, [{"secretRef": {"name": settings.secret_ref.name}}], by_source)
