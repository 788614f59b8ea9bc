"""The run policy: how a TrainJob and its runtime say how a job runs and ends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trainer.api.kueue import LOST_MULTIKUEUE, MULTIKUEUE
from trainer.api.labels import VOLCANO_QUEUE
from trainer.api.losses import Losses
from trainer.kube.objects import Object
from trainer_v1_jobs.api.kinds import MPIJob
from trainer_v1_jobs.api.policies import SchedulingPolicy
from trainer_v1_jobs.conversion.draft import Draft
from trainer_v1_jobs.conversion.source import Source

_POLICY: Final = "spec.runPolicy"
_SCHEDULING: Final = f"{_POLICY}.schedulingPolicy"
_VOLCANO: Final = "volcano"
_GANG_SCHEDULERS: Final = {_VOLCANO, "scheduler-plugins", "scheduler-plugins-scheduler"}
_CLEANING: Final = {
    "All": "has no counterpart: finished pods stay with the TrainJob; spec.ttlSecondsAfterFinished deletes all of it",
    "None": (
        "has no counterpart: pods that still run when the training ends or fails are deleted, finished ones stay; "
        "collect the logs that you need while the pods run"
    ),
}
"""What is lost with values of cleanPodPolicy; Running is what JobSet does."""


def train_job_fields(source: Source, losses: Losses) -> Object:
    """Members of the TrainJob's spec."""
    _check_cleaning(source, losses)
    policy = source.run_policy
    fields: Object = {}
    if policy is None:
        return fields
    if policy.suspend is not None:
        fields["suspend"] = policy.suspend
    if policy.ttl_seconds_after_finished is not None:
        fields["ttlSecondsAfterFinished"] = policy.ttl_seconds_after_finished
    if policy.active_deadline_seconds:
        fields["activeDeadlineSeconds"] = policy.active_deadline_seconds
    elif policy.active_deadline_seconds == 0:
        losses.add(f"{_POLICY}.activeDeadlineSeconds", "is left out: it must be at least 1, or no training could run")
    if policy.managed_by == MULTIKUEUE and source.version == "v1alpha1":
        fields["managedBy"] = MULTIKUEUE
    elif policy.managed_by == MULTIKUEUE:
        losses.add(f"{_POLICY}.managedBy", LOST_MULTIKUEUE)
    return fields


def _check_cleaning(source: Source, losses: Losses) -> None:
    places = [(f"{_POLICY}.cleanPodPolicy", source.run_policy.clean_pod_policy if source.run_policy else None)]
    if isinstance(source.job, MPIJob):
        places.append(("spec.cleanPodPolicy", source.job.spec.clean_pod_policy))
    for path, policy in places:
        if policy in _CLEANING:
            losses.add(path, _CLEANING[policy])


def set_gang(source: Source, draft: Draft, runtime: Object, losses: Losses) -> None:
    """Add gang scheduling to the spec of a runtime if the job asks for it.

    Which scheduler the operator used is not in a job: it is Volcano, unless the job says what only another one takes.
    """
    policy = source.run_policy.scheduling_policy if source.run_policy else None
    if policy is None:
        _check_schedulers(source, losses)
        return
    if not draft.has_gang:
        losses.add(_SCHEDULING, "is left out: roles whose pods differ are several Jobs, which are no gang")
        return
    pods = [job["template"]["spec"]["template"]["spec"] for job in draft.jobs]
    schedulers = {spec.get("schedulerName") for spec in pods} - {None}
    if _is_volcano(policy, schedulers):
        _set_volcano(policy, pods, runtime)
        rule = "becomes podGroupPolicy.volcano, which needs Volcano in the cluster; remove both where there is none"
    else:
        timeout = policy.schedule_timeout_seconds
        runtime["podGroupPolicy"] = {"coscheduling": {} if timeout is None else {"scheduleTimeoutSeconds": timeout}}
        rule = "becomes podGroupPolicy.coscheduling; set schedulerName of the pods to the scheduler that has the plugin"
    losses.add(_SCHEDULING, rule)
    for name, message in _lost_members(policy, source, is_volcano="volcano" in runtime["podGroupPolicy"]):
        losses.add(f"{_SCHEDULING}.{name}", message)


def _check_schedulers(source: Source, losses: Losses) -> None:
    """Name schedulers of gangs, for which an operator that was started with one made a PodGroup of any job."""
    for role in source.roles:
        scheduler = role.template["spec"].get("schedulerName")
        if scheduler in _GANG_SCHEDULERS:
            policy = "volcano" if scheduler == _VOLCANO else "coscheduling"
            rule = (
                f"starts pods one by one: if the operator ran with --gang-scheduler-name, add podGroupPolicy.{policy} "
                "to the runtime"
            )
            losses.add(f"{role.path}.template.spec.schedulerName", rule)


def _is_volcano(policy: SchedulingPolicy, schedulers: set[str]) -> bool:
    if _VOLCANO in schedulers or policy.queue or policy.priority_class:
        return True
    return policy.schedule_timeout_seconds is None and not schedulers


def _set_volcano(policy: SchedulingPolicy, pods: list[Object], runtime: Object) -> None:
    runtime["podGroupPolicy"] = {"volcano": {}}
    if policy.queue:
        annotations = runtime["template"].setdefault("metadata", {}).setdefault("annotations", {})
        annotations[VOLCANO_QUEUE] = policy.queue
    for spec in pods:
        spec.setdefault("schedulerName", _VOLCANO)
        if policy.priority_class:
            spec.setdefault("priorityClassName", policy.priority_class)


def _lost_members(policy: SchedulingPolicy, source: Source, *, is_volcano: bool) -> Iterator[tuple[str, str]]:
    if policy.min_available is not None and policy.min_available != source.pods:
        yield "minAvailable", f"is left out: a training starts with all its pods, not with {policy.min_available}"
    if policy.min_resources:
        yield "minResources", "is left out: a gang asks for what its pods request together"
    if is_volcano and policy.schedule_timeout_seconds is not None:
        yield "scheduleTimeoutSeconds", "is left out: Volcano has no such time limit"
