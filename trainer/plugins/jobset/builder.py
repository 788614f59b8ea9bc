"""Builds the JobSet from RuntimeInfo."""

from __future__ import annotations

from typing import Any

import msgspec

from trainer.api.trainjob import TrainJob
from trainer.framework import Ancestor, Container, PodSet, RuntimeInfo
from trainer.kube.objects import Object
from trainer.plugins.jobset.revision import FROM_CREATION, NODE_RANGE, SUSPEND, node_range
from trainer.workloads import JOBSETS

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(dict[str, Any])


def build_jobset(info: RuntimeInfo, train_job: TrainJob) -> Object:
    """The JobSet of the TrainJob; fields that RuntimeInfo lacks come from the runtime unchanged."""
    spec = info.template.to_object() | {"suspend": train_job.spec.suspend}
    for job, pod_set in zip(spec.get("replicatedJobs") or [], info.pod_sets, strict=True):
        job["replicas"] = pod_set.replicas
        _set_size(job["template"]["spec"], pod_set)
        _set_metadata(job["template"], pod_set, info)
        _set_pod_spec(job["template"]["spec"]["template"]["spec"], pod_set)
    annotations = info.annotations | info.train_job_annotations
    annotations.pop(NODE_RANGE, None)  # only a plugin makes a training elastic
    annotations.pop(SUSPEND, None)
    if spec["suspend"]:
        annotations[SUSPEND] = FROM_CREATION
    nodes = node_range(info)
    if nodes is not None:
        annotations[NODE_RANGE] = nodes
    metadata: Object = {"name": info.job_name}
    if train_job.metadata.namespace is not None:
        metadata["namespace"] = train_job.metadata.namespace
    _merge(metadata, info.labels | info.train_job_labels, annotations)
    jobset = {"apiVersion": JOBSETS.api_version, "kind": JOBSETS.kind, "metadata": metadata, "spec": spec}
    # Nothing is shared with `info` and with constants of plugins.
    return _decoder.decode(_encoder.encode(jobset))


def _set_size(job: Object, pod_set: PodSet) -> None:
    """The trainer has one pod for each node; other Jobs keep their size, and indexed Jobs need `completions`."""
    if pod_set.ancestor == Ancestor.TRAINER or job.get("completions") is None:
        job["parallelism"] = job["completions"] = pod_set.count


def _set_metadata(job_template: Object, pod_set: PodSet, info: RuntimeInfo) -> None:
    labels, annotations = info.train_job_labels, info.train_job_annotations
    _merge_into(job_template, labels, annotations)
    _merge_into(job_template["spec"]["template"], labels | pod_set.labels, annotations | pod_set.annotations)


def _merge_into(template: Object, labels: dict[str, str], annotations: dict[str, str]) -> None:
    metadata = template.get("metadata") or {}
    _merge(metadata, labels, annotations)
    if metadata:
        template["metadata"] = metadata


def _merge(metadata: Object, labels: dict[str, str], annotations: dict[str, str]) -> None:
    for name, additions in (("labels", labels), ("annotations", annotations)):
        if additions:
            metadata[name] = (metadata.get(name) or {}) | additions


def _set_pod_spec(spec: Object, pod_set: PodSet) -> None:
    for kind, containers in (("containers", pod_set.containers), ("initContainers", pod_set.init_containers)):
        templates = {template["name"]: template for template in spec.get(kind) or []}
        if containers:
            spec[kind] = [_container(templates.get(container.name) or {}, container) for container in containers]
    if pod_set.volumes:
        spec["volumes"] = pod_set.volumes
    if pod_set.scheduling_group:
        spec["schedulingGroup"] = {"podGroupName": pod_set.scheduling_group}


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
