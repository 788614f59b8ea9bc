"""The `trainer` command: its subcommands, and how their failures reach the user."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

import trainer
from trainer.api.invalid_object import InvalidObjectError
from trainer.cli.console import complain, say
from trainer.cli.errors import BadInputError, CommandError, ExitCode
from trainer.cli.jobs.changes import delete, resume, suspend
from trainer.cli.jobs.get import get
from trainer.cli.jobs.runtimes import runtimes
from trainer.cli.local.cluster import cluster
from trainer.cli.local.demo import demo
from trainer.cli.local.up import down, status, up
from trainer.cli.logs.logs import logs
from trainer.cli.metrics.metrics import metrics
from trainer.cli.offline.convert import convert
from trainer.cli.offline.lint import lint
from trainer.cli.offline.render import render
from trainer.cli.operate.install import crds, install_runtimes
from trainer.cli.operate.manager import manager
from trainer.cli.operate.plugins import plugins
from trainer.cli.run.run import run
from trainer.kube.errors import ConfigurationError, KubeError, TransportError

if TYPE_CHECKING:
    from collections.abc import Sequence


class _OneLineErrors(TyperGroup):
    """A command group whose failures are one line on standard error and an exit code."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,  # noqa: ARG002 - this is what it does differently
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run the command line and exit."""
        try:
            code = super().main(
                args, prog_name, complete_var, standalone_mode=False, windows_expand_args=windows_expand_args, **extra
            )
        except KeyboardInterrupt:
            code = 130
        except Exception as error:
            code = _fail(error)
        sys.exit(code if isinstance(code, int) else 0)


app = typer.Typer(
    name="trainer",
    cls=_OneLineErrors,
    help="Train models on Kubernetes with TrainJobs, and on a laptop without Kubernetes.",
    epilog="Begin with: trainer demo",
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _main(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        say(f"trainer {trainer.__version__}")
    elif context.invoked_subcommand is None:
        say(context.get_help())


_TRY, _LOOK, _CHANGE = "Run TrainJobs", "See how TrainJobs are doing", "Change TrainJobs"
_LAPTOP, _SERVERS = "A cluster on this machine", "Processes and manifests"
for command, panel in (
    (demo, _TRY), (run, _TRY), (lint, _TRY), (render, _TRY),
    (convert, _TRY),
    (get, _LOOK), (logs, _LOOK), (metrics, _LOOK), (runtimes, _LOOK),
    (suspend, _CHANGE), (resume, _CHANGE), (delete, _CHANGE),
    (up, _LAPTOP), (down, _LAPTOP), (status, _LAPTOP),
    (cluster, _SERVERS), (manager, _SERVERS), (plugins, _SERVERS), (crds, _SERVERS),
    (install_runtimes, _SERVERS),
):  # fmt: skip
    app.command(rich_help_panel=panel)(command)


def _fail(error: Exception) -> ExitCode:
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
            return BadInputError(error.format_message().replace(": Value error, ", ": ", 1))
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
