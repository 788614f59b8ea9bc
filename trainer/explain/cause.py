"""A cause for which a TrainJob does not run, and the answer that is made of causes."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from enum import StrEnum

from trainer.api.trainjob_status import ConditionReason
from trainer.workloads.pod_life import NODE_NOT_READY

UNSCHEDULABLE = "Unschedulable"
"""The reason for which a pod waits for a node."""
SILENT = "NoReport"
"""The reason of a training that reports nothing. No condition has it: only a timeout makes a silence a stall."""
STOPPING = frozenset({ConditionReason.STOPPING_PODS.value, ConditionReason.SUSPENDING_PODS.value, NODE_NOT_READY})
"""Reasons of trainings whose pods are to go, and are still there; those of a lost node may be."""
STALLED = frozenset({ConditionReason.NO_PROGRESS.value, SILENT})
"""Reasons of trainings that run, and do not get on."""
_LIMIT = 2000
"""Characters of a text; anybody may write objects with far longer ones."""


class Verdict(StrEnum):
    """How a TrainJob is doing, by what its user has to do."""

    RUNNING = "running"
    """It runs, and nothing is known that holds it."""
    SUCCEEDED = "succeeded"
    WAITING = "waiting"
    """Something holds it: it may go on by itself, or somebody has to act."""
    FAILED = "failed"
    """It has ended, but not well."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The object that a cause was found on."""

    kind: str
    name: str
    namespace: str = ""
    """Empty for a cluster-scoped object."""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause."""

    reason: str
    """One CamelCase word, that of the condition or event if there is one."""
    about: Subject
    message: str
    """What it is, as one sentence."""
    remedy: str
    """What to do about it."""
    command: str
    """The command that shows more."""
    fields: tuple[str, ...] = ()
    """The fields of TrainJob or runtime that ask for what is missing."""
    details: tuple[str, ...] = ()
    """Further lines, such as the last ones of a log."""
    commands: tuple[str, ...] = ()
    """Commands of which the remedy says when to run one, where it does not say them itself."""


@dataclass(frozen=True, slots=True)
class Unread:
    """What could not be read, so that the answer may lack a cause."""

    what: str
    """The kind of objects, such as `nodes`."""
    why: str
    """The answer of the API server."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The answer about one TrainJob."""

    verdict: Verdict
    causes: tuple[Cause, ...] = ()
    """The first one is what to act on."""
    facts: tuple[str, ...] = ()
    """What the status says beside the state: restarts by cause, and the last checkpoint."""
    notes: tuple[str, ...] = ()
    """What is worth knowing and holds nothing, such as a deadline."""
    unread: tuple[Unread, ...] = ()


_WORDS = {
    Verdict.RUNNING: "is running",
    Verdict.SUCCEEDED: "has succeeded",
    Verdict.WAITING: "is waiting",
    Verdict.FAILED: "has failed",
}
"""What a verdict says of a TrainJob."""
_STANDS_STILL = "makes no progress"
_STOPS = "is stopping"


def words_of(answer: Explanation) -> str:
    """What the answer says of a TrainJob, such as `is waiting`."""
    reason = answer.causes[0].reason if answer.causes else ""
    if reason in STOPPING:
        return _STOPS
    return _STANDS_STILL if reason in STALLED else _WORDS[answer.verdict]


def headline(subject: str, answer: Explanation) -> str:
    """The answer in one sentence, with the first cause if there is one."""
    cause = f": {answer.causes[0].reason}: {answer.causes[0].message}" if answer.causes else ""
    return one_line(f"{subject} {words_of(answer)}{cause}")


def one_line(text: object) -> str:
    """A text of anybody as one line of a bounded length."""
    shown = str(text or "")
    return " ".join(shown[:_LIMIT].split()) + (" ..." if len(shown) > _LIMIT else "")


def log_line(text: str) -> str:
    """A line of a log of a bounded length; the blanks before it show where a traceback points."""
    return text[:_LIMIT].rstrip() + (" ..." if len(text) > _LIMIT else "")


def kubectl(*arguments: str, namespace: str = "") -> str:
    """A command line of kubectl that can be pasted into a shell."""
    return shlex.join(["kubectl", *arguments, *(["-n", namespace] if namespace else [])])


def describe(subject: Subject) -> str:
    """The command that shows an object with its events."""
    return kubectl("describe", subject.kind.lower(), subject.name, namespace=subject.namespace)


def trainer(*arguments: str, namespace: str = "") -> str:
    """A command line of ours."""
    return shlex.join(["trainer", *arguments, *(["-n", namespace] if namespace else [])])
