"""Open watches of a fake, and how their events are delivered: at once, held, doubled or not at all."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import anyio

from trainer.kube.client import EventType, WatchEvent
from trainer.kube.errors import KubeError, TransportError
from trainer.kube.resource import Resource
from trainer.kube.selection import Matcher, Selection
from trainer_kube_testing.api_semantics import statuses, watch_events
from trainer_kube_testing.api_semantics.watch_events import event_of
from trainer_kube_testing.storage import Collection, HistoryEntry, Stored


class StreamingLists(StrEnum):
    """What a server does when a watch asks for initial events (KEP-3157)."""

    SERVED = "served"
    """It sends them and marks their end."""
    REFUSED = "refused"
    """It answers 422, as with the feature gate off."""
    IGNORED = "ignored"
    """It ignores the parameter and marks no end, as one that is older than the feature."""


class Mishap(StrEnum):
    """What can happen to a watch instead of its next event."""

    CLOSE = "closed watch"
    BREAK = "broken watch"
    EXPIRE = "expired watch"
    SILENCE = "silent watch"
    DUPLICATE = "duplicate event"


@dataclass(frozen=True, slots=True)
class End:
    """Ends a watch: cleanly, or with an error."""

    error: KubeError | None = None


@dataclass(frozen=True, slots=True)
class WatchStart:
    """What the server decides when a watch is opened."""

    position: int = 0
    """Index of the first change to send."""
    initial: Sequence[WatchEvent] = ()
    error: KubeError | None = None
    """Sent by the stream instead of any event."""


@dataclass(eq=False)
class Delivery:
    """How the events of one client's watches come through."""

    next_mishap: Callable[[], Mishap | None]
    """What happens to the next event; None lets it through."""
    horizons: dict[Collection, int] = field(default_factory=dict)
    """The last resource version that watches may send, by held collection."""

    def end(self, collection: Collection) -> int:
        """Index behind the last change that may be sent."""
        if collection in self.horizons:
            return collection.position(self.horizons[collection])
        return len(collection.history)


class FakeWatch:
    """One open watch: what it has still to send, and how it ends."""

    def __init__(self, collection: Collection, selection: Selection, start: WatchStart, delivery: Delivery) -> None:
        self.collection = collection
        self.wakers = collection.listeners
        """What is called when something may be due."""
        self._selection = selection
        self._matcher = Matcher(selection)
        self._initial = deque(start.initial)
        self._error = start.error
        self._position = start.position
        self._delivery = delivery
        self._orders: deque[End | WatchEvent] = deque()
        self._woken = anyio.Event()
        self._silent = False

    def wake(self) -> None:
        """Send what has become due."""
        self._woken.set()

    def order(self, order: End | WatchEvent) -> None:
        """End, or send something else, after the events that are due."""
        self._orders.append(order)
        self.wake()

    def silence(self) -> None:
        """Send nothing from now on, like a connection whose other end is lost."""
        self._silent = True

    def held(self) -> list[int]:
        """Resource versions of the changes that it would send if its collection were not held."""
        end = self._delivery.end(self.collection)
        changes = self.collection.history[max(end, self._position) :]
        return [change.version for change in changes if self._event(change) is not None]

    async def events(self) -> AsyncGenerator[WatchEvent, None]:
        """The stream, until a test ends it.

        Raises:
            KubeError: as ordered, or because its start is impossible.
        """
        if self._error is not None:
            raise self._error
        while True:
            if self._silent:
                await anyio.sleep_forever()
            due = self._next_due()
            if due is None:
                self._woken = anyio.Event()
                await self._woken.wait()
                continue
            for each in due:
                if isinstance(each, WatchEvent):
                    yield each
                elif each.error is None:
                    return
                else:
                    raise each.error

    def _next_due(self) -> Sequence[WatchEvent | End] | None:
        """What comes of the next event or order; None while there is none."""
        if self._initial:
            return self._with_fault(self._initial.popleft())
        if self._position < self._delivery.end(self.collection):
            event = self._event(self.collection.history[self._position])
            self._position += 1
            return () if event is None else self._with_fault(event)
        if self._orders:
            return [self._orders.popleft()]
        return [End()] if self.collection.is_withdrawn else None

    def _with_fault(self, event: WatchEvent) -> Sequence[WatchEvent | End]:
        """What comes through of one event."""
        match self._delivery.next_mishap():
            case None:
                return [event]
            case Mishap.DUPLICATE:
                return [event, event]
            case Mishap.CLOSE:
                return [End()]
            case Mishap.BREAK:
                return [End(TransportError("the server closed the connection"))]
            case Mishap.EXPIRE:
                return [End(statuses.expired())]
            case Mishap.SILENCE:
                self.silence()
                return ()

    def _event(self, change: HistoryEntry) -> WatchEvent | None:
        """How a change looks to this watch, whose selection the object may have entered or left."""
        before = change.before.obj if change.before is not None else None
        event = event_of(before, change.sent.obj, self._matcher.matches, is_deletion=change.after is None)
        if event is None:
            return None
        event_type, obj = event
        state = change.sent if obj is change.sent.obj else Stored(obj)
        return WatchEvent(event_type, state.encoded(metadata_only=self._selection.metadata_only))


def bookmark(resource: Resource, version: int, *, ends_initial_events: bool = False) -> WatchEvent:
    """A bookmark as an event."""
    obj = watch_events.bookmark(resource, version, ends_initial_events=ends_initial_events)
    return WatchEvent.of(EventType.BOOKMARK, obj)
