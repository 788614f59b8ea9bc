"""Builds the JobSet from RuntimeInfo."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.api.jobset import JobSet
from trainer.api.metadata import ObjectMetadata, TemplateMetadata
from trainer.framework import Ancestor, pod_spec_of, private_copy
from trainer.plugins.jobset.revision import FROM_CREATION, NODE_RANGE, SUSPEND, node_range

if TYPE_CHECKING:
    from trainer.api.jobset import JobSpec, ReplicatedJob
    from trainer.api.trainjob import TrainJob
    from trainer.framework import Container, PodSet, RuntimeInfo
    from trainer.kube.objects import Object


def build_jobset(info: RuntimeInfo, train_job: TrainJob) -> Object:
    """The JobSet of the TrainJob; fields that RuntimeInfo lacks come from the runtime unchanged."""
    spec = private_copy(info.template)
    spec.suspend = train_job.spec.suspend
    for job, pod_set in zip(spec.replicated_jobs or [], info.pod_sets, strict=True):
        job.replicas = pod_set.replicas
        _set_size(job.template.spec, pod_set)
        _set_metadata(job, pod_set, info)
        _set_pod_spec(pod_spec_of(job), pod_set)
    annotations = info.annotations | info.train_job_annotations
    annotations.pop(NODE_RANGE, None)  # only a plugin makes a training elastic
    annotations.pop(SUSPEND, None)
    if spec.suspend:
        annotations[SUSPEND] = FROM_CREATION
    nodes = node_range(info)
    if nodes is not None:
        annotations[NODE_RANGE] = nodes
    return JobSet(
        metadata=ObjectMetadata(
            name=info.job_name,
            namespace=train_job.metadata.namespace,
            labels=info.labels | info.train_job_labels or None,
            annotations=annotations or None,
        ),
        spec=spec,
    ).to_object()


def _set_size(job: JobSpec, pod_set: PodSet) -> None:
    """The trainer has one pod for each node; other Jobs keep their size, and indexed Jobs need `completions`."""
    if pod_set.ancestor == Ancestor.TRAINER or job.completions is None:
        job.parallelism = job.completions = pod_set.count


def _set_metadata(job: ReplicatedJob, pod_set: PodSet, info: RuntimeInfo) -> None:
    labels, annotations = info.train_job_labels, info.train_job_annotations
    metadata = job.template.metadata or TemplateMetadata()
    metadata.labels = (metadata.labels or {}) | labels or None
    metadata.annotations = (metadata.annotations or {}) | annotations or None
    if metadata.labels or metadata.annotations:
        job.template.metadata = metadata
    pod_template = job.template.spec.template
    pod_metadata: Object = dict(pod_template.get("metadata") or {})
    for name, additions in (
        ("labels", labels | pod_set.labels),
        ("annotations", annotations | pod_set.annotations),
    ):
        if additions:
            pod_metadata[name] = (pod_metadata.get(name) or {}) | additions
    if pod_metadata:
        pod_template["metadata"] = pod_metadata


def _set_pod_spec(spec: Object, pod_set: PodSet) -> None:
    for kind, containers in (("containers", pod_set.containers), ("initContainers", pod_set.init_containers)):
        templates = {template["name"]: template for template in spec.get(kind) or []}
        if containers:
            spec[kind] = [_container(templates.get(container.name) or {}, container) for container in containers]
    if pod_set.volumes:
        spec["volumes"] = pod_set.volumes


def _container(template: Object, container: Container) -> Object:
    """The template's container with the settings from RuntimeInfo."""
    fields = {
        "image": container.image,
        "command": container.command,
        "args": container.args,
        "env": container.env,
        "envFrom": container.env_from,
        "ports": container.ports,
        "volumeMounts": container.volume_mounts,
        "resources": container.resources,
    }
    untouched = {name: value for name, value in template.items() if name not in fields}
    return {"name": container.name} | untouched | {name: value for name, value in fields.items() if value}
