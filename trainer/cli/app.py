"""The `trainer` command: its subcommands, and how their failures reach the user."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import cache, partial
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Annotated, Any, Final

import typer
from typer._click import Command, Context
from typer.core import TyperCommand, TyperGroup

import trainer
from trainer.api.invalid_object import InvalidObjectError
from trainer.cli.errors import BadInputError, CommandError, ExitCode
from trainer.cli.options import Panel
from trainer.kube.errors import ConfigurationError, KubeError, TransportError

_COMMANDS = {
    "demo": ("trainer.cli.local.demo", Panel.TRY),
    "run": ("trainer.cli.run.run", Panel.TRY),
    "lint": ("trainer.cli.offline.lint", Panel.TRY),
    "render": ("trainer.cli.offline.render", Panel.TRY),
    "get": ("trainer.cli.jobs.get", Panel.LOOK),
    "top": ("trainer.cli.jobs.top", Panel.LOOK),
    "explain": ("trainer.cli.explain.explain", Panel.LOOK),
    "logs": ("trainer.cli.logs.logs", Panel.LOOK),
    "metrics": ("trainer.cli.metrics.metrics", Panel.LOOK),
    "runtimes": ("trainer.cli.jobs.runtimes", Panel.LOOK),
    "suspend": ("trainer.cli.jobs.changes", Panel.CHANGE),
    "resume": ("trainer.cli.jobs.changes", Panel.CHANGE),
    "delete": ("trainer.cli.jobs.changes", Panel.CHANGE),
    "up": ("trainer.cli.local.up", Panel.LAPTOP),
    "down": ("trainer.cli.local.up", Panel.LAPTOP),
    "status": ("trainer.cli.local.up", Panel.LAPTOP),
    "cluster": ("trainer.cli.local.cluster", Panel.SERVERS),
    "manager": ("trainer.cli.operate.manager", Panel.SERVERS),
    "plugins": ("trainer.cli.operate.plugins", Panel.SERVERS),
    "crds": ("trainer.cli.operate.install", Panel.SERVERS),
    "install-runtimes": ("trainer.cli.operate.install", Panel.SERVERS),
}
"""Subcommands in the order of the help: the module that has the function of the same name, and the panel."""

_GROUP: Final = "trainer.commands"
"""The entry point group of further subcommands: the value is a `typer.Typer`, whose panel is that of the help."""
_OF_EXTRAS: Final = {
    "dashboard": "dashboard",
    "dashboard-server": "dashboard",
    "history": "dashboard",
    "compare": "dashboard",
    "convert": "v1",
}
"""Subcommands of our own distributions, and the extra that brings them."""


class _Commands(TyperGroup):
    """Subcommands whose modules are imported when they are wanted, and whose failures are one line and an exit code.

    A process that lasts, such as that of `trainer manager`, holds the modules of its own command only.
    """

    def list_commands(self, ctx: Context) -> list[str]:  # noqa: ARG002 - inherited
        """The names of all subcommands, those of other distributions last."""
        return [*_COMMANDS, *(name for name in _installed() if name not in _COMMANDS)]

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        """The subcommand of this name; for an unknown one, all are loaded, which suggestions are made of."""
        known = cmd_name in _COMMANDS or cmd_name in _installed()
        if not known and (extra := _OF_EXTRAS.get(cmd_name)):
            raise CommandError(f"{cmd_name} is not installed: pip install 'trainer-operator[{extra}]'")
        for name in [cmd_name] if known else self.list_commands(ctx):
            if name not in self.commands:
                self.add_command(_load(name), name)
        return super().get_command(ctx, cmd_name)

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
    cls=_Commands,
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
        typer.echo(f"trainer {trainer.__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


@cache
def _installed() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=_GROUP)}


def _load(name: str) -> Command:
    if name not in _COMMANDS:
        return _load_installed(_installed()[name])
    module, panel = _COMMANDS[name]
    found = getattr(import_module(module), name.replace("-", "_"))
    if isinstance(found, typer.Typer):
        found.info.name, found.info.rich_help_panel = name, panel
        return typer.main.get_command(found)
    single = typer.Typer(add_completion=False)
    single.command(name, rich_help_panel=panel)(found)
    return typer.main.get_command(single)


def _load_installed(point: EntryPoint) -> Command:
    """The subcommand of another distribution; one that cannot be loaded is listed, and says why when it is called."""
    try:
        found: typer.Typer = point.load()
        command = typer.main.get_command(found)
    except Exception as error:
        distribution = point.dist.name if point.dist is not None else point.value
        problem = f"the command {point.name} of {distribution} cannot be loaded: {error}"
        return TyperCommand(point.name, callback=partial(_refuse, problem), help=problem, rich_help_panel=Panel.OTHER)
    panel = found.rich_help_panel
    assert isinstance(command, TyperCommand | TyperGroup)
    command.name = point.name
    command.rich_help_panel = panel if isinstance(panel, str) else Panel.OTHER
    return command


def _refuse(problem: str) -> None:
    raise CommandError(problem)


def _fail(error: Exception) -> ExitCode:
    """Print why the command ends and return its exit code; raise a bug of ours again."""
    from trainer.cli.console import complain  # noqa: PLC0415 - with rich, which a manager that runs does without

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
            return BadInputError(error.format_message().replace(": Value error, ", ": ", 1) + _of_the_script(error))
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


def _of_the_script(error: typer.TyperException) -> str:
    """Where an option belongs that `trainer run` does not have: most likely it is the script's."""
    option, context = getattr(error, "option_name", None), getattr(error, "ctx", None)
    if not isinstance(option, str) or context is None or context.info_name != "run":
        return ""
    return f"; options of the script follow after --: trainer run SCRIPT -- {option}"
