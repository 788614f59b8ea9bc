"""The PodSets of a TrainJob of v1alpha1 as Kueue computes them: with the builder of Kubeflow Trainer (Go).

Kueue never looks at a JobSet. It takes the TrainJob and the runtime as it is in the cluster, and reserves quota for
what Kubeflow Trainer (Go) would run. Nothing of the package `trainer` is used here, so that JobSets can be compared
with it.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]

STEP = "trainer.kubeflow.org/trainjob-ancestor-step"
STEPS = ("trainer", "dataset-initializer", "model-initializer")
_SCHEDULING = ("nodeSelector", "tolerations", "schedulingGates", "affinity", "priorityClassName")


@dataclass(frozen=True, slots=True)
class PodSet:
    """The pods of one replicated Job: what quota and placement depend on."""

    name: str
    count: int
    resources: dict[str, Object]
    """Requests and limits of the containers that have some, but init containers that need no more than those."""
    scheduling: Object
    """What the pods say about their nodes."""
    marks: dict[str, str]
    """Their labels and annotations of Kueue's."""


def pod_sets(train_job: Object, runtime: Object) -> list[PodSet]:
    """One for each replicated Job, in the order of the runtime.

    Args:
        train_job: of v1alpha1.
        runtime: of v1alpha1, with the defaults of its CRD.
    """
    spec, policy = train_job["spec"], runtime["spec"].get("mlPolicy")
    jobs: list[Object] = copy.deepcopy(runtime["spec"]["template"]["spec"]["replicatedJobs"])
    for patch in spec.get("runtimePatches") or []:
        for change in _at(patch, "trainingRuntimeSpec", "template", "spec").get("replicatedJobs") or []:
            job = next(job for job in jobs if job["name"] == change["name"])
            _patch(job["template"]["spec"]["template"], _at(change, "template", "spec", "template"))
    return [_pod_set(job, policy, spec.get("trainer") or {}) for job in jobs]


def pod_sets_of_jobset(jobset: Object) -> list[PodSet]:
    """What a JobSet runs."""
    return [
        _made(job, job.get("replicas", 1) * min(_size(job, "parallelism"), _size(job, "completions")))
        for job in jobset["spec"]["replicatedJobs"]
    ]


def _pod_set(job: Object, policy: Object | None, trainer: Object) -> PodSet:
    step = _at(job, "template", "metadata", "labels").get(STEP)
    trains = step == "trainer"
    mpi = (policy or {}).get("mpi")
    is_node_of_mpi = mpi is not None and job["name"] == "node"
    launcher_is_node = bool((mpi or {}).get("runLauncherAsNode"))
    pods = _size(job, "parallelism")
    if trains and policy is not None:
        pods = max(policy.get("numNodes", 1), 1)
    wanted = trainer.get("numNodes")
    if wanted is not None and is_node_of_mpi:
        pods = max(wanted - 1, 1) if launcher_is_node else wanted
    elif wanted is not None and trains and mpi is None:
        pods = wanted
    if (trains and policy is not None) or (is_node_of_mpi and launcher_is_node):
        _add_resources(job, trainer.get("resourcesPerNode") or {})
    return _made(job, pods * (1 if step in STEPS else job.get("replicas", 1)))


def _made(job: Object, count: int) -> PodSet:
    template = job["template"]["spec"]["template"]
    spec = template["spec"]
    marks = _at(template, "metadata", "labels") | _at(template, "metadata", "annotations")
    containers = {each["name"]: each["resources"] for each in spec.get("containers") or [] if each.get("resources")}
    first = {each["name"]: each["resources"] for each in spec.get("initContainers") or [] if each.get("resources")}
    return PodSet(
        job["name"],
        count,
        containers | {name: asked for name, asked in first.items() if not _is_covered(asked, containers)},
        {name: spec[name] for name in _SCHEDULING if spec.get(name)},
        {name: value for name, value in marks.items() if name.startswith("kueue.x-k8s.io/")},
    )


def _is_covered(asked: Object, containers: dict[str, Object]) -> bool:
    """Whether a container that ends before the others start needs no more of anything than one of them has."""
    return any(
        all(amounts.items() <= each.get(kind, {}).items() for kind, amounts in asked.items())
        for each in containers.values()
    )


def _size(job: Object, name: str) -> int:
    return int(job["template"]["spec"].get(name, 1))


def _add_resources(job: Object, wanted: Object) -> None:
    """Each resource of the TrainJob replaces that of the runtime, in the container `node` alone."""
    for container in _at(job, "template", "spec", "template", "spec")["containers"]:
        if container["name"] == "node" and wanted:
            present = container.get("resources") or {}
            container["resources"] = {
                kind: (present.get(kind) or {}) | (wanted.get(kind) or {})
                for kind in ("requests", "limits")
                if kind in present or kind in wanted
            }


def _patch(template: Object, change: Object) -> None:
    """A strategic merge patch of what decides where pods run; what is empty changes nothing."""
    metadata = template.setdefault("metadata", {})
    for name, values in (change.get("metadata") or {}).items():
        metadata[name] = (metadata.get(name) or {}) | values
    spec = template["spec"]
    for name, value in (change.get("spec") or {}).items():
        if name == "nodeSelector":
            spec[name] = (spec.get(name) or {}) | value
        elif name == "schedulingGates":
            # A strategic merge patch puts new ones first.
            spec[name] = [*value, *_without(spec.get(name) or [], value)]
        elif name == "tolerations" and value:
            spec[name] = value


def _without(entries: list[Object], names: list[Object]) -> Iterator[Object]:
    gone = {each["name"] for each in names}
    return (entry for entry in entries if entry["name"] not in gone)


def _at(obj: Object, *path: str) -> Object:
    for name in path:
        obj = obj.get(name) or {}
    return obj
