"""Finds plugins, and makes those that are enabled.

Plugins of other packages come with pip: a package registers them in the entry-point group `trainer.plugins`, each under
the plugin's name. An entry point is a class or a function that takes a `PluginContext` and returns the plugin. The code
of what is disabled is not imported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from typing import TypeAlias

from pydantic import Field

from trainer.api.invalid_object import InvalidObjectError
from trainer.api.model import ApiModel, JsonObject
from trainer.framework.plugin_api.extension_points import ComponentBuilder, Plugin, TerminalCondition
from trainer.framework.plugin_api.plugin_context import PluginContext, Reader
from trainer.framework.startup.registry import Registry
from trainer.kube.errors import ConfigurationError
from trainer.kube.field_errors import FieldError, duplicate, not_supported

GROUP = "trainer.plugins"
"""The entry-point group of plugins."""

PluginFactory: TypeAlias = Callable[[PluginContext], Plugin]
"""Makes a plugin: its class, or a function."""


class PluginsConfiguration(ApiModel):
    """Which plugins are used, and how they are configured."""

    enabled: list[str] | None = None
    """Names of the plugins to use, and of no others. Defaults to all that are installed."""
    disabled: list[str] = Field(default_factory=list)
    """Names of plugins that are not used; their code is not imported. Defaults to none."""
    configuration: dict[str, JsonObject] = Field(default_factory=dict)
    """The configuration of each plugin, by its name; the plugin checks it. Defaults to nothing."""

    def is_enabled(self, name: str) -> bool:
        """Whether the plugin of this name is used."""
        return name not in self.disabled and (self.enabled is None or name in self.enabled)

    def errors(self, known: Iterable[str]) -> Iterator[FieldError]:
        """Names that are unknown, or there twice."""
        names = sorted(known)
        for field, listed in (("enabled", self.enabled or []), ("disabled", self.disabled)):
            for position, name in enumerate(listed):
                path = f"plugins.{field}[{position}]"
                if name not in names:
                    yield not_supported(path, name, names)
                elif name in listed[:position] or (field == "disabled" and name in (self.enabled or [])):
                    yield duplicate(path, name)
        for name in self.configuration:
            if name not in names:
                yield not_supported("plugins.configuration", name, names)


@dataclass(frozen=True, slots=True)
class AvailablePlugin:
    """A plugin that could be enabled; its code is not imported yet."""

    name: str
    """The name of its entry point."""
    load: Callable[[], object]
    """Imports its code and returns its factory; raises whatever the import raises."""
    package: str = ""
    """The distribution package that it comes from. Defaults to this one."""
    version: str = ""
    """The version of its package."""

    @property
    def origin(self) -> str:
        """Where it comes from, in words."""
        return f"{self.package} {self.version}".rstrip() if self.package else "built in"

    def __str__(self) -> str:
        return f"plugin {self.name} ({self.origin})"


def available_plugins(built_in: Mapping[str, PluginFactory]) -> list[AvailablePlugin]:
    """The built-in plugins and those of all installed packages, by name; it reads files."""
    by_name: dict[str, AvailablePlugin] = {}
    for plugin in [*bundled_plugins(built_in), *(_announced(entry) for entry in entry_points(group=GROUP))]:
        other = by_name.setdefault(plugin.name, plugin)
        if other is not plugin:
            one, another = (f"of {each.origin}" if each.package else each.origin for each in (other, plugin))
            raise ConfigurationError(
                f"there are two plugins called {plugin.name}: one is {one}, one {another}; "
                "uninstall or rename one of them"
            )
    return [by_name[name] for name in sorted(by_name)]


def bundled_plugins(built_in: Mapping[str, PluginFactory]) -> list[AvailablePlugin]:
    """The built-in plugins alone, by name."""
    return [AvailablePlugin(name, partial(built_in.__getitem__, name)) for name in sorted(built_in)]


def _announced(entry: EntryPoint) -> AvailablePlugin:
    package = entry.dist
    if package is None:
        return AvailablePlugin(entry.name, entry.load, "an unknown package")
    return AvailablePlugin(entry.name, entry.load, package.name, package.version)


@dataclass(frozen=True, slots=True)
class EnabledPlugin:
    """A plugin whose code has been imported."""

    plugin: AvailablePlugin
    factory: PluginFactory
    configuration: JsonObject

    def make(self, reader: Reader) -> Plugin:
        """Call the factory; what is wrong is a ConfigurationError with plugin, origin and field."""
        context = PluginContext(reader, self.configuration)
        path = f"plugins.configuration[{self.plugin.name}]"
        try:
            made = self.factory(context)
        except InvalidObjectError as error:
            problems = (FieldError(f"{path}.{e.field}" if e.field else path, e.message, e.reason) for e in error.errors)
            raise ConfigurationError("; ".join(map(str, problems))) from error
        except Exception as error:
            raise ConfigurationError(f"{self.plugin} cannot be made: {_in_words(error)}") from error
        if context.is_ignored:
            raise ConfigurationError(f"{path}: {self.plugin} takes no configuration; remove it")
        name = getattr(made, "name", None)
        if isinstance(name, str) and name != self.plugin.name:
            raise ConfigurationError(
                f"{self.plugin}: the plugin calls itself {name!r}, its entry point {self.plugin.name!r}; "
                "give both the same name, by which it is configured"
            )
        return made


def load_plugins(available: Iterable[AvailablePlugin], configuration: PluginsConfiguration) -> list[EnabledPlugin]:
    """Import the code of what is enabled; not for the event loop, since it reads files."""
    plugins = list(available)
    errors = list(configuration.errors(plugin.name for plugin in plugins))
    if errors:
        raise ConfigurationError("; ".join(map(str, errors)))
    return [load_plugin(plugin, configuration) for plugin in plugins if configuration.is_enabled(plugin.name)]


def load_plugin(plugin: AvailablePlugin, configuration: PluginsConfiguration) -> EnabledPlugin:
    """Import the code of one plugin."""
    try:
        factory = plugin.load()
    except Exception as error:
        raise ConfigurationError(
            f"{plugin} cannot be imported: {_in_words(error)}; repair the package, or add {plugin.name} to "
            "plugins.disabled of the configuration"
        ) from error
    if not callable(factory):
        raise ConfigurationError(f"{plugin}: the entry point must be a class or a function, got {factory!r}")
    return EnabledPlugin(plugin, factory, configuration.configuration.get(plugin.name) or {})


def make_registry(plugins: Iterable[EnabledPlugin], reader: Reader) -> Registry:
    """The plugins, made and checked."""
    registry = Registry()
    for plugin in plugins:
        made = plugin.make(reader)
        try:
            registry.register(made)
        except ConfigurationError as error:
            origin = f" (it comes from {plugin.plugin.origin})" if plugin.plugin.package else ""
            raise ConfigurationError(f"{error}{origin}") from error
    for protocol, lack in ((ComponentBuilder, "start"), (TerminalCondition, "end")):
        if not any(isinstance(plugin, protocol) for plugin in registry):
            raise ConfigurationError(
                f"plugins: without a plugin that is a {protocol.__name__} no TrainJob would ever {lack}; "
                "enable jobset, or another one"
            )
    return registry


def _in_words(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".removesuffix(": ").split())
