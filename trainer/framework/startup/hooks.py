"""Hooks: the methods of the extension points, and whether a plugin has written its own as they are called.

A hook that is misspelt, or takes other arguments, would never run and nobody would know. So the protocols in
`extension_points` are read here, and plugins are compared with them when they are registered.
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
"""How alike two names must be for one to be a slip of the pen; `status` is that close to `jobs_status`."""


@dataclass(frozen=True, slots=True)
class Hook:
    """One method of an extension point."""

    extension_point: str
    """Name of the protocol, such as `EnforceMLPolicy`."""
    name: str
    """Name of the method."""
    parameters: tuple[str, ...]
    """What it is called with, besides the plugin itself."""
    is_async: bool
    """Whether it is awaited."""
    companions: tuple[str, ...]
    """Attributes that the protocol asks for besides, such as `ml_policy_sources`."""

    def __str__(self) -> str:
        keyword = "async def" if self.is_async else "def"
        return f"{keyword} {self.name}({', '.join(('self', *self.parameters))})"


def _hooks() -> Iterator[Hook]:
    for protocol in EXTENSION_POINTS:
        members = {name: member for name, member in vars(protocol).items() if not name.startswith("_")}
        companions = tuple(name for name, member in members.items() if isinstance(member, property))
        for name, member in members.items():
            if inspect.isfunction(member):
                parameters = tuple(inspect.signature(member).parameters)[1:]
                yield Hook(protocol.__name__, name, parameters, inspect.iscoroutinefunction(member), companions)


HOOKS = tuple(_hooks())
"""All hooks there are."""


def hooks_of(plugin: Plugin) -> tuple[Hook, ...]:
    """The hooks that a plugin has."""
    return tuple(hook for hook in HOOKS if hasattr(plugin, hook.name))


def defects_of(plugin: Plugin) -> Iterator[str]:
    """What keeps hooks of a plugin from being called, or from working when they are, each with the remedy."""
    own = hooks_of(plugin)
    slips = [*_misspelt(plugin, {hook.name for hook in own})]
    yield from slips
    if not own and not slips:
        yield f"it has no hook, so it would never be called; give it one of {', '.join(hook.name for hook in HOOKS)}"
    for hook in own:
        yield from _defects(plugin, hook)
    for companion in sorted({companion for hook in HOOKS for companion in hook.companions}):
        if hasattr(plugin, companion):
            yield from _companion_defects(plugin, companion, own)


def _defects(plugin: Plugin, hook: Hook) -> Iterator[str]:
    function = getattr(plugin, hook.name)
    if not callable(function):
        yield f"{hook.name} is not a method; write {hook}"
        return
    is_async = inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
    if is_async and not hook.is_async:
        yield f"{hook.name} is async, but hooks only compute and are not awaited; write {hook}"
    elif hook.is_async and not is_async:
        yield f"{hook.name} is awaited; write {hook}"
    if not _accepts(function, len(hook.parameters)):
        yield f"{hook.name} takes other arguments than it is called with; write {hook}"
    for companion in hook.companions:
        if not hasattr(plugin, companion):
            yield f"{hook.name} needs {companion} beside it; add {companion} = frozenset(...)"


def _accepts(function: object, count: int) -> bool:
    try:
        signature = inspect.signature(function)  # type: ignore[arg-type]  # the caller knows that it is callable
    except ValueError:  # written in C, which tells nothing
        return True
    try:
        signature.bind(*range(count))
    except TypeError:
        return False
    return True


def _companion_defects(plugin: Plugin, companion: str, own: tuple[Hook, ...]) -> Iterator[str]:
    value = getattr(plugin, companion)
    if not isinstance(value, frozenset | set) or not all(isinstance(source, str) for source in value):
        yield f"{companion} must be a set of names, got {value!r}; write frozenset({{...}})"
    if not any(companion in hook.companions for hook in own):
        (hook,) = [hook for hook in HOOKS if companion in hook.companions]
        yield f"{companion} is of no use without {hook.name}; add {hook}"


def _misspelt(plugin: Plugin, own: set[str]) -> Iterator[str]:
    """Public methods that are nearly a hook which the plugin does not have."""
    absent = {_plain(hook.name): hook for hook in HOOKS if hook.name not in own}
    for name in _public_methods(plugin):
        if name in own:
            continue
        similar = get_close_matches(_plain(name), list(absent), n=1, cutoff=_SIMILAR)
        if similar:
            hook = absent[similar[0]]
            yield f"{name} is not a hook; did you mean {hook.name}? If not, call it _{name}"


def _plain(name: str) -> str:
    """`enforceMLPolicy` is a slip for `enforce_ml_policy`, too."""
    return name.replace("_", "").lower()


def _public_methods(plugin: Plugin) -> list[str]:
    members = ((name, inspect.getattr_static(plugin, name)) for name in dir(plugin) if not name.startswith("_"))
    return [name for name, member in members if callable(member) or isinstance(member, classmethod | staticmethod)]
