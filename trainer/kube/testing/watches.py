"""Open watches of a fake, and how their events are delivered: at once, held, doubled or out of order."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

import anyio

from trainer.kube.api_semantics import statuses, watch_events
from trainer.kube.api_semantics.watch_events import event_of
from trainer.kube.client import EventType, WatchEvent
from trainer.kube.errors import KubeError, TransportError
from trainer.kube.selection import Matcher
from trainer.kube.testing.storage import Stored

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence
    from random import Random

    from trainer.kube.objects import ObjectKey
    from trainer.kube.resource import Resource
    from trainer.kube.selection import Selection
    from trainer.kube.testing.storage import Change, Collection


class StreamingLists(StrEnum):
    """What a server does when a watch asks for initial events (KEP-3157)."""

    SERVED = "served"
    """It sends them and marks their end."""
    REFUSED = "refused"
    """It answers 422, as with the feature gate off."""
    IGNORED = "ignored"
    """It takes no notice of the parameter and marks no end, as one that is older than the feature."""


class Mishap(StrEnum):
    """What can happen to a watch instead of its next event."""

    CLOSE = "closed watch"
    BREAK = "broken watch"
    EXPIRE = "expired watch"
    SILENCE = "silent watch"
    DUPLICATE = "duplicate event"


class Fate(Protocol):
    """Decides about mishaps."""

    def next_mishap(self) -> Mishap | None:
        """What happens to the next event; None lets it through."""


@dataclass(frozen=True, slots=True)
class End:
    """Ends a watch: cleanly, or with an error."""

    error: KubeError | None = None


@dataclass(frozen=True, slots=True)
class Silence:
    """Ends what a watch says, but not the watch."""


@dataclass(frozen=True, slots=True)
class WatchStart:
    """What the server decides when a watch is opened."""

    position: int = 0
    """Index of the first change to send."""
    initial: Sequence[WatchEvent] = ()
    error: KubeError | None = None
    """Told by the stream instead of any event."""


@dataclass(eq=False)
class Delivery:
    """How the events of one client's watches come through."""

    horizons: dict[Collection, int] = field(default_factory=dict)
    """Of held collections: the last resource version that watches may tell."""
    shuffling: Random | None = None
    fate: Fate | None = None

    def next_mishap(self) -> Mishap | None:
        """What happens to the next event."""
        return self.fate.next_mishap() if self.fate is not None else None

    def end(self, collection: Collection) -> int:
        """Index behind the last change that may be sent."""
        if collection in self.horizons:
            return collection.position(self.horizons[collection])
        return len(collection.history)


class Watch:
    """One open watch: what it has still to send, and how it ends."""

    def __init__(self, collection: Collection, selection: Selection, start: WatchStart, delivery: Delivery) -> None:
        self.collection = collection
        self._selection = selection
        self._matcher = Matcher(selection)
        self._initial = start.initial
        self._error = start.error
        self._position = start.position
        self._delivery = delivery
        self._orders: deque[End | Silence | WatchEvent] = deque()
        self._woken = anyio.Event()
        self._silent = False
        self._is_cut = False

    def wake(self) -> None:
        """Send what has become due."""
        self._woken.set()

    def order(self, order: End | Silence | WatchEvent) -> None:
        """End, or tell something else, after the events that are due."""
        self._orders.append(order)
        self.wake()

    def silence(self) -> None:
        """Tell nothing from now on, like a connection whose other end is lost."""
        self._silent = True

    def held(self) -> list[int]:
        """Resource versions of the changes that it would tell if its collection were not held."""
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
        initial, self._initial = self._initial, ()
        for initial_event in self._in_delivery_order(initial):
            for event in self._suffered(initial_event, in_batch=False):
                await self._stay_silent_if_silenced()
                yield event
        while True:
            await self._stay_silent_if_silenced()
            due = self._due_events()
            for event in due:
                yield event
            if due or self._is_behind():
                continue
            if not self._orders and self.collection.is_withdrawn:
                return
            if not self._orders:
                await self._woken.wait()
                self._woken = anyio.Event()
                continue
            order = self._orders.popleft()
            if isinstance(order, WatchEvent):
                yield order
            elif isinstance(order, Silence):
                self.silence()
            elif order.error is None:
                return
            else:
                raise order.error

    def _is_behind(self) -> bool:
        return not self._is_cut and self._position < self._delivery.end(self.collection)

    def _due_events(self) -> Sequence[WatchEvent]:
        """What comes of the next change, or of all of a batch that is to be shuffled."""
        if not self._is_behind():
            return ()
        shuffling = self._delivery.shuffling
        start = self._position
        self._position = start + 1 if shuffling is None else self._delivery.end(self.collection)
        batch: Sequence[Change] = self.collection.history[start : self._position]
        if shuffling is not None:
            batch = _shuffled(batch, shuffling)
        in_batch = shuffling is not None
        return [event for change in batch for event in self._suffered(self._event(change), in_batch=in_batch)]

    def _in_delivery_order(self, initial: Sequence[WatchEvent]) -> Sequence[WatchEvent]:
        if self._delivery.shuffling is None:
            return initial
        events = [event for event in initial if event.type is not EventType.BOOKMARK]
        marks = initial[len(events) :]
        self._delivery.shuffling.shuffle(events)
        return [*events, *marks]

    def _suffered(self, event: WatchEvent | None, *, in_batch: bool) -> Sequence[WatchEvent]:
        """What comes through of one event."""
        if event is None or self._is_cut:
            return ()
        mishap = self._delivery.next_mishap()
        if mishap is None:
            return [event]
        if mishap is Mishap.DUPLICATE:
            return [event, event]
        order = Silence() if mishap is Mishap.SILENCE else End(_error_of(mishap))
        if in_batch:
            # Behind the batch: a client goes on from what it saw last, and would miss what had a lower version.
            self._orders.append(order)
            return [event]
        self._orders.appendleft(order)
        self._is_cut = True
        return ()

    def _event(self, change: Change) -> WatchEvent | None:
        """How a change looks to this watch, whose selection the object may have entered or left."""
        before = change.before.obj if change.before is not None else None
        event = event_of(before, change.sent.obj, self._matcher.matches, is_deletion=change.after is None)
        if event is None:
            return None
        event_type, obj = event
        state = change.sent if obj is change.sent.obj else Stored(obj)
        return WatchEvent(event_type, state.encoded(metadata_only=self._selection.metadata_only))

    async def _stay_silent_if_silenced(self) -> None:
        if self._silent:
            await anyio.sleep_forever()


def bookmark(resource: Resource, version: int, *, ends_initial_events: bool = False) -> WatchEvent:
    """A bookmark as an event."""
    obj = watch_events.bookmark(resource, version, ends_initial_events=ends_initial_events)
    return WatchEvent.of(EventType.BOOKMARK, obj)


def _error_of(mishap: Mishap) -> KubeError | None:
    match mishap:
        case Mishap.BREAK:
            return TransportError("the server closed the connection")
        case Mishap.EXPIRE:
            return statuses.expired()
        case _:
            return None


def _shuffled(batch: Sequence[Change], random: Random) -> Sequence[Change]:
    """The changes in another order, those of one object still in their own."""
    by_key: dict[ObjectKey, deque[Change]] = {}
    for change in batch:
        by_key.setdefault(change.key, deque()).append(change)
    keys = [change.key for change in batch]
    random.shuffle(keys)
    return [by_key[key].popleft() for key in keys]
