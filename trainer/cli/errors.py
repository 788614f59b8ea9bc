"""Exit codes, and errors that are one line for the user."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of `trainer`; a command ended by signal N exits with 128 + N."""

    OK = 0
    FAILED = 1
    """The job failed, or the cluster refused the request."""
    BAD_INPUT = 2
    """Arguments or files are wrong: running the same command again fails again."""
    WAITING = 3
    """`trainer explain`: the job waits for something."""
    JOB_FAILED = 4
    """`trainer explain`: the job has failed."""
    TIMEOUT = 124
    """The time is up; the exit code of timeout(1)."""


class CommandError(Exception):
    """Ends a command; the message is one line, written to standard error after `error: `."""

    def __init__(self, message: str, exit_code: ExitCode = ExitCode.FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class BadInputError(CommandError):
    """Wrong arguments or files; the message names the argument or field and the remedy."""

    def __init__(self, message: str) -> None:
        super().__init__(message, ExitCode.BAD_INPUT)


class GoneError(CommandError):
    """What is asked for is not in the cluster any more; the history may have it."""
