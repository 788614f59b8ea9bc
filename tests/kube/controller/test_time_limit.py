"""Time limit."""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING

import anyio
import pytest

from trainer.kube.controller.time_limit import TimeLimit
from trainer.kube.testing import ManualClock, settle

if TYPE_CHECKING:
    from tests.kube.conftest import Background


@pytest.fixture
async def time_limit(clock: ManualClock, background: Background) -> TimeLimit:
    limit = TimeLimit(clock, 10)
    background(limit.run())
    return limit


async def test_each_piece_of_work_has_its_own_time(time_limit: TimeLimit, clock: ManualClock) -> None:
    """What takes too long is cancelled when its own time is over, and nothing else is."""
    ends: dict[str, tuple[float, bool]] = {}

    async def work(name: str, seconds: float) -> None:
        with time_limit.limit() as scope:
            await clock.sleep(seconds)
        ends[name] = (clock.monotonic(), scope.cancelled_caught)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(work, "first", 20)
        tasks.start_soon(work, "quick", 1)
        await clock.advance(4)
        tasks.start_soon(work, "second", 20)
        tasks.start_soon(work, "in-time", 9)
        await clock.advance(30)
    assert ends == {"quick": (1, False), "first": (10, True), "in-time": (13, False), "second": (14, True)}


async def test_one_timer_serves_all(time_limit: TimeLimit, clock: ManualClock) -> None:
    """However many run, and none while nothing runs for longer than the limit."""
    async with anyio.create_task_group() as tasks:

        async def work() -> None:
            with time_limit.limit():
                await anyio.sleep_forever()

        for _ in range(50):
            tasks.start_soon(work)
        await settle()
        assert clock.sleeping == [10]
        await clock.advance(10)
    await clock.advance(100)
    assert clock.sleeping == []


async def test_what_has_ended_is_forgotten(time_limit: TimeLimit) -> None:
    """A long limit for many short pieces of work keeps nothing of them."""
    with time_limit.limit() as scope:
        await settle()
    ended = weakref.ref(scope)
    del scope
    gc.collect()
    assert ended() is None


async def test_failures_pass_unchanged(time_limit: TimeLimit, clock: ManualClock) -> None:
    """They are not wrapped, and leave nothing behind."""
    with pytest.raises(ValueError, match=r"^x$"), time_limit.limit():
        raise ValueError("x")
    await clock.advance(100)
    assert clock.sleeping == []
