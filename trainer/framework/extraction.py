"""From a runtime and a TrainJob to RuntimeInfo, before any plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.api.trainingruntime import MLPolicy, PodGroupPolicy
from trainer.framework.overrides import apply_overrides
from trainer.framework.runtime_info import Container, PodSet, RuntimeInfo
from trainer.framework.storage import apply_storage_settings
from trainer.framework.template import normalised, pod_spec_of
from trainer.framework.trainer_step import apply_trainer, mark_trainer, stated_ancestor

if TYPE_CHECKING:
    from trainer.api.jobset import ReplicatedJob
    from trainer.api.trainingruntime import Runtime
    from trainer.api.trainjob import TrainJob
    from trainer.kube.objects import Object


def extract(train_job: TrainJob, runtime: Runtime) -> RuntimeInfo:
    """What the runtime says, with the settings of the TrainJob that every kind of training has.

    From weak to strong: the runtime, `podSpecOverrides`, then `trainer`, `datasetConfig` and `modelConfig`. The
    trainer's environment variables are left to the plugins of the phase EnforceMLPolicy, which know the reserved ones.

    Raises:
        BuildError: the TrainJob asks for something that the runtime does not have, or the runtime is wrong.
    """
    subject = f"{runtime.kind}/{runtime.metadata.name}"
    template = normalised(runtime.spec.template.spec, subject)
    apply_overrides(template, train_job.spec.pod_spec_overrides or [], subject)
    metadata = runtime.spec.template.metadata
    info = RuntimeInfo(
        job_name=train_job.metadata.name,
        runtime=subject,
        template=template,
        labels=((metadata and metadata.labels) or {}) | (train_job.spec.labels or {}),
        annotations=((metadata and metadata.annotations) or {}) | (train_job.spec.annotations or {}),
        ml_policy=runtime.spec.ml_policy or MLPolicy(),
        pod_group_policy=runtime.spec.pod_group_policy or PodGroupPolicy(),
        pod_sets=[_pod_set(job) for job in template.replicated_jobs or []],
    )
    mark_trainer(info)
    apply_trainer(info, train_job)
    apply_storage_settings(info, train_job)
    return info


def _pod_set(job: ReplicatedJob) -> PodSet:
    spec = pod_spec_of(job)
    return PodSet(
        name=job.name,
        ancestor=stated_ancestor(job),
        count=_first(job.template.spec.parallelism, job.template.spec.completions, 1),
        replicas=_first(job.replicas, 1),
        containers=[_container(container) for container in spec.get("containers") or []],
        init_containers=[_container(container) for container in spec.get("initContainers") or []],
        volumes=list(spec.get("volumes") or []),
    )


def _first(*values: int | None) -> int:
    return next(value for value in values if value is not None)


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
