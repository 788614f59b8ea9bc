"""What a shim answers: lines of JSON on its standard output."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

NOT_FOUND = "executable file not found in $PATH"
"""How the message of a failed exec ends when no directory of the container's PATH has the program."""


@dataclass(frozen=True, slots=True)
class SandboxReady:
    """The namespaces of a sandbox are there."""


@dataclass(frozen=True, slots=True)
class Started:
    """The container's program runs."""


@dataclass(frozen=True, slots=True)
class StartFailed:
    """The sandbox or the container could not be started; the shim ends."""

    stage: str
    """sandbox, filesystem, exec or log."""
    message: str

    @classmethod
    def because_of(cls, stage: str, error: BaseException) -> StartFailed:
        """The failure that an exception stands for."""
        if not isinstance(error, OSError):
            return cls(stage, repr(error))
        message = error.strerror or str(error)
        return cls(stage, f"{error.filename}: {message}" if error.filename else message)


@dataclass(frozen=True, slots=True)
class Exited:
    """The container's program has ended and its log is complete; the shim ends."""

    code: int
    """128 + n after signal n."""
    signal: int = 0


@dataclass(frozen=True, slots=True)
class Probed:
    """A probe has been carried out; the container goes on."""

    number: int
    """Which one it was."""
    success: bool
    message: str = ""
    """Why it failed."""
    errored: bool = False
    """Whether it could not be carried out, which says nothing about the container."""


Report: TypeAlias = SandboxReady | Started | StartFailed | Exited | Probed

_KINDS: dict[str, type[Report]] = {kind.__name__: kind for kind in (SandboxReady, Started, StartFailed, Exited, Probed)}


def encode(report: Report) -> bytes:
    """The report as one line of JSON."""
    return json.dumps({"report": type(report).__name__, **asdict(report)}).encode() + b"\n"


def decode(line: bytes) -> Report:
    """The report that `encode` wrote."""
    fields: dict[str, Any] = json.loads(line)
    return _KINDS[fields.pop("report")](**fields)


def send(descriptor: int, report: Report) -> None:
    """Write a report; nobody may be left to read it, which is no error."""
    try:
        os.write(descriptor, encode(report))
    except BrokenPipeError:
        return


def from_wait_status(status: int) -> Exited:
    """How a process ended, from what `waitpid` returned."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return Exited(128 + number, number)
    return Exited(os.WEXITSTATUS(status))
