"""Event correlator: makes few stored events out of many occurrences, by the rules and numbers of client-go.

1. **Aggregation**: when a source reports the same about an object in ever new words, the tenth message and those after
   it become one event with "(combined from similar events): " before its message, until 10 minutes pass without any.
2. **Counting**: an occurrence that equals an earlier one raises the count of its event.
3. **Limit**: a source may write 25 times about an object, and once more every 5 minutes after that. What it may not
   write is counted all the same: the next write shows it.

All memory is bounded to what was used last, and namespaces share it: one with few events keeps them, however many
another one has. It lives in this process: after a restart, or when an event is forgotten, a repeat makes a new event
with count 1.
"""

from __future__ import annotations

import re
import secrets
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from trainer.kube.clock import Clock, timestamp
from trainer.kube.objects import Object, name_of, namespace_of, resource_version_of, uid_of
from trainer.kube.resource import EVENTS
from trainer.kube.rest.rate_limiter import RateLimiter

EventKind: TypeAlias = Literal["Normal", "Warning"]

SIMILAR = 10
"""So many different messages, all else being equal, and those after are combined."""
SIMILAR_WINDOW = 600.0
"""Seconds without an occurrence after which counting messages begins anew."""
BURST, REFILL = 25, 300.0
"""Writes for one source and object before the limit holds, and seconds until one more is allowed."""
REMEMBERED = 4096
"""Entries in each memory of the correlator; the least recently used of the namespace with most goes first."""

COMBINED = "(combined from similar events): "
MESSAGE_LIMIT = 1024
"""Bytes of UTF-8 (events.k8s.io refuses longer notes)."""

_NAME_LIMIT = 253
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")

_K = TypeVar("_K")
_V = TypeVar("_V")


@dataclass(frozen=True, slots=True)
class EventSource:
    """The component that reports an event."""

    component: str
    host: str
    instance: str


