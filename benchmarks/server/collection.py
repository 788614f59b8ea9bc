"""One resource of the stand-in: its objects, its resource versions, and the history that watches read."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from benchmarks.server.objects import CannedObject, can, config_map, pod
from trainer.kube import Object

FIRST_VERSION = 1_000_000

INITIAL_EVENTS_END = b'"annotations":{"k8s.io/initial-events-end":"true"},'
"""What marks the bookmark at the end of a streamed list (KEP-3157)."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A resource that can be served."""

    plural: str
    name: str
    build: Callable[[int], Object]
    """Makes the object with this number."""


KINDS = (Kind("pods", "Pod", pod), Kind("configmaps", "ConfigMap", config_map))


class Collection:
    """Objects numbered from 0, of which those below `visible` exist; each change gets the next resource version."""

    def __init__(self, kind: Kind, total: int, visible: int) -> None:
        self.kind = kind
        self.version = FIRST_VERSION + total
        self.visible = visible
        self._objects = [_canned(kind, number) for number in range(total)]
        self._versions = [FIRST_VERSION + number for number in range(total)]
        self._moment = time.monotonic_ns()
        self._compacted = self.version
        self._history: list[bytes] = []
        self._changed = asyncio.Event()

    def items(self, first: int, limit: int) -> bytes:
        """Items of a list, separated by commas; limit 0 means all that follow."""
        last = min(first + limit, self.visible) if limit else self.visible
        return b",".join(self._encode(number) for number in range(first, last))

    def initial_events(self) -> Iterator[bytes]:
        """What a watch sends first that starts at "any" or with `sendInitialEvents`."""
        for number in range(self.visible):
            yield self._event(b"ADDED", number)

    def bookmark(self, annotations: bytes = b"") -> bytes:
        """A BOOKMARK event for the present version."""
        return (
            b'{"type":"BOOKMARK","object":{"kind":"%b","apiVersion":"v1","metadata":{%b"resourceVersion":"%d"}}}\n'
            % (self.kind.name.encode(), annotations, self.version)
        )

    def is_compacted(self, version: int) -> bool:
        """Whether a watch cannot start there any more."""
        return version < self._compacted

    def since(self, version: int, at_most: int) -> list[bytes]:
        """The events after a version."""
        first = version - self._compacted
        return self._history[first : first + at_most]

    async def wait_for_change(self) -> None:
        """Wait until something has happened after the call."""
        await self._changed.wait()

    def wake(self) -> None:
        """Wake everybody who waits for a change."""
        self._changed.set()
        self._changed = asyncio.Event()

    def update(self, number: int) -> int:
        """Change one object and return its new resource version."""
        return self._record(b"MODIFIED", number % self.visible)

    def add(self) -> int:
        """Let the next object appear and return its resource version."""
        self.visible += 1
        return self._record(b"ADDED", self.visible - 1)

    def compact(self) -> None:
        """Forget the history, so that watches from earlier versions get 410."""
        self.version += 1
        self._history.clear()
        self._compacted = self.version

    def _record(self, event: bytes, number: int) -> int:
        self.version += 1
        self._versions[number] = self.version
        self._moment = time.monotonic_ns()
        self._history.append(self._event(event, number))
        self.wake()
        return self.version

    def _encode(self, number: int) -> bytes:
        return self._objects[number].encode(self._versions[number], self._moment)

    def _event(self, event: bytes, number: int) -> bytes:
        return b'{"type":"%b","object":{"kind":"%b","apiVersion":"v1",%b}\n' % (
            event,
            self.kind.name.encode(),
            self._encode(number)[1:],
        )


@cache
def _canned(kind: Kind, number: int) -> CannedObject:
    return can(number, kind.build)
