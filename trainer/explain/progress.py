"""Trainings that run: nodes that wait for others, no progress, and the times at which they end or are deleted."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from trainer.api.jobset_pods import place_of
from trainer.api.trainjob_status import ConditionReason, ConditionType
from trainer.controllers.job import deadline_of, expiry_of
from trainer.explain.cause import SILENT, Cause, Subject, describe, one_line, trainer
from trainer.explain.snapshot import Snapshot
from trainer.framework.building.trainer_step import TRAINER_JOBS
from trainer.framework.status.status import state_word
from trainer.kube.clock import timestamp
from trainer.kube.objects import Object, find_condition, is_condition_true, mapping_at, name_of
from trainer.kube.resource import PODS
from trainer.view.checkpoint import LastCheckpoint
from trainer.view.progress import TrainingProgress
from trainer.workloads.pod_life import PodState, pod_life
from trainer.workloads.restarts import Restarts

_SHOWN = 5
"""Most nodes that a sentence names."""


def rendezvous(snapshot: Snapshot) -> Iterator[Cause]:
    """Some nodes of the training are up, and wait for the others."""
    pods = [pod for pod in snapshot.pods if place_of(pod).replicated_job in TRAINER_JOBS]
    expected = _expected(snapshot)
    up = [pod for pod in pods if is_up(pod)]
    if not up or not expected or is_complete(snapshot):
        return
    missing = [pod for pod in pods if not is_up(pod)]
    named = [f"node {place_of(pod).completion_index} ({pod_life(pod).word})" for pod in missing[:_SHOWN]]
    absent = expected - len(pods)
    named += [f"{absent} without a pod"] if absent > 0 else []
    named += ["others"] if len(missing) > _SHOWN else []
    message = f"{len(up)} of {expected} nodes are up, and wait for {', '.join(named)}"
    about = Subject(PODS.kind, name_of(missing[0]), snapshot.namespace) if missing else snapshot.subject
    remedy = "see why the others are not up: nodes that wait for long give up the rendezvous"
    yield Cause("NodesMissing", about, one_line(message), remedy, describe(about))


def _expected(snapshot: Snapshot) -> int:
    """The pods of the Jobs that train; 0 if the JobSet was not read."""
    total = 0
    for job in ((snapshot.jobset or {}).get("spec") or {}).get("replicatedJobs") or []:
        if job.get("name") in TRAINER_JOBS:
            spec = (job.get("template") or {}).get("spec") or {}
            size = spec.get("parallelism", 1)
            total += min(size, spec.get("completions", size)) * job.get("replicas", 1)
    return int(total)


def is_complete(snapshot: Snapshot) -> bool:
    """Whether as many nodes of the training are up as it needs."""
    up = sum(is_up(pod) for pod in snapshot.pods if place_of(pod).replicated_job in TRAINER_JOBS)
    expected = _expected(snapshot)
    least = mapping_at(snapshot.train_job, "status", "scale").get("minNodes") or expected  # of an elastic training
    return expected > 0 and min(expected, least) <= up


def is_up(pod: Object) -> bool:
    """Whether a pod runs and is ready, or has ended well."""
    life = pod_life(pod)
    if life.state is PodState.SUCCEEDED:
        return True
    statuses = (pod.get("status") or {}).get("containerStatuses") or []
    return life.state is PodState.RUNNING and all(each.get("ready") for each in statuses)


def stalls(snapshot: Snapshot) -> Iterator[Cause]:
    """It runs, and makes no progress, or reports none for much longer than usual."""
    reason = ConditionReason.NO_PROGRESS.value
    if is_condition_true(snapshot.train_job, ConditionType.STALLED):
        condition = find_condition(snapshot.train_job, ConditionType.STALLED) or {}
        since = condition.get("lastTransitionTime")
        message = f"{one_line(condition.get('message'))}{f' (reported at {since})' if since else ''}"
    elif silence := TrainingProgress.of(_trainer_status(snapshot)).silence_at(snapshot.now):
        reason, message = SILENT, f"{silence}, much longer than usual"
    else:
        return
    remedy = (
        "look at the logs of all nodes: one that has failed to communicate holds up the others; to start again, "
        f"{' and '.join(trainer(verb, snapshot.name, namespace=snapshot.namespace) for verb in ('suspend', 'resume'))}"
    )
    command = trainer("logs", snapshot.name, "--all", "--tail", "20", namespace=snapshot.namespace)
    yield Cause(reason, snapshot.subject, message, remedy, command, details=_last_report(snapshot))


def _trainer_status(snapshot: Snapshot) -> Object:
    return mapping_at(snapshot.train_job, "status", "trainerStatus")


def _last_report(snapshot: Snapshot) -> tuple[str, ...]:
    reported = _trainer_status(snapshot)
    step, total = reported.get("currentStep"), reported.get("totalSteps")
    parts = [
        f"{reported['progressPercentage']} %" if reported.get("progressPercentage") is not None else "",
        f"step {step}{f' of {total}' if total else ''}" if step is not None else "",
        *(f"{name} {value}" for name, value in sorted((reported.get("trainMetrics") or {}).items())[:_SHOWN]),
        f"at {reported['lastUpdatedTime']}" if reported.get("lastUpdatedTime") else "",
    ]
    text = ", ".join(part for part in parts if part)
    return (one_line(f"last report: {text}"),) if text else ("it has reported no progress yet",)


def facts(snapshot: Snapshot) -> Iterator[str]:
    """Restarts by cause, and the last checkpoint."""
    restarts = Restarts.of_status(mapping_at(snapshot.train_job, "status", "restarts"))
    if restarts and not is_condition_true(snapshot.train_job, ConditionType.FAILED):  # which says so itself
        yield f"restarts: {restarts}"
    checkpoint = LastCheckpoint.of(_trainer_status(snapshot))
    if checkpoint is not None and not is_condition_true(snapshot.train_job, ConditionType.COMPLETE):
        yield checkpoint.sentence(state_word(snapshot.train_job), snapshot.now)


def notes(snapshot: Snapshot) -> Iterator[str]:
    """Deadline and time to live, as times and as what is left, and the initializers that run."""
    expiry = expiry_of(snapshot.model)
    if expiry is not None:
        yield f"it is deleted at {_when(expiry, snapshot.now)} (spec.ttlSecondsAfterFinished)"
        return
    deadline = deadline_of(snapshot.model, snapshot.now)
    if deadline is not None and not any(is_condition_true(snapshot.train_job, each) for each in ("Complete", "Failed")):
        yield f"it fails at {_when(deadline, snapshot.now)} if it has not ended by then (spec.activeDeadlineSeconds)"
    for step, field in (("dataset", "dataInitializerStatus"), ("model", "modelInitializerStatus")):
        status = (snapshot.train_job.get("status") or {}).get(field) or {}
        if status.get("state") == "Running":
            percentage = status.get("progressPercentage")
            done = f" ({percentage} %)" if percentage is not None else ""
            yield f"the {step} initializer runs{done}: nodes start after it"


def _when(moment: datetime, now: datetime) -> str:
    left = int((moment - now).total_seconds())
    return f"{timestamp(moment)}, in {left} s" if left > 0 else f"{timestamp(moment)}, which is now"
