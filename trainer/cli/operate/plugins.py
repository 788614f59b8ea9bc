"""`trainer plugins`: the installed plugins, their origins and extension points."""

from __future__ import annotations

from typing import NamedTuple

from trainer.cli.console import Format, OutputFormat, columns, say, say_json
from trainer.cli.offline.workspace import PluginsConfig
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


def plugins(*, config: PluginsConfig = None, output: Format = OutputFormat.TEXT) -> None:
    """List the plugins of the manager: name, origin, extension points, and whether they are enabled.

    Exit code: 0 when the manager would start with them, 2 when it would not; standard error then says why.
    """
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
