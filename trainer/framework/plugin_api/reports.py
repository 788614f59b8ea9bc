"""What plugins report of a TrainJob that was built: how its Jobs are doing, what keeps pods waiting, how it ended."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from trainer.api.trainjob_status import ConditionType, JobStatus, NodeScale, RestartCounts
from trainer.framework.plugin_api.failure import FailedContainer
from trainer.kube.selection import Selection

_REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]{0,1022}[A-Za-z0-9_])?")
"""A condition's reason, as the API server accepts it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a TrainJob ended."""

    type: Literal[ConditionType.COMPLETE, ConditionType.FAILED]
    """Whether it succeeded."""
    reason: str
    """One CamelCase word, that of the child Jobs."""
    message: str
    """The message of the child Jobs."""
    culprit: FailedContainer | None = None
    """The container that caused the failure; the message of the condition names it, with the end of its log. Defaults
    to unknown."""
    jobs: Selection | None = None
    """Labels of the child Jobs and their pods, which are listed to find a culprit if the caches, which may lag behind,
    show none. Defaults to no search."""

    def __post_init__(self) -> None:
        _check_condition(self.type, self.reason, self.message, ConditionType.COMPLETE, ConditionType.FAILED)


@dataclass(frozen=True, slots=True)
class Evidence:
    """The object that a problem was found on, and what is said about it."""

    kind: str
    """Kind of the object."""
    name: str
    """Its name, in the namespace of the TrainJob."""
    message: str
    """The message of the component that reports the problem, such as the scheduler."""
    fields: Callable[[], Sequence[str]] = tuple
    """The fields of TrainJob or runtime that ask for what is missing. Defaults to unknown."""


_PROBLEMS = (ConditionType.PENDING, ConditionType.STOPPING, ConditionType.RESTARTING)


@dataclass(frozen=True, slots=True)
class PodProblem:
    """Something that keeps pods from running; it is reported once, in a condition and in an event."""

    type: Literal[ConditionType.PENDING, ConditionType.STOPPING, ConditionType.RESTARTING]
    """The condition that it makes true: Pending if a pod cannot start, Stopping if pods were deleted and are still
    there, Restarting if pods are created again. Of a suspended TrainJob only Stopping counts."""
    reason: str
    """One CamelCase word, such as ImagePullBackOff. A new one is an event."""
    headline: str
    """The problem, on one line. It should seldom change: each change is written, and that of a restart is an event as
    well, so a number of pods is better rounded."""
    details: Callable[[], str]
    """More about it, such as an example; called only when the headline is new, and may change between calls."""
    debounce: float = 0
    """Seconds for which a reason to wait has to last before it is reported. Defaults to a moment, in which other pods
    get into the same trouble."""
    evidence: Evidence | None = None
    """What `trainer explain` derives the remedy and a command from. Defaults to nothing but the text."""

    def __post_init__(self) -> None:
        _check_condition(self.type, self.reason, self.headline, *_PROBLEMS)


@dataclass(frozen=True, slots=True)
class StatusCondition:
    """A condition of a TrainJob as a plugin sees it; the controller adds the times."""

    type: str
    """Aspect of the state, in CamelCase; one of the plugin's `condition_types`."""
    holds: bool | None
    """Whether it holds; None when that is not known."""
    reason: str
    """Why, as one CamelCase word. A condition with a new status or reason is an event."""
    message: str = ""
    """Why, for people. Defaults to nothing."""

    def __post_init__(self) -> None:
        _check_condition(self.type, self.reason, self.message)
        if self.holds not in (True, False, None):
            raise TypeError(f"condition {self.type} must hold True, False or None, not {self.holds!r}")


@dataclass(frozen=True, slots=True)
class StatusReport:
    """How the child Jobs of a TrainJob are doing, as one plugin sees it; what it leaves out it does not know."""

    jobs: Sequence[JobStatus] | None = None
    """The counts of the child Jobs; only one plugin may count them. Defaults to none to count."""
    scale: NodeScale | None = None
    """Number of nodes of an elastic training and its bounds; only one plugin may know it. Defaults to a fixed size."""
    problems: Iterable[PodProblem] = ()
    """What keeps pods from running, the gravest first; a reason appears at most once. They count while the TrainJob is
    neither suspended nor ended. If a generator raises, the rest of the report is used. Defaults to nothing."""
    conditions: Iterable[StatusCondition] = ()
    """Conditions of the plugin (KEP-2170, "State Transition"). One that is left out stays as it was; report
    `holds=False` for what no longer holds. They are final once the TrainJob has ended. Defaults to none."""
    restarts: RestartCounts | None = None
    """How often all child Jobs have started again. Defaults to never, or without counts to what is known already."""

    def __post_init__(self) -> None:
        names = [count.name for count in self.jobs or ()]
        if len(names) > len(set(names)):
            raise ValueError(f"a replicated Job is counted twice: {', '.join(names)}")
        if not isinstance(self.scale, NodeScale | None):
            raise TypeError(f"gave {type(self.scale).__name__} instead of NodeScale")


def _check_condition(condition_type: str, reason: str, message: str, *types: ConditionType) -> None:
    """Refuse what the API server would refuse with the whole status."""
    if not isinstance(message, str):
        raise TypeError(f"condition {condition_type} has message {message!r}, which is no text")
    if types and condition_type not in types:
        raise ValueError(f"type {condition_type!r} must be {' or '.join(types)}")
    if not _REASON.fullmatch(reason):
        raise ValueError(f"condition {condition_type} has reason {reason!r}, which is not a CamelCase word")
