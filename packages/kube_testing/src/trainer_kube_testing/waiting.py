"""Waiting for what other tasks do, without sleeping."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import PurePath
from typing import Any, Generic, TypeVar

import anyio
import anyio.lowlevel

from trainer_kube_testing.clock import ManualClock, settle

_T = TypeVar("_T")


async def eventually(
    condition: Callable[[], _T], *, within: float = 10.0, clock: ManualClock | None = None, what: str = ""
) -> _T:
    """Wait until a condition holds, and return its answer.

        pods = await eventually(lambda: client.objects(PODS), clock=clock, within=60)

    With a `ManualClock`, time moves from one sleeper to the next whenever all tasks wait, and the failure comes as soon
    as nobody is left whom time could wake. Without one, other tasks get turns until so much real time has passed, which
    also suits sockets, threads and processes.

    Args:
        condition: holds when its answer is true; an `AssertionError` means that it does not, and says why.
        within: seconds, of the clock if there is one.
        clock: the clock of those who are waited for. Default: none, real time.
        what: what is waited for, for the message. Default: name and place of the condition.

    Raises:
        AssertionError: it never held; the message says what was waited for and how it looked at the end.
    """
    attempt = _Attempt(condition)
    if clock is None:
        with anyio.move_on_after(within):
            while not attempt.holds():
                await anyio.lowlevel.checkpoint()
            return attempt.answer
        raise attempt.failure(what, f"within {within:g} s")
    deadline = clock.monotonic() + within
    await settle()
    while not attempt.holds():
        sleeping = clock.sleeping
        if not sleeping:
            raise attempt.failure(what, "and nobody sleeps, so time would change nothing")
        if clock.monotonic() + sleeping[0] > deadline:
            raise attempt.failure(what, f"within {within:g} s")
        await clock.advance_to_next()
    return attempt.answer


@asynccontextmanager
async def no_stray_tasks() -> AsyncIterator[None]:
    """Fail if tasks that were started within the context still run after it; they are cancelled then.

    Raises:
        AssertionError: with the name of each such task and where it waits.
    """
    before = asyncio.all_tasks()
    yield
    await settle()
    stray = sorted(asyncio.all_tasks() - before, key=asyncio.Task.get_name)
    for task in stray:
        task.cancel()
    if stray:
        raise AssertionError(f"{len(stray)} tasks still run: {'; '.join(map(_describe, stray))}")


class _Attempt(Generic[_T]):
    """Asks a condition, and remembers what it said last."""

    answer: _T

    def __init__(self, condition: Callable[[], _T]) -> None:
        self._condition = condition
        self._error: AssertionError | None = None

    def holds(self) -> bool:
        self._error = None
        try:
            self.answer = self._condition()
        except AssertionError as error:
            self._error = error
            return False
        return bool(self.answer)

    def failure(self, what: str, limit: str) -> AssertionError:
        seen = str(self._error) if self._error is not None else f"it was {self.answer!r}"
        failure = AssertionError(f"{what or _place(self._condition)} did not hold {limit}: {seen}")
        failure.__cause__ = self._error
        return failure


def _place(condition: Callable[[], Any]) -> str:
    name = getattr(condition, "__qualname__", repr(condition))
    code = getattr(condition, "__code__", None)
    return f"{name} ({PurePath(code.co_filename).name}:{code.co_firstlineno})" if code is not None else name


def _describe(task: asyncio.Task[Any]) -> str:
    stack = task.get_stack(limit=1)
    place = f" at {PurePath(stack[0].f_code.co_filename).name}:{stack[0].f_lineno}" if stack else ""
    return f"{task.get_name()} ({getattr(task.get_coro(), '__qualname__', task.get_coro())}{place})"
