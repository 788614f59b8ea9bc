"""Verdicts: what the API server has decided, remembered for a while and within a bound."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Generic, TypeVar

import anyio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable

    from trainer.kube.clock import Clock

_T = TypeVar("_T")


class Verdicts(Generic[_T]):
    """Answers by question; those who ask the same at the same time wait for one answer.

    Args:
        clock: for the age of answers.
        capacity: answers that are kept; beyond it, those go that have been asked for the longest ago.
        lifetime: seconds for which an answer is good.
        concurrency: questions that are put at a time; others wait.
    """

    def __init__(
        self, clock: Clock, *, capacity: int, lifetime: Callable[[_T], float], concurrency: anyio.CapacityLimiter
    ) -> None:
        self._clock = clock
        self._capacity = capacity
        self._lifetime = lifetime
        self._concurrency = concurrency
        self._known: OrderedDict[Hashable, tuple[_T, float]] = OrderedDict()
        self._asking: dict[Hashable, anyio.Lock] = {}

    async def of(self, question: Hashable, ask: Callable[[], Awaitable[_T]]) -> _T:
        """The answer that is known, or what `ask` returns; what it raises is not remembered."""
        lock = self._asking.setdefault(question, anyio.Lock())
        try:
            async with lock:
                if (known := self._recall(question)) is not None:
                    return known[0]
                async with self._concurrency:
                    answer = await ask()
                self._remember(question, answer)
                return answer
        finally:
            if not lock.statistics().tasks_waiting and not lock.locked():
                self._asking.pop(question, None)

    def _recall(self, question: Hashable) -> tuple[_T, float] | None:
        known = self._known.get(question)
        if known is None:
            return None
        if known[1] <= self._clock.monotonic():
            del self._known[question]
            return None
        self._known.move_to_end(question)
        return known

    def _remember(self, question: Hashable, answer: _T) -> None:
        self._known[question] = answer, self._clock.monotonic() + self._lifetime(answer)
        self._known.move_to_end(question)
        while len(self._known) > self._capacity:
            self._known.popitem(last=False)
