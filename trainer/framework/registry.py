"""The set of plugins of a process."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from trainer.framework.extension_points import Plugin


class Registry:
    """Plugins, at most one of each type and name."""

    def __init__(self, plugins: Iterable[Plugin] = ()) -> None:
        self._by_type: dict[type[Plugin], Plugin] = {}
        for plugin in plugins:
            self.register(plugin)

    def register(self, plugin: Plugin) -> None:
        """Add a plugin.

        Raises:
            ValueError: its type or name is registered already.
        """
        if type(plugin) in self._by_type:
            raise ValueError(f"the plugin {plugin.name} is registered twice")
        if any(plugin.name == other.name for other in self):
            raise ValueError(f"there are two plugins called {plugin.name}; rename one of them")
        self._by_type[type(plugin)] = plugin

    def __iter__(self) -> Iterator[Plugin]:
        return iter(self._by_type.values())

    def __len__(self) -> int:
        return len(self._by_type)
