"""How a command ends: exit codes, and errors that are one clear line for the person at the terminal."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What the exit code of `trainer` says; a command ended by signal N exits with 128 + N."""

    OK = 0
    FAILED = 1
    """The job failed, or the cluster could not do what was asked."""
    BAD_INPUT = 2
    """Arguments or files are wrong: running the same command again fails again."""
    TIMEOUT = 124
    """As timeout(1)."""


class CommandError(Exception):
    """A command cannot go on; the message is one line for the user, written to stderr after `error: `."""

    def __init__(self, message: str, exit_code: ExitCode = ExitCode.FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class BadInputError(CommandError):
    """What the user gave is wrong; the message names the argument or field and the remedy."""

    def __init__(self, message: str) -> None:
        super().__init__(message, ExitCode.BAD_INPUT)
