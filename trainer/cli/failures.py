"""How the failure of a command reaches the user: one line on standard error, and an exit code."""

from __future__ import annotations

import os
import re
import sys

import typer

from trainer.api.invalid_object import InvalidObjectError
from trainer.cli.console import complain
from trainer.cli.errors import BadInputError, CommandError, ExitCode
from trainer.cli.similar import did_you_mean
from trainer.kube.errors import ConfigurationError, KubeError, TransportError


def exit_code_of(error: Exception) -> ExitCode:
    """Print why the command ends and return its exit code; raise a bug of ours again."""
    cause = error
    while isinstance(cause, ExceptionGroup):
        cause = cause.exceptions[0]
    if isinstance(cause, BrokenPipeError):  # the reader of our output has ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.FAILED
    failure = _describe(error)
    if failure is None:
        raise error
    complain(str(failure))
    return failure.exit_code


def _describe(error: Exception) -> CommandError | None:
    """The failure as the user reads it, the first one of a group; None for a bug of ours, which needs a traceback."""
    match error:
        case CommandError():
            return error
        case ExceptionGroup():
            described = [_describe(inner) for inner in error.exceptions]
            return described[0] if all(described) else None
        case typer.TyperException():
            # The parser names the exception of a wrong choice.
            message = _meant(error).replace(": Value error, ", ": ", 1)
            return BadInputError(_wanted(error) or message + _behind_dashes(error, message))
        case ConfigurationError() | InvalidObjectError():
            return BadInputError(str(error))
        case TransportError():
            return CommandError(f"cannot reach the cluster: {error}")
        case KubeError():
            return CommandError(str(error))
        case OSError(strerror=str() as problem):
            return CommandError(f"{error.filename}: {problem}" if error.filename else problem)
        case _:
            return None


def _meant(error: typer.TyperException) -> str:
    """The message of the parser, with the option that was most likely meant in place of all that look alike."""
    option = getattr(error, "option_name", None)
    if not isinstance(option, str):
        return error.format_message()
    possible = [each.lstrip("-") for each in getattr(error, "possibilities", None) or ()]
    # All begin with dashes, which is no likeness.
    return error.message + did_you_mean(option.lstrip("-"), possible).replace("mean ", "mean --")


_WITH_ARGUMENTS = {
    "run": "of the script follow after --: trainer run SCRIPT --",
    "sweep": "of the script follow after --: trainer sweep SCRIPT --",
    "exec": "of the command follow after --: trainer exec NAME -- COMMAND",
}
"""Commands whose last arguments are those of another program."""


def _behind_dashes(error: typer.TyperException, message: str) -> str:
    """Where an option belongs that a command does not have: most likely it is that of the program it is to run."""
    option, context = getattr(error, "option_name", None), getattr(error, "ctx", None)
    if not isinstance(option, str) or context is None or context.info_name not in _WITH_ARGUMENTS:
        return ""
    joint = " Options" if message.endswith("?") else "; options"
    return f"{joint} {_WITH_ARGUMENTS[context.info_name]} {option}"


def _wanted(error: typer.TyperException) -> str:
    """What a command lacks, such as `Missing argument 'B': trainer compare A B`; "" for other errors."""
    context, message = getattr(error, "ctx", None), error.format_message()
    if context is None or not message.startswith("Missing argument"):
        return ""
    _, *usage = context.command.collect_usage_pieces(context)  # the first one is [OPTIONS]
    names = [re.sub(r"[{}]|[.]{3}$", "", each) for each in usage]
    if context.info_name in _WITH_ARGUMENTS:
        names.insert(-1, "--")
    return f"{message.removesuffix('.')}: {' '.join([context.command_path, *names])}"
