"""Fair queue: events that wait to be written, shared by the namespaces that they are about.

Namespaces take turns, so that an event waits for one event of each other namespace and for no flood. A full queue drops
the latest event of the namespace that has most: one with few events loses none, whatever the others do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainer.kube.events.correlator import CountedEvent


class FairQueue:
    """Holds each event once.

    Args:
        size: events that may wait.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._length = 0
        self._lines: dict[str, dict[CountedEvent, None]] = {}
        """By namespace, the one whose turn it is first."""

    def __len__(self) -> int:
        return self._length

    def __contains__(self, event: CountedEvent) -> bool:
        return event in self._lines.get(_owner(event), ())

    def put(self, event: CountedEvent) -> CountedEvent | None:
        """Add an event to the end of its namespace's line; returns the one that has to go for it, itself perhaps."""
        line = self._lines.setdefault(_owner(event), {})
        line[event] = None
        self._length += 1
        if self._length <= self._size:
            return None
        longest = max(self._lines.values(), key=len)
        dropped = event if len(longest) == len(line) else next(reversed(longest))
        self._remove(dropped)
        return dropped

    def take(self) -> CountedEvent:
        """Remove the first event of the namespace whose turn it is.

        Raises:
            StopIteration: there is none.
        """
        owner = next(iter(self._lines))
        event = next(iter(self._lines[owner]))
        self._remove(event)
        if owner in self._lines:
            self._lines[owner] = self._lines.pop(owner)
        return event

    def _remove(self, event: CountedEvent) -> None:
        owner = _owner(event)
        del self._lines[owner][event]
        self._length -= 1
        if not self._lines[owner]:
            del self._lines[owner]


def _owner(event: CountedEvent) -> str:
    """Namespace of the object, which is empty for what has none."""
    return event.latest.regarding.namespace
