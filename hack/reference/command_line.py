"""The `trainer` command: its subcommands, their arguments and options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from functools import cache
from typing import Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from hack.reference.markdown import code, page, prose, table
from trainer.cli.app import app

_INTRODUCTION = (
    "`trainer run`, `get`, `logs` and `metrics` work on any cluster that kubectl reaches: that of `--kubeconfig`, "
    "`$KUBECONFIG`, `trainer up` or `~/.kube/config`, in this order. `trainer COMMAND --help` says what this page says."
)


@cache
def commands() -> Mapping[str, TyperCommand]:
    """The subcommands by name, in the order in which help lists them, those of a group behind it: `history record`.

    Making them takes 50 ms.
    """
    group: Any = typer.main.get_command(app)
    context = typer.Context(group)
    found: dict[str, TyperCommand] = {}
    for name in group.list_commands(context):
        panel = group.get_command(context, name).rich_help_panel
        found[name] = command = group.resolve_command(context, [name])[1]
        command.rich_help_panel = panel
        if isinstance(command, TyperGroup):
            subcommands: Mapping[str, Any] = command.commands
            for own in subcommands.values():
                own.rich_help_panel = panel
                found[f"{name} {own.name}"] = own
    return found


def option_names(command: TyperCommand) -> set[str]:
    """All spellings of all options of a subcommand."""
    own = {name for option in command.params for name in (*option.opts, *option.secondary_opts) if name[0] == "-"}
    return own | {"-h", "--help"}


def command_line() -> str:
    """The page docs/reference/cli.md."""
    blocks = [_INTRODUCTION]
    panels: dict[str, list[str]] = {}
    for name, command in commands().items():
        panels.setdefault(str(command.rich_help_panel), []).append(name)
    for panel, names in panels.items():
        blocks.append(f"## {panel}")
        for name in names:
            blocks += _command(name, commands()[name])
    return page("Command line", *blocks)


def _command(name: str, command: TyperCommand) -> Iterator[str]:
    arguments = [each for each in command.params if isinstance(each, TyperArgument)]
    options = [each for each in command.params if isinstance(each, TyperOption) and not each.hidden]
    yield f"### trainer {name}"
    usage = " ".join(f"{each.name.upper()}" if each.required else f"[{each.name.upper()}]" for each in arguments)
    yield f"```\n{' '.join(filter(None, ['trainer', name, usage, '[OPTIONS]' if options else '']))}\n```"
    for paragraph in (command.help or "").split("\n\n"):
        yield prose(paragraph)
    context = typer.Context(command)
    rows = [(code(each.name.upper()), "", "", prose(each.help or "")) for each in arguments]
    rows += [
        (
            ", ".join(map(code, (*each.opts, *each.secondary_opts))),
            "" if each.is_flag else code(each.metavar or each.display_type(context).strip("<>")),
            _default(each),
            prose(each.help or ""),
        )
        for each in options
    ]
    yield table(("option", "value", "default", "what it does"), rows)


def _default(option: TyperOption) -> str:
    if option.required:
        return "required"
    value: object = option.default.value if isinstance(option.default, Enum) else option.default
    if value is None or value == "" or value is False:
        return ""
    return code(option.opts[0]) if value is True else code(value)