@dataclass(frozen=True, slots=True)
class ObjectReference:
    """The object that an event is about; its resource version does not count."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    resource_version: str = field(compare=False)
    field_path: str = ""
    """The part of the object that is meant. Default: empty, all of it."""

    @classmethod
    def of(cls, obj: Mapping[str, Any], field_path: str = "") -> ObjectReference:
        """The reference to an object, or to the part of it that `field_path` names.

        Raises:
            ValueError: it does not say its apiVersion and kind.
        """
        api_version, kind = obj.get("apiVersion"), obj.get("kind")
        if not api_version or not kind:
            raise ValueError("the object must carry apiVersion and kind")
        names = (namespace_of(obj), name_of(obj), uid_of(obj), resource_version_of(obj))
        return cls(api_version, kind, *names, field_path)


@dataclass(frozen=True, slots=True)
class Occurrence:
    """Something happened to an object."""

    source: EventSource
    regarding: ObjectReference
    type: EventKind
    reason: str
    message: str
    """The message; at most as long as `cut_message` returns it, since it is kept in memory."""


@dataclass(slots=True, eq=False)
class CountedEvent:
    """An event object: the latest of equal or combined occurrences, and how many there were."""

    name: str
    first: datetime
    last: datetime
    latest: Occurrence
    message: str = ""
    count: int = 0
    stored: int = 0
    """The count that the API server knows; 0 before the event is created."""

    @property
    def namespace(self) -> str:
        """Where it is stored: with its object, or in "default" when that is cluster-scoped."""
        return self.latest.regarding.namespace or "default"

    def body(self) -> Object:
        """The event to create."""
        about, source = self.latest.regarding, self.latest.source
        return {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {"name": self.name, "namespace": self.namespace},
            "involvedObject": {
                "apiVersion": about.api_version,
                "kind": about.kind,
                "name": about.name,
                "namespace": about.namespace,
                "uid": about.uid,
                "resourceVersion": about.resource_version,
                **({"fieldPath": about.field_path} if about.field_path else {}),
            },
            "type": self.latest.type,
            "reason": self.latest.reason,
            "source": {"component": source.component} | ({"host": source.host} if source.host else {}),
            "reportingComponent": source.component,
            "reportingInstance": source.instance,
            "firstTimestamp": timestamp(self.first),
            **self.change(),
        }

    def change(self) -> Object:
        """The patch of a stored event for its repetitions."""
        return {"message": self.message, "lastTimestamp": timestamp(self.last), "count": self.count}


@dataclass(slots=True)
class _Messages:
    """Different messages of otherwise equal occurrences, in order."""

    last_used: float
    texts: dict[str, None] = field(default_factory=dict)


class _Memory(Generic[_K, _V]):
    """Values by key; when there are too many, the namespace with most forgets its least recently used one."""

    def __init__(self) -> None:
        self._length = 0
        self._by_namespace: dict[str, OrderedDict[_K, _V]] = {}

    def get(self, namespace: str, key: _K, make: Callable[[], _V]) -> _V:
        # Keys are long: each look-up counts.
        values = self._by_namespace.get(namespace)
        if values is None:
            values = self._by_namespace[namespace] = OrderedDict()
        value = values.get(key)
        if value is not None:
            values.move_to_end(key)
            return value
        value = values[key] = make()
        self._length += 1
        if self._length > REMEMBERED:
            self._forget()
        return value

    def _forget(self) -> None:
        namespace, values = max(self._by_namespace.items(), key=lambda item: len(item[1]))
        values.popitem(last=False)
        self._length -= 1
        if not values:
            del self._by_namespace[namespace]


class EventCorrelator:
    """Decides which event an occurrence belongs to, and whether it may be written now; does no I/O."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._messages: _Memory[tuple[object, ...], _Messages] = _Memory()
        self._events: _Memory[tuple[object, ...], CountedEvent] = _Memory()
        self._allowances: _Memory[tuple[EventSource, ObjectReference], RateLimiter] = _Memory()

    def observe(self, occurrence: Occurrence) -> CountedEvent:
        """Count an occurrence; returns its event, the same one for repeats."""
        similar = (occurrence.source, occurrence.regarding, occurrence.type, occurrence.reason)
        combined = self._is_one_of_many(similar, occurrence)
        now = self._clock.now()
        event = self._events.get(
            occurrence.regarding.namespace,
            (*similar, None if combined else occurrence.message),
            lambda: CountedEvent(_event_name(occurrence.regarding.name), now, now, occurrence),
        )
        event.latest, event.last = occurrence, now
        event.message = cut_message(COMBINED + occurrence.message if combined else occurrence.message)
        event.count += 1
        return event

    def may_write(self, event: CountedEvent) -> bool:
        """Whether its source may write about its object now; each yes uses up one write."""
        about = event.latest.regarding
        allowance = self._allowances.get(
            about.namespace, (event.latest.source, about), lambda: RateLimiter(1 / REFILL, BURST, clock=self._clock)
        )
        return allowance.take()

    def _is_one_of_many(self, similar: tuple[object, ...], occurrence: Occurrence) -> bool:
        now, message = self._clock.monotonic(), occurrence.message
        known = self._messages.get(occurrence.regarding.namespace, similar, lambda: _Messages(now))
        if now - known.last_used > SIMILAR_WINDOW:
            known.texts.clear()
        known.last_used = now
        known.texts[message] = None
        if len(known.texts) < SIMILAR:
            return False
        # Messages already seen go on counting by themselves, new ones are combined.
        del known.texts[next(iter(known.texts))]
        return True


def _event_name(about: str) -> str:
    """A name that no other event has; objects such as RBAC roles may have names that events cannot."""
    token = secrets.token_hex(8)
    name = f"{about}.{token}"
    return name if len(name) <= _NAME_LIMIT and _SUBDOMAIN.fullmatch(name) else token


def cut_message(message: str) -> str:
    """The message, or as much of it as an event may have; what UTF-8 cannot express becomes a question mark."""
    encoded = message.encode(errors="replace")
    if len(encoded) > MESSAGE_LIMIT:
        encoded = encoded[: MESSAGE_LIMIT - 3].decode(errors="ignore").encode() + b"..."
    return encoded.decode()
