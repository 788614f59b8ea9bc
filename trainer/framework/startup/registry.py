"""The plugins of a process, of which no two do the same, and whether their hooks can be called.

Hooks are the methods of the extension points. One that is misspelt would silently never run.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from trainer.framework.plugin_api.extension_points import EXTENSION_POINTS, Plugin
from trainer.framework.status.status import CORE_CONDITIONS
from trainer.kube.errors import ConfigurationError

HOOKS = {
    name: protocol
    for protocol in EXTENSION_POINTS
    for name, member in vars(protocol).items()
    if inspect.isfunction(member) and not name.startswith("_")
}
"""The extension point of each hook."""

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_CONDITION_TYPE = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_EXCLUSIVE = {
    "ml_policy_sources": "serves spec.mlPolicy.",
    "pod_group_policy_sources": "serves spec.podGroupPolicy.",
    "condition_types": "reports condition ",
}
"""Attributes of plugins with what only one of them may do."""
_SIMILAR = 0.75
"""How alike two names must be for one to be a misspelling."""


class Registry:
    """Plugins, at most one of each name, without conflicts."""

    def __init__(self, plugins: Iterable[Plugin] = ()) -> None:
        self._by_name: dict[str, Plugin] = {}
        for plugin in plugins:
            self.register(plugin)

    def register(self, plugin: Plugin) -> None:
        """Add a plugin.

        Raises:
            ConfigurationError: it has no usable name or hook, or another plugin has its name or does the same; names
                plugin and remedy.
        """
        name = getattr(plugin, "name", None)
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ConfigurationError(
                f"the plugin {type(plugin).__module__}.{type(plugin).__qualname__}: the name {name!r} cannot be used; "
                "it must consist of lower-case letters, digits and -, with a letter or digit at both ends, at most 63"
            )
        if name in self._by_name:
            raise ConfigurationError(f"there are two plugins called {name}; rename one of them")
        problems = [*defects_of(plugin)] or [*self._conflicts(plugin)]
        if problems:
            raise ConfigurationError(f"plugin {name} cannot be used: {'; '.join(problems)}")
        self._by_name[name] = plugin

    def _conflicts(self, plugin: Plugin) -> Iterator[str]:
        for other in self:
            for attribute, what in _EXCLUSIVE.items():
                for shared in sorted(getattr(plugin, attribute, frozenset()) & getattr(other, attribute, frozenset())):
                    yield f"plugin {other.name} {what}{shared} already; disable one of the two"

    def __iter__(self) -> Iterator[Plugin]:
        return iter(self._by_name.values())


def hooks_of(plugin: Plugin) -> list[str]:
    """The hooks that a plugin has."""
    return [hook for hook in HOOKS if hasattr(plugin, hook)]


def defects_of(plugin: Plugin) -> Iterator[str]:
    """What keeps a plugin from being called, and conditions that it cannot report, each with the remedy."""
    own = hooks_of(plugin)
    misspelt = [*_misspelt(plugin, own)]
    yield from misspelt
    if not own and not misspelt:
        yield f"it has no hook, so it would never be called; give it one of {', '.join(HOOKS)}"
    for hook in own:
        if inspect.iscoroutinefunction(getattr(plugin, hook)):
            yield f"{hook} is async, but hooks only compute and are not awaited; write def {hook}"
        for attribute in _EXCLUSIVE.keys() & vars(HOOKS[hook]).keys():
            if not isinstance(getattr(plugin, attribute, None), frozenset | set):
                yield f"{hook} needs {attribute} beside it; add {attribute} = frozenset(...)"
    for condition in sorted(getattr(plugin, "condition_types", ())):
        if condition in CORE_CONDITIONS:
            yield f"condition_types names {condition}, which the controller sets itself; choose another name"
        elif not _CONDITION_TYPE.fullmatch(condition):
            yield f"condition_types names {condition!r}; write a CamelCase word, or one after a domain: acme.com/Ready"


def _misspelt(plugin: Plugin, own: list[str]) -> Iterator[str]:
    """Public methods that are nearly a hook which the plugin does not have, also as Go writes them."""
    absent = {hook.replace("_", ""): hook for hook in HOOKS if hook not in own}
    for name in dir(plugin):
        if name.startswith("_") or name in own or not callable(getattr(type(plugin), name, None)):
            continue
        for similar in get_close_matches(name.replace("_", "").lower(), absent, n=1, cutoff=_SIMILAR):
            yield f"{name} is not a hook; did you mean {absent[similar]}? If not, call it _{name}"
