"""PodGroups: how a scheduler learns which pods are a gang, to be started together or not at all.

Each gang scheduler has a kind of this name of its own, with the same core: how many pods must find a place before any
of them is started, and what they need for that. This is the core; plugins add what is peculiar to their scheduler.

`RuntimeInfo.gang` says whose pods are members. An elastic training needs only its least number of nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec

from trainer.api.trainjob import TrainJob
from trainer.framework.building.template import pod_spec_of
from trainer.framework.plugin_api.component import Component, revise_while_suspended
from trainer.framework.plugin_api.errors import CLUSTER_LACKS, AdmissionWarning
from trainer.framework.plugin_api.extension_points import Watch
from trainer.framework.plugin_api.plugin_context import Reader
from trainer.framework.plugin_api.runtime_info import Container, PodSet, RuntimeInfo
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.controller.predicates import generation_changed
from trainer.kube.field_errors import FieldError, forbidden
from trainer.kube.objects import Object, ObjectKey, annotations_of
from trainer.kube.quantity import Quantity
from trainer.kube.resource import LIMIT_RANGES, RUNTIME_CLASSES, Resource
from trainer.workloads import JOBSETS
from trainer.workloads.pod_requests import Amounts, pod_requests

RUNTIME_CLASS = "trainer.kubeflow.org/runtime-class"
"""Annotation of a PodGroup: the RuntimeClass whose overhead its `minResources` count."""


def gang_specs(info: RuntimeInfo) -> list[Object]:
    """The pod specs of the gang's Jobs, with the resources that runtime, TrainJob and plugins give their containers."""
    return [_spec(info, pod_set) for pod_set in info.gang]


def _spec(info: RuntimeInfo, pod_set: PodSet) -> Object:
    spec = pod_spec_of(info.job_of(pod_set))
    return spec | {
        "containers": _with_resources(spec.get("containers"), pod_set.containers),
        "initContainers": _with_resources(spec.get("initContainers"), pod_set.init_containers),
    }


def scheduler_warnings(
    info: RuntimeInfo, pod_sets: Iterable[PodSet], suits: Callable[[str], bool], text: str
) -> Iterator[AdmissionWarning]:
    """Warn of pods whose scheduler, empty where none is named, does not suit; `text` has a place for {scheduler}.

    Not where the manager's gangScheduling has chosen: whoever has set it names the scheduler, and reads no warnings.
    """
    for pod_set in () if info.has_default_gang else pod_sets:
        scheduler = pod_spec_of(info.job_of(pod_set)).get("schedulerName") or ""
        if not suits(scheduler):
            pods = f"spec.template.spec.replicatedJobs[{pod_set.name}].template.spec.template.spec"
            field = f"{info.runtime} {pods}.schedulerName"
            yield AdmissionWarning(field, text.format(scheduler=scheduler or "absent"))


