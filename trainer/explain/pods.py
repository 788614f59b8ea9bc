"""Pods and Jobs that cannot be created, scheduled or started, as the plugin `jobset` finds them, with remedies."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from trainer.api.trainjob_status import ConditionReason, ConditionType
from trainer.explain.cause import UNSCHEDULABLE, Cause, Subject, describe, kubectl, one_line, trainer
from trainer.explain.checkpoints import claim_advice
from trainer.explain.containers import held_remedy
from trainer.explain.exits import exit_remedy, is_taken_away
from trainer.explain.gang import gang_remedy, pod_group_of, said_of_pod_group, waits_for_gang
from trainer.explain.node_room import misfits
from trainer.explain.remedies import refusal_of, remedy_of
from trainer.explain.snapshot import Snapshot
from trainer.explain.stopping import said_of, stopping
from trainer.framework import PodProblem
from trainer.framework.status.status import Conditions, reported_lines
from trainer.kube.objects import Object, ObjectKey
from trainer.kube.resource import PODS
from trainer.plugins.jobset import JobSetPlugin
from trainer.workloads.pod_life import NODE_NOT_READY, pod_life
from trainer.workloads.pod_requests import scarce_resources

_REFUSED_PODS = "FailedCreate"
_REFUSED = frozenset({_REFUSED_PODS, "JobCreationFailed", "HeadlessServiceCreationFailed", "PVCCreationFailed"})
_CLAIM_REASONS = frozenset({"ProvisioningFailed", "FailedBinding", "ExternalProvisioning"})
_UNBOUND = re.compile(r"unbound immediate PersistentVolumeClaims|persistentvolumeclaim \"", re.IGNORECASE)
_NO_SCHEDULER = re.compile(r"no scheduler called")
"""What the dev cluster says; on others nobody says anything."""
_NOT_PENDING = frozenset({ConditionReason.JOB_SET_SUSPENDED})
_OF_GANG = frozenset({ConditionReason.NO_POD_GROUP, ConditionReason.GANG_INCOMPLETE})
_ELSEWHERE = _NOT_PENDING | _OF_GANG | {NODE_NOT_READY}
"""Reasons that other modules explain."""
_UNPLACED = _OF_GANG | {UNSCHEDULABLE, ConditionReason.NO_SCHEDULER}
"""Reasons for which pods of a gang may have no node."""


def pod_problems(snapshot: Snapshot) -> Iterator[Cause]:
    """Causes from the objects, else from what the manager has seen of those that could not be read."""
    found = [cause for problem in _present(snapshot) if (cause := _cause(snapshot, problem)) is not None]
    if _is_of_hidden_gang(snapshot):
        found = list(_of_hidden_gang(found, _reported(snapshot)))
    yield from found
    if not found and snapshot.could_not_read("jobsets", "jobs", "pods", "events"):
        yield from _reported(snapshot)


def _is_of_hidden_gang(snapshot: Snapshot) -> bool:
    """Whether the manager, which reads the PodGroup of the pods, knows more of their gang."""
    groups = map(pod_group_of, snapshot.pods) if snapshot.could_not_read("podgroups") else ()
    return any(group is not None and group.is_of_kubernetes for group in groups)


def _of_hidden_gang(found: Iterable[Cause], reported: Iterable[Cause]) -> Iterator[Cause]:
    """What is found, with what the manager says of the gang; that a scheduler is silent proves nothing here."""
    said = {each.reason: each for each in reported if each.reason in _UNPLACED}
    for each in found:
        if each.reason in said:
            yield replace(each, message=said.pop(each.reason).message)
        elif each.reason != ConditionReason.NO_SCHEDULER:
            yield each
    yield from said.values()


def _present(snapshot: Snapshot) -> Iterator[PodProblem]:
    """Problems that have lasted long enough to be reported, and are known to be present."""
    for problem in JobSetPlugin(snapshot.reader).train_job_status(snapshot.model).problems:
        about = _pod(snapshot, problem) or snapshot.jobset or snapshot.train_job
        lasts = not problem.debounce or snapshot.age(about) >= problem.debounce
        # Events stay for an hour: what one says was refused may be there meanwhile.
        made = "pods" if problem.reason == _REFUSED_PODS else "jobs"
        is_known = problem.reason not in _REFUSED or not snapshot.could_not_read(made)
        if problem.reason not in _ELSEWHERE and lasts and is_known:
            yield problem


def _pod(snapshot: Snapshot, problem: PodProblem) -> Object | None:
    evidence = problem.evidence
    if evidence is None or evidence.kind != PODS.kind:
        return None
    return snapshot.reader.get(PODS, ObjectKey(snapshot.namespace, evidence.name))


def _cause(snapshot: Snapshot, problem: PodProblem) -> Cause | None:
    if problem.type is ConditionType.STOPPING:
        return stopping(snapshot, problem)
    evidence = problem.evidence
    details = one_line(problem.details())
    message = f"{problem.headline}: {details}" if details else problem.headline
    if evidence is None:
        command = trainer("logs", snapshot.name, "--previous", namespace=snapshot.namespace)
        remedy, message = remedy_of(problem.reason), said_of(snapshot, problem)
        if is_taken_away(message):
            remedy = f"wait: it starts again by itself; {exit_remedy(message)}"
        return Cause(problem.reason, snapshot.subject, message, remedy, command)
    about = Subject(evidence.kind, evidence.name, snapshot.namespace)
    fields = tuple(map(one_line, evidence.fields()))
    remedy, command = remedy_of(problem.reason), describe(about)
    further: tuple[str, ...] = ()
    refusal = refusal_of(evidence.message, snapshot.namespace) if problem.reason in _REFUSED else None
    if refusal is None:
        refusal = claim_advice(snapshot, [evidence.message])
    if refusal is not None:
        remedy, command = refusal.remedy, refusal.command or command
    elif problem.reason in _CLAIM_REASONS:
        command = kubectl("describe", "pvc", about.name, namespace=about.namespace)
    elif problem.reason == UNSCHEDULABLE:
        remedy, command, lacking = _unschedulable(snapshot, problem, command)
        message, further = (lacking[0], (*lacking[1:], message)) if lacking else (message, ())
        further = (*further, *said_of_pod_group(snapshot, _pod(snapshot, problem) or {}))
    elif problem.reason == ConditionReason.ENDED_AND_HELD:
        pod = _pod(snapshot, problem) or {}
        remedy = held_remedy(pod, pod_life(pod).held_by)
    elif problem.reason == "SchedulingGated":
        remedy = f"{_gates(snapshot, problem)}{remedy}"
    elif problem.reason == ConditionReason.NO_SCHEDULER:
        command = kubectl("get", "pods", "-A", "-l", "component=kube-scheduler")
    return Cause(problem.reason, about, message, remedy, command, fields, further)


def _unschedulable(snapshot: Snapshot, problem: PodProblem, command: str) -> tuple[str, str, tuple[str, ...]]:
    """Remedy and command for a pod that no node takes, and what nodes lack, which says more than the scheduler."""
    pod = _pod(snapshot, problem) or {}
    text = problem.evidence.message if problem.evidence else ""
    if _UNBOUND.search(text):
        claims = kubectl("get", "pvc", namespace=snapshot.namespace)
        return "create the claim, or see why it is not bound to a volume", claims, ()
    if _NO_SCHEDULER.search(text):
        return remedy_of(ConditionReason.NO_SCHEDULER), command, ()
    lacking = list(misfits(pod.get("spec") or {}, snapshot.nodes))
    if lacking:
        remedy = "; ".join(dict.fromkeys(each.remedy for each in lacking))
        return one_line(remedy), kubectl("describe", "nodes"), tuple(one_line(each.text) for each in lacking)
    if pod_group_of(pod) is not None:
        # A node that is large enough for one of them says nothing of the room that they need together.
        return gang_remedy(text) if waits_for_gang(snapshot, pod) else remedy_of(problem.reason), command, ()
    if snapshot.nodes and (scarce := scarce_resources(text)):
        there = (one_line(f"a node has enough {' and '.join(scarce)}, which other pods use at present"),)
        return "wait until other pods have ended, or ask for less", kubectl("describe", "nodes"), there
    return remedy_of(problem.reason), command, ()


def _gates(snapshot: Snapshot, problem: PodProblem) -> str:
    spec = (_pod(snapshot, problem) or {}).get("spec") or {}
    names = [str(gate.get("name")) for gate in spec.get("schedulingGates") or []]
    return f"the gate is {', '.join(map(one_line, names))}: " if names else ""


def _reported(snapshot: Snapshot) -> Iterator[Cause]:
    """The lines of the conditions, each with its reason in front."""
    conditions = Conditions.of(snapshot.model.status)
    for condition_type in (ConditionType.PENDING, ConditionType.STOPPING, ConditionType.RESTARTING):
        condition = conditions.get(condition_type)
        if condition is None or condition.status != "True":
            continue
        for line in reported_lines(condition):
            reason, _, text = line.partition(": ")
            if reason in _NOT_PENDING:
                continue
            refusal = refusal_of(text, snapshot.namespace) if reason in _REFUSED else None
            remedy = refusal.remedy if refusal else remedy_of(reason)
            yield Cause(reason, snapshot.subject, one_line(text), remedy, describe(snapshot.subject))
