"""Runnable group: tasks that are started and stopped together, so that a supervisor can do it group by group."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

import anyio
import anyio.abc
from anyio.abc import TaskGroup, TaskStatus

Run: TypeAlias = Callable[[], Awaitable[None]]
"""Runs until cancelled; returning early is fine, raising stops everything."""


@dataclass(frozen=True, slots=True, eq=False)
class Runnable:
    """Something that runs until it is stopped."""

    name: str
    """The name in logs and errors."""
    run: Run
    stop: Callable[[], None] | None = None
    """Asks it to end by itself, without waiting. Default: none, it is cancelled as soon as its group stops."""
    started: Run | None = None
    """Returns when it does its work; the next group waits for that. Default: none, nobody waits."""


class RunnableGroup:
    """The runnables of one group, each in a task of its own.

    Args:
        fail: called for a runnable that raised, or that was cancelled by others than this group, with its name.
    """

    def __init__(self, fail: Callable[[str, Exception], None]) -> None:
        self._fail = fail
        self._waiting: list[Runnable] = []
        self._running: dict[Runnable, anyio.CancelScope] = {}
        self._returned: dict[Runnable, anyio.Event] = {}
        self._tasks: TaskGroup | None = None
        self._started = False
        self._stopping = anyio.Event()
        self._ended = anyio.Event()

    @property
    def running(self) -> list[str]:
        """Names of what runs now."""
        return [runnable.name for runnable in self._running]

    @property
    def is_stopping(self) -> bool:
        """Whether `stop` or `cancel` has been called."""
        return self._stopping.is_set()

    def add(self, runnable: Runnable) -> None:
        """Run this with the others; at once if they have been started. Not after `stop`."""
        self._waiting.append(runnable)
        if self._started:
            self._launch(runnable)

    async def own_tasks(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Own the tasks of the group until it has been stopped and all of them have ended."""
        async with anyio.create_task_group() as self._tasks:
            task_status.started()
            await self._stopping.wait()
        self._ended.set()

    async def start(self) -> None:
        """Start what has been added, and wait until it does its work."""
        self._started = True
        runnables = tuple(self._waiting)
        for runnable in runnables:
            self._launch(runnable)
        for runnable in runnables:
            if runnable.started is not None:
                await self._wait_for_start(runnable, runnable.started)

    async def stop(self) -> None:
        """Let each runnable end by itself if it can, cancel the others, and wait until all have ended."""
        self._stopping.set()
        for runnable, scope in tuple(self._running.items()):
            if runnable.stop is None:
                scope.cancel()
            else:
                self._ask(runnable, runnable.stop, scope)
        await self._ended.wait()

    def cancel(self) -> None:
        """Cancel all runnables; those of them that clean up may still take time."""
        self._stopping.set()
        for scope in tuple(self._running.values()):
            scope.cancel()

    def _ask(self, runnable: Runnable, stop: Callable[[], None], scope: anyio.CancelScope) -> None:
        try:
            stop()
        except Exception as error:
            self._fail(runnable.name, error)
            scope.cancel()

    async def _wait_for_start(self, runnable: Runnable, started: Run) -> None:
        """Wait until it does its work, or has ended: what has nothing to do holds nobody up."""

        async def until(event: Run) -> None:
            await event()
            tasks.cancel_scope.cancel()

        returned = self._returned.get(runnable)
        if returned is None:  # while the group waited for another
            return
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(until, started)
            tasks.start_soon(until, returned.wait)

    def _launch(self, runnable: Runnable) -> None:
        assert self._tasks is not None
        scope = self._running[runnable] = anyio.CancelScope()
        self._returned[runnable] = anyio.Event()
        self._tasks.start_soon(self._guard, runnable, scope, name=runnable.name)

    async def _guard(self, runnable: Runnable, scope: anyio.CancelScope) -> None:
        try:
            with scope:
                await runnable.run()
        except Exception as error:
            self._fail(runnable.name, sole_failure(error))
        except asyncio.CancelledError:
            # Nobody but the scope above cancels it on our side: it awaited something that others have cancelled.
            self._fail(runnable.name, RuntimeError(f"{runnable.name} was cancelled from within"))
            raise
        finally:
            del self._running[runnable]
            self._returned.pop(runnable).set()


def sole_failure(error: Exception) -> Exception:
    """The single exception that task groups have wrapped, if there is only one."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        [error] = error.exceptions
    return error
