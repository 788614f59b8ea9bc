"""Turns: work in threads, of which few is done at once, and of each party one piece at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import anyio
import anyio.to_thread

_T = TypeVar("_T")


@dataclass(eq=False, slots=True)
class _Work(Generic[_T]):
    """A call that has not been made, or has ended."""

    call: Callable[[], _T]
    done: anyio.Event = field(default_factory=anyio.Event)
    value: _T | None = None
    error: Exception | None = None


class Turns:
    """Makes calls in threads while `run` does.

    A thread cannot be stopped. So its turn lasts until its call has ended, even where whoever waits for it has gone; a
    call that has not begun by then is not made.

    Args:
        at_once: calls that are made at the same time.
    """

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._waiting: dict[str, deque[_Work[object]]] = {}
        """By party; the one that waits for longest is first."""
        self._busy: set[str] = set()
        self._changed = anyio.Event()

    async def run(self) -> None:
        """Make calls until cancelled."""
        limiter = anyio.CapacityLimiter(self._at_once)
        async with anyio.create_task_group() as tasks:
            for _ in range(self._at_once):
                tasks.start_soon(self._work, limiter)

    async def call(self, party: str, function: Callable[[], _T]) -> _T:
        """The result of a function, called in a thread when it is the turn of this party.

        Raises:
            Exception: of the function.
        """
        work: _Work[_T] = _Work(function)
        queue = self._waiting.setdefault(party, deque())
        queue.append(work)  # type: ignore[arg-type] # each gets its own value back
        self._notify()
        try:
            await work.done.wait()
        finally:
            if work in queue:
                queue.remove(work)  # type: ignore[arg-type]
        if work.error is not None:
            raise work.error
        return work.value  # type: ignore[return-value]

    async def _work(self, limiter: anyio.CapacityLimiter) -> None:
        while True:
            await self._turn(limiter)

    async def _turn(self, limiter: anyio.CapacityLimiter) -> None:
        """Wait for a call and make it; what it has returned is not kept until the next one."""
        party, work = await self._next()
        self._busy.add(party)
        try:
            work.value = await anyio.to_thread.run_sync(work.call, limiter=limiter)
        except Exception as error:
            work.error = error
        finally:
            self._busy.remove(party)
            work.done.set()
            self._notify()

    async def _next(self) -> tuple[str, _Work[object]]:
        while True:
            for party, queue in list(self._waiting.items()):
                if not queue:
                    del self._waiting[party]
                elif party not in self._busy:
                    # Behind all others that wait.
                    self._waiting[party] = self._waiting.pop(party)
                    return party, queue.popleft()
            if self._changed.is_set():
                self._changed = anyio.Event()
            await self._changed.wait()

    def _notify(self) -> None:
        self._changed.set()
