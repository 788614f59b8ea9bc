"""When objects appear and when they are finished, as a watch tells."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import msgspec

from benchmarks.arrivals import Arrivals
from trainer.kube.client import Client, EventType, ListOptions, WatchOptions
from trainer.kube.resource import Resource
from trainer.kube.selection import Selection

TIMEOUT = 900.0
"""Seconds after which a run that does not get on is given up."""
_LONGER_THAN_A_RUN = 3600


class _Metadata(msgspec.Struct, frozen=True):
    name: str


class _Condition(msgspec.Struct, frozen=True):
    type: str
    status: str


class _Status(msgspec.Struct, frozen=True):
    conditions: list[_Condition] = []


class _Seen(msgspec.Struct, frozen=True):
    metadata: _Metadata
    status: _Status = _Status()


_decoder = msgspec.json.Decoder(_Seen)


class Sightings:
    """Moments (`time.monotonic()`), by name."""

    def __init__(self) -> None:
        self.appeared: dict[str, float] = {}
        self.ended: dict[str, float] = {}
        """Those with a condition Complete or Completed that is true."""
        self.appearances = Arrivals(TIMEOUT)
        self.ends = Arrivals(TIMEOUT)

    def note(self, raw: bytes) -> None:
        """An object is as this says."""
        now, seen = time.monotonic(), _decoder.decode(raw)
        name = seen.metadata.name
        if name not in self.appeared:
            self.appeared[name] = now
            self.appearances.step()
        if name not in self.ended and any(_is_end(condition) for condition in seen.status.conditions):
            self.ended[name] = now
            self.ends.step()


def _is_end(condition: _Condition) -> bool:
    return condition.type in ("Complete", "Completed") and condition.status == "True"


@asynccontextmanager
async def watching(client: Client, resource: Resource, namespace: str) -> AsyncIterator[Sightings]:
    """Watch the objects of a namespace while the context lasts."""
    sightings, selection = Sightings(), Selection(namespace)

    async def follow(version: str) -> None:
        options = WatchOptions(resource_version=version, timeout_seconds=_LONGER_THAN_A_RUN)
        async with client.watch(resource, selection, options) as events:
            async for event in events:
                if event.type in (EventType.ADDED, EventType.MODIFIED):
                    sightings.note(bytes(event.raw))

    page = await client.list_page(resource, selection, ListOptions())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(follow, page.resource_version)
        yield sightings
        tasks.cancel_scope.cancel()
