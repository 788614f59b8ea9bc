"""Pods that were deleted and are still there: how long they may take, and what holds them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trainer.api.jobset_pods import node_name
from trainer.api.trainjob_status import ConditionReason, ConditionType
from trainer.explain.cause import Cause, Subject, describe, kubectl, one_line
from trainer.explain.snapshot import Snapshot
from trainer.explain.suspension import list_pods
from trainer.framework import PodProblem
from trainer.framework.status.status import Conditions, reported_lines
from trainer.kube.clock import parse_timestamp
from trainer.kube.objects import Object, metadata_of
from trainer.kube.resource import PODS
from trainer.workloads.pod_life import PodLife, pod_life

_WAIT = "wait a moment: the controllers of its Job and JobSet have yet to act"


def stopping(snapshot: Snapshot, problem: PodProblem) -> Cause:
    """The cause for which a training is Stopping."""
    going = [(pod, life) for pod in snapshot.pods if (life := pod_life(pod)).is_going]
    message = said_of(snapshot, problem)
    if not going:
        return Cause(problem.reason, snapshot.subject, message, _WAIT, describe(snapshot.subject))
    about = Subject(PODS.kind, going[0][1].pod, snapshot.namespace)
    return Cause(problem.reason, about, message, _remedy(snapshot, going), _pods(snapshot))


def said_of(snapshot: Snapshot, problem: PodProblem) -> str:
    """Headline and details, those of the condition where it has them: the manager has seen who was deleted first."""
    condition = Conditions.of(snapshot.model.status).get(problem.type)
    beginning = f"{problem.reason}: "
    lines = reported_lines(condition) if condition is not None and condition.status == "True" else []
    said = next((line.removeprefix(beginning) for line in lines if line.startswith(beginning)), "")
    if said.startswith(problem.headline):
        return one_line(said)
    _, _, cause = said.partition(": ") if problem.type is ConditionType.STOPPING else ("", "", "")
    details = one_line(cause or problem.details())
    return f"{problem.headline}: {details}" if details else problem.headline


def still_there(snapshot: Snapshot) -> Iterator[Cause]:
    """Pods of a training or JobSet that is suspended and that have not ended, as the condition says."""
    condition = Conditions.of(snapshot.model.status).get(ConditionType.STOPPING)
    if condition is None or condition.status != "True":
        return
    said = [line.partition(": ") for line in reported_lines(condition)]
    message = next((text for reason, _, text in said if reason == ConditionReason.SUSPENDING_PODS), "")
    lives = [(pod, pod_life(pod)) for pod in snapshot.pods]
    is_lost = bool(lives) and all(life.node_lost_since for _, life in lives if not life.has_ended)
    if message and not is_lost:  # a lost node is a cause of its own
        going = [(pod, life) for pod, life in lives if life.is_going and not life.node_lost_since]
        remedy = _remedy(snapshot, going) if going else _WAIT
        yield Cause(ConditionReason.SUSPENDING_PODS, snapshot.subject, one_line(message), remedy, _pods(snapshot))


def _pods(snapshot: Snapshot) -> str:
    return list_pods(snapshot.name, snapshot.namespace)


_SHOWN = 5
"""Most pods that a sentence names."""
_LATE = 30
"""Seconds after the grace period within which a node that answers has ended its pods."""


def _remedy(snapshot: Snapshot, going: Sequence[tuple[Object, PodLife]]) -> str:
    """To wait until the last grace period is over; what stays longer stays for its node or a finalizer."""
    ends = sorted((str(metadata_of(pod).get("deletionTimestamp")), life.pod, life.node) for pod, life in going)
    late = [each for each in ends if (snapshot.now - parse_timestamp(each[0])).total_seconds() > _LATE]
    if not late:
        names = [node_name(pod) for pod, _ in going[:_SHOWN]] + (["others"] if len(going) > _SHOWN else [])
        have = "have" if len(going) > 1 else "has"
        return f"wait: {', '.join(names)} {have} until {ends[-1][0]} to end (terminationGracePeriodSeconds)"
    end, pod, _ = late[0]
    nodes = ", ".join(dict.fromkeys(node for _, _, node in late if node))
    see = f"see whether node {nodes} answers ({kubectl('get', 'nodes')})" if nodes else "see its finalizers"
    return f"pod {pod} should have ended at {end}: {see}; a pod stays until its node says that it has ended"
