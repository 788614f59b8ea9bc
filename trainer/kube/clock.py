"""Time as a dependency, so that nothing that waits has to be tested by waiting."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from types import TracebackType
from typing import Protocol

import anyio


class Clock(Protocol):
    """The time as the machinery reads it, which tests replace."""

    def now(self) -> datetime:
        """Wall-clock time with time zone UTC, for timestamps in objects."""

    def monotonic(self) -> float:
        """Seconds that never go back, for durations and deadlines."""

    async def sleep(self, seconds: float) -> None:
        """Wait; returns at once (after a checkpoint) for zero or less."""


class SystemClock:
    """The clock of the machine."""

    def now(self) -> datetime:
        """Wall-clock time in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds since an arbitrary point, those included during which the machine was suspended.

        A process that wakes up must know that leases have expired and watches have gone stale meanwhile.
        """
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    async def sleep(self, seconds: float) -> None:
        """Wait on the event loop."""
        await anyio.sleep(max(seconds, 0))


def timestamp(moment: datetime) -> str:
    """RFC 3339 in UTC with whole seconds, as metav1.Time is written."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_timestamp(text: str) -> datetime:
    """A metav1.Time or MicroTime as an aware datetime; digits beyond microseconds are dropped.

    Raises:
        ValueError: the text is not RFC 3339.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"timestamp {text!r} has no time zone: write it as 2006-01-02T15:04:05Z")
    return moment


def move_on_after(clock: Clock, seconds: float | None) -> AbstractAsyncContextManager[anyio.CancelScope]:
    """Cancel the body when it takes longer by this clock; afterwards `scope.cancelled_caught` tells whether it did.

    With the clock of the machine this is `anyio.move_on_after`. None sets no limit.
    """
    # Exactly this class: a subclass may sleep otherwise.
    if type(clock) is SystemClock or seconds is None:
        return _OnEventLoop(seconds)
    return _by(clock, seconds)


class _OnEventLoop:
    """The deadline of the event loop; a class, since entering an asynchronous generator takes as long as the limit."""

    __slots__ = ("_scope",)

    def __init__(self, seconds: float | None) -> None:
        self._scope = anyio.move_on_after(seconds)

    async def __aenter__(self) -> anyio.CancelScope:
        return self._scope.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        return self._scope.__exit__(kind, error, traceback)


@asynccontextmanager
async def _by(clock: Clock, seconds: float) -> AsyncIterator[anyio.CancelScope]:
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        with anyio.CancelScope() as scope:
            tasks.start_soon(_cancel_after, clock, seconds, scope)
            try:
                yield scope
            except Exception as error:
                # Raised again outside, where the task group does not wrap it.
                failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


async def _cancel_after(clock: Clock, seconds: float, scope: anyio.CancelScope) -> None:
    await clock.sleep(seconds)
    scope.cancel()
