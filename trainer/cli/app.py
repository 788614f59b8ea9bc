"""The `trainer` command, which loads the subcommand that is called and no other."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache, partial
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from inspect import cleandoc
from typing import Annotated, Any, Final

import typer
from typer._click import Command, Context
from typer.core import TyperCommand, TyperGroup

import trainer
from trainer.cli.commands import COMMANDS, OF_EXTRAS, Panel
from trainer.cli.errors import CommandError
from trainer.distributions import check_entry_point

_GROUP: Final = "trainer.commands"
"""The entry point group of further subcommands: the value is a `typer.Typer`, whose panel is that of the help."""


class _Commands(TyperGroup):
    """Subcommands whose modules are imported when they are wanted, and whose failures are one line and an exit code.

    A process that lasts, such as that of `trainer manager`, holds the modules of its own command only.
    """

    def list_commands(self, ctx: Context) -> list[str]:  # noqa: ARG002 - inherited
        """The names of all subcommands, those of other distributions last."""
        return list(COMMANDS | _installed())

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:  # noqa: ARG002 - inherited
        """The subcommand of this name, as the help lists it."""
        if cmd_name not in self.commands and (cmd_name in COMMANDS or cmd_name in _installed()):
            self.add_command(_listed(cmd_name), cmd_name)
        return self.commands.get(cmd_name)

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, Command | None, list[str]]:
        """The subcommand that the arguments begin with, and its own arguments; an error suggests names alike."""
        name = args[0]
        if name in COMMANDS or name in _installed():
            self.add_command(_load(name), name)
        elif name in OF_EXTRAS:
            extra = OF_EXTRAS[name].source
            raise CommandError(f"{name} is not installed: pip install 'trainer-operator[{extra}]'")
        else:
            for each in self.list_commands(ctx):
                self.get_command(ctx, each)
        return super().resolve_command(ctx, args)

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
        except (KeyboardInterrupt, typer.Abort):
            code = 130
        except Exception as error:
            from trainer.cli.failures import exit_code_of  # noqa: PLC0415 - with the client and rich

            code = exit_code_of(error)
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


def _listed(name: str) -> Command:
    """The subcommand with no more than the help lists of it; that of a stranger is loaded to know it."""
    entry = COMMANDS.get(name) or OF_EXTRAS.get(name)
    return _load(name) if entry is None else TyperCommand(name, help=entry.summary, rich_help_panel=entry.panel)


def _load(name: str) -> Command:
    return _flowing(_load_own(name) if name in COMMANDS else _load_installed(_installed()[name]))


def _flowing(command: Command) -> Command:
    """A command whose help breaks lines where the terminal ends, not where its docstring does."""
    paragraphs = cleandoc(command.help or "").split("\n\n")
    command.help = "\n\n".join(each if each.startswith("\b") else " ".join(each.split("\n")) for each in paragraphs)
    for each in command.commands.values() if isinstance(command, TyperGroup) else ():
        _flowing(each)
    return command


def _load_own(name: str) -> Command:
    found = getattr(import_module(COMMANDS[name].source), name.replace("-", "_"))
    if isinstance(found, typer.Typer):
        group = typer.main.get_command(found)
        group.name = name
        return group
    single = typer.Typer(add_completion=False)
    single.command(name)(found)
    return typer.main.get_command(single)


def _load_installed(point: EntryPoint) -> Command:
    """The subcommand of another distribution; one that cannot be loaded is listed, and says why when it is called."""
    try:
        check_entry_point(point)
        found: typer.Typer = point.load()
        command = typer.main.get_command(found)
    except Exception as error:
        distribution = point.dist.name if point.dist is not None else point.value
        problem = f"the command {point.name} of {distribution} cannot be loaded: {error}"
        return TyperCommand(point.name, callback=partial(_refuse, problem), help=problem, rich_help_panel=Panel.OTHER)
    assert isinstance(command, TyperCommand | TyperGroup)
    command.name = point.name
    panel = found.rich_help_panel
    command.rich_help_panel = panel if isinstance(panel, str) else Panel.OTHER
    return command


def _refuse(problem: str) -> None:
    raise CommandError(problem)
