"""Memory: the bytes that the dashboard holds for its users, bounded for each party and in all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

LIMIT: Final = 128 << 20
"""Bytes of all parties: a quarter of what the shipped Deployment may take."""
OF_ONE: Final = 32 << 20
"""Bytes of one party: 64 pages, or 20 that follow 16 logs each."""


@dataclass(eq=False, slots=True)
class Holding:
    """Bytes that one party makes the process hold in one place, such as the lines that wait for a page."""

    party: str
    shrink: Callable[[], None] | None
    """Holds less, such as fewer lines, and says so by `resize`. None: it cannot; it ends."""
    end: Callable[[], None]
    """Ends what the bytes are for."""
    size: int = 0


@dataclass(slots=True)
class Memory:
    """What is held for whom. Where a bound is exceeded, the largest holding of the largest party gives way.

    A holding that can shrink does so before any ends.
    """

    limit: int = LIMIT
    of_one: int = OF_ONE
    _parties: dict[str, set[Holding]] = field(default_factory=dict, init=False)
    _used: dict[str, int] = field(default_factory=dict, init=False)

    @property
    def used(self) -> int:
        """Bytes of all parties."""
        return sum(self._used.values())

    def used_by(self, party: str) -> int:
        """Bytes of one party."""
        return self._used.get(party, 0)

    def hold(
        self, party: str, size: int, *, end: Callable[[], None], shrink: Callable[[], None] | None = None
    ) -> Holding:
        """Begin to hold some bytes; others may give way for them, and they themselves at once."""
        holding = Holding(party, shrink, end)
        self._parties.setdefault(party, set()).add(holding)
        self._used.setdefault(party, 0)
        self.resize(holding, size)
        return holding

    def resize(self, holding: Holding, size: int) -> None:
        """A holding has another size now; nothing happens to one that was released."""
        if holding not in self._parties.get(holding.party, ()):
            return
        grows = size > holding.size
        self._used[holding.party] += size - holding.size
        holding.size = size
        if grows:
            self._make_room(holding.party)

    def release(self, holding: Holding) -> None:
        """Nothing is held there any more."""
        holdings = self._parties.get(holding.party)
        if holdings is None or holding not in holdings:
            return
        holdings.remove(holding)
        self._used[holding.party] -= holding.size
        if not holdings:
            del self._parties[holding.party], self._used[holding.party]

    def _make_room(self, party: str) -> None:
        for candidate in self._crowded(party):
            largest = max(self._parties[candidate], key=lambda each: (each.shrink is not None and each.size, each.size))
            before = largest.size
            if largest.shrink is not None:
                largest.shrink()
            if largest.size >= before:
                largest = max(self._parties[candidate], key=lambda each: each.size)
                self.release(largest)
                largest.end()

    def _crowded(self, party: str) -> Iterator[str]:
        """The party that gives way next, until all bounds are kept."""
        # Nobody else could be harmed by a user without a name.
        while party and self.used_by(party) > self.of_one:
            yield party
        while self._used and self.used > self.limit:
            yield max(self._used, key=self.used_by)
