"""What a list says of a runtime, read from its JSON: runtimes that no TrainJob could use are listed too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from trainer.api.invalid_object import InvalidObjectError
from trainer.api.labels import ANCESTOR_LABEL
from trainer.api.trainingruntime import FRAMEWORK_LABEL, SUPPORT_LABEL, MLPolicy
from trainer.framework.building.trainer_step import TRAINER_JOBS, node_count
from trainer.framework.plugin_api.devices import USUAL_DEVICES
from trainer.framework.plugin_api.runtime_info import LAUNCHER, Ancestor
from trainer.kube.objects import Object, annotations_of, labels_of, mapping_at, name_of, namespace_of, objects_in
from trainer.workloads.containers import TRAINER_CONTAINERS

_DESCRIPTION: Final = "kubernetes.io/description"
"""The annotation by which an object says what it is for."""
_LONGEST_DESCRIPTION: Final = 300
"""Characters that are read of it."""


@dataclass(frozen=True, slots=True)
class RuntimeSummary:
    """One runtime of either kind; texts are those of its author."""

    name: str
    namespace: str
    """Empty for a ClusterTrainingRuntime."""
    kind: str
    framework: str
    """By its label; empty if it has none."""
    description: str
    """What it is for, by its annotation `kubernetes.io/description`; empty if it has none."""
    support: str
    """`deprecated`, if its label says so."""
    nodes: int
    """The default of a TrainJob."""
    image: str
    """Of the container that trains; empty if nothing is found that trains."""
    devices: int
    """GPUs and the like of each node; those of claims that have to be read elsewhere count as one."""

    @classmethod
    def of(cls, obj: Object, kind: str) -> Self:
        """Read a runtime."""
        labels = labels_of(obj)
        job = _training_job(obj)
        pod = mapping_at(job, "template", "spec", "template", "spec")
        container = _training_container(pod)
        return cls(
            name=name_of(obj),
            namespace=namespace_of(obj),
            kind=kind,
            framework=labels.get(FRAMEWORK_LABEL, ""),
            description=annotations_of(obj).get(_DESCRIPTION, "")[:_LONGEST_DESCRIPTION],
            support=labels.get(SUPPORT_LABEL, ""),
            nodes=_nodes(mapping_at(obj, "spec", "mlPolicy"), mapping_at(job, "template", "spec")),
            image=str(container.get("image") or ""),
            devices=USUAL_DEVICES.devices_of(mapping_at(container, "resources"), pod, namespace_of(obj)).count,
        )


def _nodes(policy: Object, job: Object) -> int:
    """The number of nodes; 1 where it cannot be read."""
    stated = {name: policy[name] for name in ("numNodes", "torch") if policy.get(name) is not None}
    size = next((size for name in ("parallelism", "completions") if isinstance(size := job.get(name), int)), 1)
    try:
        return node_count(MLPolicy.from_object(stated), size).nodes
    except InvalidObjectError:
        return 1


def _training_job(runtime: Object) -> Object:
    """The replicated Job that trains: the labelled one, else the one with a usual name.

    Runtimes of Kubeflow Trainer label the launcher of MPI, too.
    """
    launcher = LAUNCHER if mapping_at(runtime, "spec", "mlPolicy").get("mpi") is not None else None
    jobs = objects_in(mapping_at(runtime, "spec", "template", "spec").get("replicatedJobs"))
    labelled = (job for job in jobs if _ancestor(job) == Ancestor.TRAINER and job.get("name") != launcher)
    named = (job for job in jobs if job.get("name") in TRAINER_JOBS)
    return next(labelled, None) or next(named, {})


def _ancestor(job: Object) -> object:
    template = mapping_at(job, "template")
    places = (template, mapping_at(template, "spec", "template"))
    return next((label for place in places if (label := labels_of(place).get(ANCESTOR_LABEL))), None)


def _training_container(pod: Object) -> Object:
    containers = objects_in(pod.get("containers"))
    named = (each for name in TRAINER_CONTAINERS for each in containers if each.get("name") == name)
    return next(named, containers[0] if containers else {})
