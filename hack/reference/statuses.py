"""What TrainJobs and sweeps say about themselves: states, conditions with their reasons, and events."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

from hack.reference.docstrings import constants, members
from hack.reference.markdown import code, page, prose, table
from trainer.api.event_reasons import EventReason
from trainer.api.trainjob_status import ConditionReason, ConditionType, State
from trainer.kube.election import leader_election
from trainer.kube.events.correlator import BURST, REFILL
from trainer_sweeps.api.event_reasons import EventReason as SweepEventReason
from trainer_sweeps.api.optimizationjob import ConditionReason as SweepConditionReason
from trainer_sweeps.api.optimizationjob import ConditionType as SweepConditionType
from trainer_sweeps.api.optimizationjob import State as SweepState
from trainer_sweeps.api.optimizationjob import TrialState

_CONDITION = re.compile(r"Condition (\w+) is (True|False)[:.] ?", re.ASCII)


def conditions() -> str:
    """The page docs/reference/conditions.md."""
    return page(
        "States and conditions",
        "`status.state` says in one word how a TrainJob is doing, and is the column STATE of `kubectl get trainjob`. "
        "The conditions say why: `kubectl describe trainjob NAME`, or `trainer get NAME`.",
        "## States",
        _members("state", State),
        "## Conditions",
        "Those of plugins of your own come on top. `observedGeneration` tells of which spec a condition is true.",
        _members("condition", ConditionType),
        "## Reasons",
        "Besides these a reason is what Kubernetes says: of a pod in Pending, of the JobSet in Complete and Failed.",
        _reasons(ConditionReason),
    )


def of_sweeps() -> Iterator[str]:
    """The parts about states and conditions of the page docs/reference/optimizationjob.md."""
    yield "## States"
    yield _members("state", SweepState)
    yield "## Conditions of a sweep"
    yield _members("condition", SweepConditionType)
    yield _reasons(SweepConditionReason)
    yield "## States of trials"
    yield _members("state", TrialState)


def events() -> str:
    """The page docs/reference/events.md."""
    return page(
        "Events",
        "`kubectl describe trainjob NAME` and `kubectl events --for trainjob/NAME` show them; Kubernetes keeps them "
        "for an hour, and conditions keep what matters longer. Equal events become one with a count. About one object "
        f"{BURST} are written at once, and then one in {REFILL / 60:g} minutes.",
        "## When a condition changes",
        "Each change of a [condition](conditions.md#conditions) is an event with the reason and the first line of the "
        "message of the condition. It is a Warning for Created when that is False, Failed, Pending, Stopping and "
        "Restarting, else Normal. Complete has none, nor has the end of Stopping, a suspension that stops pods, or "
        "Created when nothing went wrong before: JobSet and Jobs have events of their own. Pods that wait for the same "
        "reason have one event, and each restart has one. Stalled has an event of its own, below.",
        _reasons(ConditionReason, without=ConditionType.STALLED),
        "## Beside conditions",
        _members("reason", EventReason),
        "## About OptimizationJobs",
        "`kubectl describe optimizationjob NAME` shows them. Each change of a "
        "[condition](optimizationjob.md#conditions-of-a-sweep) is one with its reason and message, a Warning for "
        "Failed, and for Created where that is False; besides:",
        _members("reason", SweepEventReason),
        "## About the manager",
        "On the Lease, `kubectl events -n trainer-system --for lease/trainer.kubeflow.org`:",
        table(("reason", "when"), [(code(leader_election.EVENT_REASON), prose(_leader_election()))]),
    )


def _members(column: str, enum: type[StrEnum]) -> str:
    return table((column, "when"), [(code(member.value), prose(member.docstring)) for member in members(enum)])


def _reasons(enum: type[StrEnum], without: str = "") -> str:
    rows = []
    for member in members(enum):
        found = _CONDITION.match(member.docstring)
        if found is None:
            raise ValueError(f"the docstring of {member.name} must begin with: Condition TYPE is True|False")
        if found[1] == without:
            continue
        when = member.docstring[found.end() :].strip()
        rows.append((code(member.value), f"{found[1]} is {found[2]}", prose(when[:1].upper() + when[1:])))
    return table(("reason", "condition", "when"), rows)


def _leader_election() -> str:
    found = constants(Path(leader_election.__file__))
    return next(constant.docstring for constant in found if constant.name == "EVENT_REASON")
