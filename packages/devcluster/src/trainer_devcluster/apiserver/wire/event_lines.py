"""Event lines: watch events as they are sent, encoded once for all watchers that read the same media type."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from weakref import WeakValueDictionary

KEPT_BYTES = 4 * 1024 * 1024
"""Limit in bytes of the kept lines of one media type; older ones are encoded again for a watcher that is far behind."""


class EventLines:
    """The latest lines of one media type of one resource."""

    def __init__(self) -> None:
        self._lines: dict[tuple[str, str], bytes] = {}
        self._bytes = 0

    def line(self, kind: str, resource_version: str, make: Callable[[], bytes]) -> bytes:
        """The line of an event.

        Args:
            kind: type of the event.
            resource_version: of its object; together they say what the line says.
            make: writes the line.
        """
        key = (kind, resource_version)
        found = self._lines.get(key)
        if found is not None:
            return found
        made = self._lines[key] = make()
        self._bytes += len(made)
        while self._bytes > KEPT_BYTES:
            self._bytes -= len(self._lines.pop(next(iter(self._lines))))
        return made


class MediaTypes:
    """The lines of every media type that somebody watches; they go with the last of its watchers."""

    def __init__(self) -> None:
        self._lines: WeakValueDictionary[Hashable, EventLines] = WeakValueDictionary()

    def lines(self, media_type: Hashable) -> EventLines:
        """The lines that all watchers of a media type share; hold on to them while watching."""
        found = self._lines.get(media_type)
        if found is None:
            found = self._lines[media_type] = EventLines()
        return found
