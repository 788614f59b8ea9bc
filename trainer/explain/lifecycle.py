"""Causes on the TrainJob itself: it has ended, is being deleted, is another controller's, or cannot become Jobs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainer.api.trainjob import TRAIN_JOB_CONTROLLER
from trainer.api.trainjob_status import ConditionReason, ConditionType
from trainer.explain.cause import Cause, Subject, describe, kubectl, log_line, one_line, trainer
from trainer.explain.checkpoints import claim_advice
from trainer.explain.exits import exit_remedy
from trainer.explain.remedies import refusal_of
from trainer.explain.snapshot import Snapshot
from trainer.framework.plugin_api.failure import named_in, parts_of
from trainer.kube.objects import Object, find_condition, is_being_deleted, is_condition_true, metadata_of
from trainer.workloads.containers import TRAINER_CONTAINERS

_UNTOUCHED_SECONDS = 5
"""After which a manager that runs has written a status."""

_RUNTIME = re.compile(r"\b(spec\.runtimeRef|TrainingRuntime)\b")
_MISSING = re.compile(r"Not found|there is no|does not exist")
_LACKING = re.compile(r"\bfeature[- ]gates?\b|\b(?:of )?the cluster does not\b")
_HELD = re.compile(r"^No Jobs yet: ")
"""What the pods need is being deleted, to be made again."""
_FOREIGN = re.compile(r"exists and does not belong to this TrainJob")


def failure(snapshot: Snapshot) -> Cause:
    """Why a TrainJob that has failed did so, with the end of the log that the condition keeps."""
    condition = find_condition(snapshot.train_job, ConditionType.FAILED) or {}
    message = str(condition.get("message") or "")
    parts = parts_of(message)
    facts, log = one_line(parts.facts), tuple(map(log_line, parts.log))
    # What the training said comes first, and what its pod and its JobSet say of it is detail.
    words, details = (one_line(parts.headline), (facts, *log)) if parts.headline and facts else (facts, log)
    delete = trainer("delete", snapshot.name, namespace=snapshot.namespace)
    again = f"a TrainJob that has failed stays so: {delete}, then submit it again"
    if condition.get("reason") == ConditionReason.DEADLINE_EXCEEDED:
        remedy = f"raise spec.activeDeadlineSeconds, or let it train for less time; {again}"
        return Cause(condition["reason"], snapshot.subject, words, remedy, describe(snapshot.subject))
    culprit = named_in(message)
    command = trainer("logs", snapshot.name, namespace=snapshot.namespace)
    about = snapshot.subject
    if culprit is not None:
        about = Subject("Pod", culprit.pod, snapshot.namespace)
        if culprit.container:
            node = parts.headline.partition(": ")[0] or culprit.pod
            container = () if culprit.container in TRAINER_CONTAINERS else ("-c", culprit.container)
            command = trainer("logs", snapshot.name, "--node", node, *container, namespace=snapshot.namespace)
    said = (parts.headline, *log)
    advice = claim_advice(snapshot, said[::-1])
    return Cause(
        condition.get("reason") or "Failed",
        about,
        words,
        f"{advice.remedy if advice else exit_remedy(facts, said)}; {again}",
        command,
        details=details,
    )


def deletion(snapshot: Snapshot) -> Iterator[Cause]:
    """It is being deleted, and waits for finalizers."""
    if not is_being_deleted(snapshot.train_job):
        return
    finalizers = metadata_of(snapshot.train_job).get("finalizers") or []
    waits = f" and waits for its finalizers: {', '.join(map(str, finalizers))}" if finalizers else ""
    remedy = "wait until its pods have ended; if a finalizer stays, the controller that has set it does not run"
    yield Cause(
        "Deleted", snapshot.subject, one_line(f"it is being deleted{waits}"), remedy, describe(snapshot.subject)
    )


def management(snapshot: Snapshot) -> Iterator[Cause]:
    """Another controller manages it, or no manager has handled it yet."""
    manager = (snapshot.train_job.get("spec") or {}).get("managedBy") or TRAIN_JOB_CONTROLLER
    if manager != TRAIN_JOB_CONTROLLER:
        message = f"spec.managedBy is {one_line(manager)}, so that this controller handles the TrainJob, and no other"
        remedy = "ask who runs that controller; to have it run here, submit it again without spec.managedBy"
        yield Cause("ManagedByOther", snapshot.subject, message, remedy, describe(snapshot.subject))
        return
    if snapshot.train_job.get("status") or snapshot.jobset is not None:
        return
    age = snapshot.age(snapshot.train_job)
    if age < _UNTOUCHED_SECONDS:
        yield Cause(
            "Submitted",
            snapshot.subject,
            "it was submitted a moment ago, and has no status yet",
            "wait a moment",
            trainer("get", snapshot.name, "-w", namespace=snapshot.namespace),
        )
        return
    message = f"no controller manager has handled it for {age:.0f} s"
    remedy = (
        "start the manager, or find out why no replica leads; it may also be restricted to another namespace "
        "(controller.namespace)"
    )
    command = kubectl("get", "pods", "-A", "-l", "app.kubernetes.io/name=trainer,app.kubernetes.io/component=manager")
    yield Cause("NoManager", snapshot.subject, message, remedy, command)


def creation_failure(snapshot: Snapshot) -> Iterator[Cause]:
    """Its Jobs cannot be made (condition Created is False)."""
    condition = find_condition(snapshot.train_job, ConditionType.CREATED) or {}
    if condition.get("status") != "False":
        return
    message = one_line(condition.get("message"))
    command = describe(snapshot.subject)
    if _RUNTIME.search(message) and _MISSING.search(message):
        command = trainer("runtimes", namespace=snapshot.namespace)
        remedy = "name a runtime that exists in spec.runtimeRef, or create this one: the TrainJob goes on by itself"
    elif _FOREIGN.search(message):
        remedy = "delete the object that is in the way, or give the TrainJob another name"
    elif _HELD.search(message):
        remedy = (
            "wait: it is made again by itself; one that stays is kept by a finalizer, whose controller does not run"
        )
    elif condition.get("reason") == ConditionReason.JOBS_CREATION_FAILED:
        refusal = refusal_of(message, snapshot.namespace)
        remedy, command = (refusal.remedy, refusal.command or command) if refusal else (_RETRIED, command)
    elif _LACKING.search(message):
        remedy = "have what the message names switched on or installed, or name another runtime: it goes on then"
    else:
        remedy = "correct the field that the message names; it can change until the Jobs exist"
    yield Cause(condition.get("reason") or "Blocked", snapshot.subject, message, remedy, command)


_RETRIED = "correct what the message names; the manager tries again by itself"


def has_failed(train_job: Object) -> bool:
    """Whether it has ended badly."""
    return is_condition_true(train_job, ConditionType.FAILED)
