"""Pages of a dashboard that somebody has open: streams that are read, left and opened again."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Final

import aiohttp
import anyio

from benchmarks.soaking.trainings import NAMESPACE_NAMES, Trainings

_STAYS: Final = {"list": 60.0, "training": 5.0}
"""Seconds for which a page is open."""
_PAUSE: Final = 1.0
_BLOCK: Final = 2**16
_OUTAGE: Final = frozenset({502, 503})
"""What the dashboard answers while it does not reach the API server."""


class Pages:
    """Readers of one dashboard."""

    def __init__(self, address: str, tokens: list[str], trainings: Trainings) -> None:
        self._address, self._tokens, self._trainings = address, tokens, trainings
        self.opened: Counter[str] = Counter()
        """How often each kind of page was opened."""
        self.received = 0
        """Bytes."""
        self.interrupted: list[tuple[datetime, str]] = []
        """When which pages ended as they do in an outage."""
        self.refused: Counter[str] = Counter()
        """Pages that ended otherwise, and not by being left, by their kind and why."""

    async def run(self) -> None:
        """Half of them look at lists, the others at one training after another, and at the history, until cancelled."""
        async with anyio.create_task_group() as tasks:
            for number, token in enumerate(self._tokens):
                tasks.start_soon(self._look_at_list if number % 2 == 0 else self._look_at_trainings, token, number)

    async def _look_at_list(self, token: str, number: int) -> None:
        await anyio.sleep(number * _PAUSE)
        while True:
            await self._read("list", "/api/trainjobs", token, _STAYS["list"])
            await anyio.sleep(_PAUSE)

    async def _look_at_trainings(self, token: str, number: int) -> None:
        while True:
            await anyio.sleep(_PAUSE)
            shown = self._trainings.shown
            if not shown:
                continue
            namespace, name = shown[-1 - number % len(shown)]
            await self._read("training", f"/api/trainjobs/{namespace}/{name}", token, _STAYS["training"])
            await self._read("logs", f"/api/logs/{namespace}?source={name}-node-0-0/node", token, _PAUSE)
            await self._read("history", f"/api/history?namespace={NAMESPACE_NAMES[0]}", token, _PAUSE)

    async def _read(self, kind: str, path: str, token: str, seconds: float) -> None:
        """Read an answer to its end, or for so long."""
        headers = {"Authorization": f"Bearer {token}"}
        with anyio.move_on_after(seconds):
            try:
                async with (
                    aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as session,
                    session.get(f"{self._address}{path}", headers=headers) as answer,
                ):
                    self.opened[kind] += 1
                    if answer.status in _OUTAGE:
                        self.interrupted.append((datetime.now(UTC), f"{kind}: {answer.status}"))
                    elif not answer.ok:
                        self.refused[f"{kind}: {answer.status}"] += 1
                    while block := await answer.content.read(_BLOCK):
                        self.received += len(block)
            except aiohttp.ClientError as error:
                self.refused[f"{kind}: {type(error).__name__}"] += 1
