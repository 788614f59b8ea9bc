"""Steering the stand-in from a trial: what it serves, when things change, what goes wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from typing import Any

import aiohttp


@dataclass(frozen=True, slots=True)
class Reset:
    """Serve another collection from now on."""

    resource: str
    """Plural name."""
    objects: int
    visible: int | None = None
    """How many of them exist at first. Default: all."""
    streams_lists: bool = False
    """Whether `sendInitialEvents` is served (WatchList, on in current Kubernetes). Default: refused with 422."""
    ignores_limit_at_zero: bool = False
    """Whether a list at resource version "0" comes whole, as from the watch cache. Default: it comes in pages."""


@dataclass(frozen=True, slots=True)
class Emission:
    """Change one object after the other."""

    events: int
    per_second: float = 0
    """Default 0: as fast as the watches take them."""
    adds: bool = False
    """Let objects appear that were not visible. Default: change those that are, in turn."""


@dataclass(frozen=True, slots=True)
class Disturbance:
    """End all watches and change the last object while none is open."""

    is_orderly: bool = False
    """End them as a server does after timeoutSeconds. Default: cut the connections."""
    compacts: bool = False
    """Forget the history too, so that watches from an earlier version get 410. Default: it stays."""


@dataclass(frozen=True, slots=True)
class Disturbed:
    """What a disturbance did."""

    version: int
    """Resource version of the change that was made while no watch was open."""
    moment: float
    """`time.monotonic()` of the disturbance."""


class Control:
    """The steering endpoints of a running stand-in."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self.url = url
        self._session = session

    async def reset(self, reset: Reset) -> None:
        """Serve these objects; watches of the earlier ones end."""
        await self._post("reset", asdict(reset))

    async def emit(self, emission: Emission) -> int:
        """Change objects; returns the newest resource version once all changes are on their way."""
        answer = await self._post("emit", asdict(emission))
        return int(answer["version"])

    async def disturb(self, disturbance: Disturbance) -> Disturbed:
        """End all watches."""
        return Disturbed(**await self._post("disturb", asdict(disturbance)))

    async def wait_for_watch(self) -> None:
        """Wait until a watch is open and has sent its initial events."""
        async with self._session.get(f"{self.url}/benchmark/watched") as response:
            response.raise_for_status()

    async def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        async with self._session.post(f"{self.url}/benchmark/{path}", json=body) as response:
            response.raise_for_status()
            answer: dict[str, Any] = await response.json()
            return answer


@asynccontextmanager
async def control(url: str) -> AsyncIterator[Control]:
    """The control of the stand-in at this base URL."""
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as session:
        yield Control(url, session)