class PodGroups:
    """The PodGroups of one gang scheduler: what its plugin watches, needs and builds.

    Args:
        resource: kind of the PodGroups.
        policy: member of `spec.podGroupPolicy` that asks for them, and name of the plugin.
        provider: whose CRD it is, such as `Volcano`.
        reader: for RuntimeClasses, LimitRanges, JobSets and the PodGroups themselves.
    """

    def __init__(self, resource: Resource, policy: str, provider: str, reader: Reader) -> None:
        self._resource = resource
        self._policy = policy
        self._provider = provider
        self._reader = reader
        self._by_namespace = f"{policy}-namespace"
        self._by_runtime_class = f"{policy}-runtime-class"
        self._running = f"{policy}-running"

    def watches(self) -> Iterator[Watch]:
        """PodGroups once the cluster has them, and what their resources depend on, for TrainJobs that are suspended."""
        yield Watch(
            self._resource,
            predicate=generation_changed,
            optional=True,
            indexes={self._by_namespace: _namespaces, self._by_runtime_class: _runtime_classes},
        )
        yield Watch(JOBSETS, triggers=False, indexes={self._running: _running})
        yield Watch(LIMIT_RANGES, train_jobs=lambda obj: self._suspended(self._by_namespace, obj.key.namespace))
        yield Watch(RUNTIME_CLASSES, train_jobs=lambda obj: self._suspended(self._by_runtime_class, obj.key.name))

    def check(self, info: RuntimeInfo) -> Iterator[FieldError]:
        """Refuse what cannot be scheduled as a gang, since the cluster lacks the CRD of PodGroups."""
        if not self._reader.serves(self._resource):
            name = self._resource.qualified_name
            rule = f"the cluster does not have {name}; install {self._provider} with its CRD"
            yield forbidden(f"{info.runtime} spec.podGroupPolicy.{self._policy}", rule, code=CLUSTER_LACKS)

    def build(self, info: RuntimeInfo, train_job: TrainJob, spec: Object) -> Iterator[Component]:
        """The PodGroup of a TrainJob, which has its name; it follows changes until the JobSet runs.

        It is deleted when the TrainJob has ended: a scheduler may go on reserving resources for it. There is none if
        it would have no members, as where an MPI launcher is the only node. `spec` is the scheduler's own part.
        """
        jobs = list(zip(info.gang, gang_specs(info), strict=True))
        sizes = [pod_set.least for pod_set, _ in jobs]
        if not any(sizes):
            return
        resources: Amounts = {}
        for size, (_, pod) in zip(sizes, jobs, strict=True):
            requests = self._requests(pod, train_job.metadata.namespace or "")
            resources |= {name: resources.get(name, Quantity()) + amount * size for name, amount in requests.items()}
        metadata: Object = {"name": info.job_name, "namespace": train_job.metadata.namespace}
        classes = [pod["runtimeClassName"] for _, pod in jobs if pod.get("runtimeClassName")]
        if classes:
            metadata["annotations"] = {RUNTIME_CLASS: classes[0]}
        amounts = {name: str(resources[name]) for name in sorted(resources)}
        obj = {
            "apiVersion": self._resource.api_version,
            "kind": self._resource.kind,
            "metadata": metadata,
            "spec": {"minMember": sum(sizes)} | ({"minResources": amounts} if amounts else {}) | spec,
        }
        yield Component(
            self._resource, obj, revise=revise_while_suspended(self._reader, train_job, obj), delete_when_finished=True
        )

    def _requests(self, pod: Object, namespace: str) -> Amounts:
        name = pod.get("runtimeClassName")
        return pod_requests(
            pod,
            limit_ranges=self._reader.list(LIMIT_RANGES, namespace, {}),
            runtime_class=self._reader.get(RUNTIME_CLASSES, ObjectKey("", name)) if name else None,
        )

    def _suspended(self, index: str, value: str) -> Iterable[ObjectKey]:
        """TrainJobs whose PodGroup depends on an object and may still change; both have the same name, as their JobSet.

        There may be thousands, so none of their JobSets is decoded.
        """
        if not self._reader.serves(self._resource):
            return ()
        dependent = self._reader.keys(self._resource, index, value)
        namespaces = {key.namespace for key in dependent}
        running = [self._reader.keys(JOBSETS, self._running, namespace) for namespace in namespaces]
        return dependent - frozenset().union(*running)


class _JobSetSpec(msgspec.Struct):
    suspend: bool | None = None


class _JobSet(msgspec.Struct):
    spec: _JobSetSpec


_read_jobset = msgspec.json.Decoder(_JobSet).decode


def _with_resources(templates: list[Object] | None, containers: Iterable[Container]) -> list[Object]:
    by_name = {template["name"]: template for template in templates or []}
    return [by_name.get(container.name, {}) | {"resources": container.resources} for container in containers]


def _namespaces(pod_group: CachedObject) -> Iterable[str]:
    return (pod_group.key.namespace,) if _is_ours(pod_group) else ()


def _runtime_classes(pod_group: CachedObject) -> Iterable[str]:
    name = annotations_of(pod_group).get(RUNTIME_CLASS) if _is_ours(pod_group) else None
    return () if name is None else (name,)


def _running(jobset: CachedObject) -> Iterable[str]:
    return () if _read_jobset(jobset.raw).spec.suspend else (jobset.key.namespace,)


def _is_ours(pod_group: CachedObject) -> bool:
    """Whether a PodGroup belongs to a TrainJob; other workloads have PodGroups, too."""
    return pod_group.controller is not None and pod_group.controller.kind == "TrainJob"
