"""The plugins of a process, of which no two do the same, and whether their hooks can be called.

Hooks are the methods of the extension points. One that is misspelt would silently never run.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from trainer.api.trainingruntime import MLPolicy, PodGroupPolicy
from trainer.framework.plugin_api.extension_points import (
    EXTENSION_POINTS,
    EnforceMLPolicy,
    EnforcePodGroupPolicy,
    TrainJobStatus,
)
from trainer.framework.status.status import CORE_CONDITIONS
from trainer.kube.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from trainer.framework.plugin_api.extension_points import Plugin


_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_CONDITION_TYPE = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?")
_CONDITION_TYPE_LIMIT = 316
_ML_POLICIES = frozenset(MLPolicy.model_fields) - {"num_nodes"}
_POD_GROUP_POLICIES = frozenset(PodGroupPolicy.model_fields)


class Registry:
    """Plugins, at most one of each type and name, without conflicts."""

    def __init__(self, plugins: Iterable[Plugin] = ()) -> None:
        self._by_name: dict[str, Plugin] = {}
        for plugin in plugins:
            self.register(plugin)

    def register(self, plugin: Plugin) -> None:
        """Add a plugin.

        Raises:
            ConfigurationError: it has no usable name, its type or name is registered already, it has no hook or a hook
                that would not work, or another plugin does the same; names plugin and remedy.
        """
        name = _name(plugin)
        if name in self._by_name:
            raise ConfigurationError(f"there are two plugins called {name}; rename one of them")
        if any(type(plugin) is type(other) for other in self):
            raise ConfigurationError(f"the plugin {name} is registered twice")
        problems = [*defects_of(plugin)] or [*_unusable(plugin)] or [*self._conflicts(plugin)]
        if problems:
            raise ConfigurationError(f"plugin {name} cannot be used: {'; '.join(problems)}")
        self._by_name[name] = plugin

    def _conflicts(self, plugin: Plugin) -> Iterator[str]:
        """What only one plugin may do, and another does."""
        for other in self:
            if isinstance(plugin, EnforceMLPolicy) and isinstance(other, EnforceMLPolicy):
                yield from _taken("spec.mlPolicy", plugin.ml_policy_sources & other.ml_policy_sources, other)
            if isinstance(plugin, EnforcePodGroupPolicy) and isinstance(other, EnforcePodGroupPolicy):
                taken = plugin.pod_group_policy_sources & other.pod_group_policy_sources
                yield from _taken("spec.podGroupPolicy", taken, other)
            if isinstance(plugin, TrainJobStatus) and isinstance(other, TrainJobStatus):
                for condition in sorted(plugin.condition_types & other.condition_types):
                    yield f"plugin {other.name} reports condition {condition} already; disable one of the two"

    def __iter__(self) -> Iterator[Plugin]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)


def _name(plugin: Plugin) -> str:
    kind = plugin if isinstance(plugin, type) else type(plugin)
    described = f"the plugin {kind.__module__}.{kind.__qualname__}"
    if kind is plugin:
        raise ConfigurationError(f"{described} is a class; make an object of it")
    name = getattr(plugin, "name", None)
    if name is None:
        raise ConfigurationError(f'{described} has no name; add name = "..." to the class')
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigurationError(
            f"{described}: the name {name!r} cannot be used; it must consist of lower-case letters, digits and -, "
            "with a letter or digit at both ends, at most 63"
        )
    return name


def _unusable(plugin: Plugin) -> Iterator[str]:
    """Policies that no runtime can ask for, and conditions that the controller has or the API server would refuse."""
    for attribute, known in (("ml_policy_sources", _ML_POLICIES), ("pod_group_policy_sources", _POD_GROUP_POLICIES)):
        for source in sorted(getattr(plugin, attribute, frozenset()) - known):
            yield f"{attribute} names {source}, which runtimes do not have; they have {', '.join(sorted(known))}"
    for condition in sorted(getattr(plugin, "condition_types", ())):
        if condition in CORE_CONDITIONS:
            yield f"condition_types names {condition}, which the controller sets itself; choose another name"
        elif not _CONDITION_TYPE.fullmatch(condition) or len(condition) > _CONDITION_TYPE_LIMIT:
            yield f"condition_types names {condition!r}; write a CamelCase word, or one after a domain: acme.com/Ready"


def _taken(policy: str, sources: frozenset[str], other: Plugin) -> Iterator[str]:
    for source in sorted(sources):
        yield f"plugin {other.name} serves {policy}.{source} already; disable one of the two"


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
