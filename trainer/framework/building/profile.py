"""Profile: how an API version reads runtimes and TrainJobs; that of v2alpha1 orders Jobs as KEP-2170 means it.

`startupPolicyOrder: InOrder` of JobSet waits for pods to be *ready*, so training would begin beside an initializer that
still downloads. The KEP's fine-tuning runtimes need each step *completed* before the next, so InOrder becomes
`dependsOn`:

| replicated Job | starts when |
|---|---|
| after an initializer | the initializer has completed |
| exporter (container model-exporter) | the training has completed: the launcher or chief, if any, else the trainer |
| MPI launcher | its nodes, wherever they are in the list, are ready |
| any other | the one before it is ready |
"""

from __future__ import annotations

from trainer.api.jobset import DependsOn
from trainer.api.trainingruntime import TENSORFLOW_ROLES
from trainer.framework.building.trainer_step import apply_trainer, apply_trainer_env, mark_trainer
from trainer.framework.plugin_api.errors import BuildError
from trainer.framework.plugin_api.runtime_info import LAUNCHER, Ancestor, PodSet, RuntimeInfo, upsert
from trainer.kube.field_errors import FieldError, forbidden

_INITIALIZERS = frozenset({Ancestor.DATASET_INITIALIZER, Ancestor.MODEL_INITIALIZER})
MODEL_EXPORTER = "model-exporter"


def put_in_order(info: RuntimeInfo) -> None:
    """Replace `startupPolicy` by the dependencies that it stands for; a launcher moves behind its nodes.

    The trainer must be marked already.
    """
    policy = info.template.startup_policy
    if policy is None or policy.startup_policy_order != "InOrder":
        return
    path = f"{info.runtime} spec.template.spec"
    for job in info.template.replicated_jobs or []:
        if job.depends_on:
            raise BuildError(
                forbidden(
                    f"{path}.replicatedJobs[{job.name}].dependsOn",
                    "excludes startupPolicy.startupPolicyOrder InOrder; use one of them",
                )
            )
    info.template.startup_policy = None
    jobs = info.template.replicated_jobs or []
    _move_launcher(info)
    order = {pod_set.name: position for position, pod_set in enumerate(info.pod_sets)}
    jobs.sort(key=lambda job: order[job.name])
    for job, pod_set, before in zip(jobs[1:], info.pod_sets[1:], info.pod_sets, strict=False):
        job.depends_on = [_dependency(info, pod_set, before)]


def _move_launcher(info: RuntimeInfo) -> None:
    launcher, nodes = _launcher(info), _nodes(info)
    if launcher is None or nodes is None:
        return
    if info.pod_sets.index(launcher) < info.pod_sets.index(nodes):
        info.pod_sets.remove(launcher)
        info.pod_sets.insert(info.pod_sets.index(nodes) + 1, launcher)


def _dependency(info: RuntimeInfo, pod_set: PodSet, before: PodSet) -> DependsOn:
    launcher = _launcher(info)
    if pod_set is not launcher and _has_container(pod_set, {MODEL_EXPORTER}):
        training = launcher or _chief(info) or _nodes(info) or before
        earlier = info.pod_sets.index(training) < info.pod_sets.index(pod_set)
        return DependsOn(name=(training if earlier else before).name, status="Complete")
    return DependsOn(name=before.name, status="Complete" if _initializes(before) else "Ready")


def _nodes(info: RuntimeInfo) -> PodSet | None:
    return next((pod_set for pod_set in info.pod_sets if pod_set.ancestor == Ancestor.TRAINER), None)


def _launcher(info: RuntimeInfo) -> PodSet | None:
    return next((pod_set for pod_set in info.pod_sets if pod_set.name == LAUNCHER), None)


def _chief(info: RuntimeInfo) -> PodSet | None:
    """The pod set whose end is the end of a TensorFlow training; nodes and parameter servers need not end."""
    return next((pod_set for pod_set in info.peers if pod_set.name == TENSORFLOW_ROLES[0]), None)


def _initializes(pod_set: PodSet) -> bool:
    return pod_set.ancestor in _INITIALIZERS or _has_container(pod_set, _INITIALIZERS)


def _has_container(pod_set: PodSet, names: frozenset[str] | set[str]) -> bool:
    return pod_set.ancestor != Ancestor.TRAINER and any(container.name in names for container in pod_set.containers)


def _mark(info: RuntimeInfo) -> None:
    mark_trainer(info)
    put_in_order(info)


class Profile:
    """The profile of v2alpha1, which is KEP-2170; another version overrides what differs."""

    info: type[RuntimeInfo] = RuntimeInfo
    """What plugins get, with the answers that differ between the versions."""
    validates_builds = True
    """Whether findings of plugins keep a TrainJob from being built; otherwise they are warnings of admission."""

    def has_bound(self, error: FieldError) -> bool:  # noqa: ARG002 - other versions decide by it
        """Whether the version has the bound of the model which a stored TrainJob exceeds."""
        return True

    mark = staticmethod(_mark)
    """Marks the pod sets that train, sets the number of nodes, and orders the Jobs."""
    apply_trainer = staticmethod(apply_trainer)
    """Puts the settings of `spec.trainer` into the pod sets that train."""
    apply_env = staticmethod(apply_trainer_env)
    """Merges `spec.trainer.env` into the pod sets that train, after the plugins."""
    merge = staticmethod(upsert)
    """Merges what an override adds to a list: what is there keeps its place, and the rest comes last."""


V2ALPHA1_PROFILE = Profile()
