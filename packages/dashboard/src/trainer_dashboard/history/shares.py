"""Shares: a bounded number of places for work that lasts, which namespaces share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio


class _Place:
    def __init__(self) -> None:
        self.scope = anyio.CancelScope()
        self.is_given = anyio.Event()
        self.is_lost = False


class Shares:
    """Gives places to the namespaces that have fewest.

    Where all are taken, and a namespace waits that would still have fewer with one more than another one has, this one
    loses its oldest: those that do nothing for hours keep nobody else from theirs.

    Args:
        places: that there are.
    """

    def __init__(self, places: int) -> None:
        self._places = places
        self._taken = 0
        self._held: dict[str, dict[_Place, None]] = {}
        self._waiting: dict[str, dict[_Place, None]] = {}

    async def run(self, namespace: str, work: Callable[[], Awaitable[None]]) -> None:
        """Do work in a place; work that loses its place is cancelled, and called again when it has another one."""
        while True:
            place = _Place()
            self._waiting.setdefault(namespace, {})[place] = None
            self._give()
            try:
                await place.is_given.wait()
                with place.scope:
                    await work()
            finally:
                self._give_back(namespace, place)
            if not place.is_lost:
                return

    def _give(self) -> None:
        while self._waiting:
            namespace = min(self._waiting, key=self._number)
            if self._taken >= self._places and not self._take_from_most(self._number(namespace) + 1):
                return
            place = next(iter(self._waiting[namespace]))
            _remove(self._waiting, namespace, place)
            self._held.setdefault(namespace, {})[place] = None
            self._taken += 1
            place.is_given.set()

    def _take_from_most(self, least: int) -> bool:
        """Whether a namespace had more than this number, and has lost a place."""
        namespace = max(self._held, key=self._number)
        if self._number(namespace) <= least:
            return False
        place = next(iter(self._held[namespace]))
        _remove(self._held, namespace, place)
        self._taken -= 1
        place.is_lost = True
        place.scope.cancel()
        return True

    def _give_back(self, namespace: str, place: _Place) -> None:
        if place in self._held.get(namespace, {}):
            _remove(self._held, namespace, place)
            self._taken -= 1
            self._give()
        elif place in self._waiting.get(namespace, {}):
            _remove(self._waiting, namespace, place)

    def _number(self, namespace: str) -> int:
        return len(self._held.get(namespace, ()))


def _remove(places: dict[str, dict[_Place, None]], namespace: str, place: _Place) -> None:
    del places[namespace][place]
    if not places[namespace]:
        del places[namespace]
