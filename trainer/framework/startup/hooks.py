"""Hooks: the methods of the extension points, and whether a plugin has written its own as they are called.

A hook that is misspelt, or takes other arguments, would silently never run. So the registry compares plugins with the
protocols in `extension_points`.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from trainer.framework.plugin_api.extension_points import EXTENSION_POINTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainer.framework.plugin_api.extension_points import Plugin

_SIMILAR = 0.75
"""How alike two names must be for one to be a misspelling."""


@dataclass(frozen=True, slots=True)
class Hook:
    """One method of an extension point."""

    extension_point: str
    """Name of the protocol, such as `EnforceMLPolicy`."""
    name: str
    """Name of the method."""
    parameters: tuple[str, ...]
    """What it is called with, besides the plugin itself."""
    companions: tuple[str, ...]
    """Attributes that the protocol asks for besides, such as `ml_policy_sources`."""

    def __str__(self) -> str:
        return f"def {self.name}({', '.join(('self', *self.parameters))})"


def _hooks() -> Iterator[Hook]:
    for protocol in EXTENSION_POINTS:
        members = {name: member for name, member in vars(protocol).items() if not name.startswith("_")}
        companions = tuple(name for name, member in members.items() if isinstance(member, property))
        for name, member in members.items():
            if inspect.isfunction(member):
                yield Hook(protocol.__name__, name, tuple(inspect.signature(member).parameters)[1:], companions)


HOOKS = tuple(_hooks())
"""All hooks there are."""


def hooks_of(plugin: Plugin) -> tuple[Hook, ...]:
    """The hooks that a plugin has."""
    return tuple(hook for hook in HOOKS if hasattr(plugin, hook.name))


def defects_of(plugin: Plugin) -> Iterator[str]:
    """What keeps hooks of a plugin from being called, or from working when they are, each with the remedy."""
    own = hooks_of(plugin)
    misspelt = [*_misspelt(plugin, {hook.name for hook in own})]
    yield from misspelt
    if not own and not misspelt:
        yield f"it has no hook, so it would never be called; give it one of {', '.join(hook.name for hook in HOOKS)}"
    for hook in own:
        function = getattr(plugin, hook.name)
        if inspect.iscoroutinefunction(function):
            yield f"{hook.name} is async, but hooks only compute and are not awaited; write {hook}"
        elif not _accepts(function, len(hook.parameters)):
            yield f"{hook.name} takes other arguments than it is called with; write {hook}"
        for companion in hook.companions:
            if not isinstance(getattr(plugin, companion, None), frozenset | set):
                yield f"{hook.name} needs {companion} beside it; add {companion} = frozenset(...)"


def _accepts(function: object, count: int) -> bool:
    try:
        inspect.signature(function).bind(*range(count))  # type: ignore[arg-type]  # what is not callable raises
    except ValueError:  # written in C, which has no signature
        return True
    except TypeError:
        return False
    return True


def _misspelt(plugin: Plugin, own: set[str]) -> Iterator[str]:
    """Public methods that are nearly a hook which the plugin does not have."""
    absent = {_plain(hook.name): hook for hook in HOOKS if hook.name not in own}
    for name in dir(plugin):
        if name.startswith("_") or name in own or not callable(getattr(type(plugin), name, None)):
            continue
        similar = get_close_matches(_plain(name), list(absent), n=1, cutoff=_SIMILAR)
        if similar:
            yield f"{name} is not a hook; did you mean {absent[similar[0]].name}? If not, call it _{name}"


def _plain(name: str) -> str:
    """`enforceMLPolicy` is a misspelling of `enforce_ml_policy`, too."""
    return name.replace("_", "").lower()
