"""Checks of references between the parts of a JobSet, which JobSet's own webhook makes too.

It would do so when the JobSet is created, which is too late for the author of the TrainJob or runtime to be told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.framework import ANCESTOR_LABEL, Ancestor
from trainer.kube.field_errors import FieldError, duplicate, forbidden, invalid, listed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trainer.api.jobset import JobSetSpec
    from trainer.framework import RuntimeInfo

_INITIALIZERS = frozenset({Ancestor.DATASET_INITIALIZER, Ancestor.MODEL_INITIALIZER})


def check_references(info: RuntimeInfo) -> Iterator[FieldError]:
    """Errors of references to replicated Jobs that are missing or later, to missing pods, and to missing steps."""
    path = f"{info.runtime} spec.template.spec"
    yield from _steps(info, path)
    yield from _dependencies(info.template, path)
    yield from _success_policy(info.template, path)
    yield from _failure_policy(info.template, path)
    yield from _coordinator(info, path)


def _steps(info: RuntimeInfo, path: str) -> Iterator[FieldError]:
    """Errors of an initializer that is there twice, or lacks the container that the TrainJob's settings change."""
    for pod_set in info.pod_sets:
        if pod_set.ancestor not in _INITIALIZERS:
            continue
        field = f"{path}.replicatedJobs[{pod_set.name}]"
        if pod_set.replicas != 1:
            yield invalid(f"{field}.replicas", pod_set.replicas, f"must be 1 for the step {pod_set.ancestor}")
        names = [container.name for container in (*pod_set.containers, *pod_set.init_containers)]
        if pod_set.ancestor not in names:
            detail = f"must have a container {pod_set.ancestor}, because the label {ANCESTOR_LABEL} names this step"
            yield invalid(f"{field}.template.spec.template.spec.containers", names, detail)


def _dependencies(template: JobSetSpec, path: str) -> Iterator[FieldError]:
    earlier: dict[str, None] = {}
    for job in template.replicated_jobs or []:
        field = f"{path}.replicatedJobs[{job.name}].dependsOn"
        if job.depends_on and not earlier:
            yield forbidden(field, "the first replicated Job cannot depend on another")
        for index, dependency in enumerate(job.depends_on or [] if earlier else []):
            if dependency.name not in earlier:
                detail = f"must be a replicated Job before {job.name}: {listed([*earlier])}"
                yield invalid(f"{field}[{index}].name", dependency.name, detail)
        earlier[job.name] = None


def _success_policy(template: JobSetSpec, path: str) -> Iterator[FieldError]:
    if template.success_policy is not None:
        targets = template.success_policy.target_replicated_jobs or []
        yield from _targets(template, targets, f"{path}.successPolicy.targetReplicatedJobs")


def _failure_policy(template: JobSetSpec, path: str) -> Iterator[FieldError]:
    names: set[str] = set()
    for index, rule in enumerate((template.failure_policy and template.failure_policy.rules) or []):
        field = f"{path}.failurePolicy.rules[{index}]"
        if rule.name is not None and rule.name in names:
            yield duplicate(f"{field}.name", rule.name)
        names |= {rule.name} if rule.name is not None else set()
        yield from _targets(template, rule.target_replicated_jobs or [], f"{field}.targetReplicatedJobs")


def _targets(template: JobSetSpec, targets: Sequence[str], path: str) -> Iterator[FieldError]:
    names = {job.name: job for job in template.replicated_jobs or []}
    for index, target in enumerate(targets):
        if target not in names:
            yield invalid(f"{path}[{index}]", target, f"must be a replicated Job: {listed([*names])}")


def _coordinator(info: RuntimeInfo, path: str) -> Iterator[FieldError]:
    coordinator = info.template.coordinator
    if coordinator is None:
        return
    field = f"{path}.coordinator"
    pod_set = next((pod_set for pod_set in info.pod_sets if pod_set.name == coordinator.replicated_job), None)
    if pod_set is None:
        names = listed([pod_set.name for pod_set in info.pod_sets])
        yield invalid(f"{field}.replicatedJob", coordinator.replicated_job, f"must be a replicated Job: {names}")
        return
    for name, index, count in (
        ("jobIndex", coordinator.job_index or 0, pod_set.replicas),
        ("podIndex", coordinator.pod_index or 0, pod_set.count),
    ):
        if index >= count:
            yield invalid(f"{field}.{name}", index, f"must be less than {count}, the number there is in {pod_set.name}")
