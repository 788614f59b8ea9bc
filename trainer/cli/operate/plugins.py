"""`trainer plugins`: the installed plugins, their origins and extension points; `trainer plugins new` begins one."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from trainer.cli.columns import columns
from trainer.cli.console import Format, OutputFormat, say, say_json
from trainer.cli.offline.workspace import PluginsConfig
from trainer.cli.operate.new_plugin import plugin_files, write_new
from trainer.configuration.configuration import load_configuration
from trainer.framework.plugin_api.plugin_context import CacheReader
from trainer.framework.startup.discovery import (
    AvailablePlugin,
    PluginsConfiguration,
    available_plugins,
    load_plugin,
    make_registry,
)
from trainer.framework.startup.registry import HOOKS, hooks_of
from trainer.kube.errors import ConfigurationError
from trainer.manager import enabled_plugins
from trainer.plugins import BUILT_IN


class ListedPlugin(NamedTuple):
    """A plugin as the command prints it."""

    plugin: AvailablePlugin
    hooks: tuple[str, ...]
    """Its extension points; empty when it is disabled, since its code is not imported then."""
    enabled: bool
    """Whether the manager would use it."""


def list_plugins(configuration: PluginsConfiguration) -> list[ListedPlugin]:
    """All installed plugins, by name; one that cannot be created has no hooks."""
    return [_listed(plugin, configuration) for plugin in available_plugins(BUILT_IN)]


def _listed(plugin: AvailablePlugin, configuration: PluginsConfiguration) -> ListedPlugin:
    enabled = configuration.is_enabled(plugin.name)
    hooks: tuple[str, ...] = ()
    if enabled:
        try:
            made = load_plugin(plugin, configuration).make(CacheReader())
            hooks = tuple(dict.fromkeys(HOOKS[hook].__name__ for hook in hooks_of(made)))
        except ConfigurationError:
            pass
    return ListedPlugin(plugin, hooks, enabled)


plugins = typer.Typer(add_completion=False)


@plugins.callback(invoke_without_command=True)
def show_plugins(context: typer.Context, *, config: PluginsConfig = None, output: Format = OutputFormat.TEXT) -> None:
    """List the plugins of the manager: name, origin, extension points, and whether they are enabled.

    Exit code: 0 when the manager would start with them, 2 when it would not; standard error then says why.
    """
    if context.invoked_subcommand is not None:
        return
    configuration = load_configuration(config)
    listed = list_plugins(configuration.plugins)
    if output is OutputFormat.JSON:
        say_json([_to_object(plugin) for plugin in listed])
    else:
        table = [("NAME", "ORIGIN", "ENABLED", "HOOKS")]
        for plugin, hooks, enabled in listed:
            table.append((plugin.name, plugin.origin, "yes" if enabled else "no", ", ".join(hooks) or "-"))
        for row in columns(table, gap=3):
            say(row)
    make_registry(enabled_plugins(configuration.plugins), CacheReader())


@plugins.command()
def new(
    name: Annotated[str, typer.Argument(help="Name of the plugin, such as team-labels.")],
    *,
    directory: Annotated[
        Path | None, typer.Option("--directory", help="Directory to make. Default: trainer-NAME.")
    ] = None,
) -> None:
    """Make the directory of a new plugin that works: packaging, about 25 lines of code, and a test of them."""
    target = directory or Path(f"trainer-{name}")
    files = plugin_files(name)
    write_new(target, files)
    for path in files:
        say(str(target / path))
    say(f"Next: cd {shlex.quote(str(target))} && pytest, then pip install -e . && trainer plugins")


def _to_object(listed: ListedPlugin) -> dict[str, object]:
    plugin, hooks, enabled = listed
    return {
        "name": plugin.name,
        "origin": plugin.origin,
        "package": plugin.package or None,
        "version": plugin.version or None,
        "hooks": list(hooks),
        "enabled": enabled,
    }
