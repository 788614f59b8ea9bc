"""Waiting without sleeping."""

from __future__ import annotations

import asyncio
import threading

import anyio
import pytest

from tests.kube.conftest import Background
from trainer_kube_testing import FakeClient, ManualClock, eventually, no_stray_tasks


async def test_holds_at_once(clock: ManualClock) -> None:
    """A condition that holds costs no time, and its answer is returned."""
    assert await eventually(lambda: "yes", clock=clock) == "yes"
    assert await eventually(lambda: "yes") == "yes"
    assert clock.monotonic() == 0


async def test_time_moves_from_sleeper_to_sleeper(clock: ManualClock, background: Background) -> None:
    """The clock advances until the condition holds, and stops there."""
    ticks = []

    async def tick() -> None:
        while True:
            await clock.sleep(0.1)
            ticks.append(clock.monotonic())

    background(tick())
    await eventually(lambda: len(ticks) == 3, clock=clock)
    assert ticks == pytest.approx([0.1, 0.2, 0.3])
    assert clock.monotonic() == ticks[-1]


async def test_too_late(clock: ManualClock, background: Background) -> None:
    """The message names the condition, its place, its last answer and the limit."""
    client = FakeClient()
    background(clock.sleep(61))
    place = r"test_too_late.<locals>.<lambda> \(test_waiting.py:\d+\)"
    with pytest.raises(AssertionError, match=place + r" did not hold within 60 s: it was \[\]"):
        await eventually(lambda: client.requests, clock=clock, within=60)


async def test_nobody_sleeps(clock: ManualClock) -> None:
    """When time can change nothing, the failure does not wait for it."""

    def condition() -> bool:
        count = 1
        assert count == 2
        return True

    with pytest.raises(AssertionError, match=r"two pods did not hold and nobody sleeps.*assert 1 == 2"):
        await eventually(condition, clock=clock, what="two pods")


async def test_threads_are_waited_for() -> None:
    """Without a clock, whatever runs elsewhere gets real time."""
    done = threading.Event()
    threading.Timer(0.01, done.set).start()
    assert await eventually(done.is_set)


async def test_real_time_is_limited() -> None:
    """A condition that never holds fails after so many seconds."""
    with pytest.raises(AssertionError, match=r"did not hold within 0\.01 s: it was False"):
        await eventually(lambda: False, within=0.01)


async def test_no_stray_tasks() -> None:
    """Tasks that have ended, or were there before, are no strays."""
    before = asyncio.create_task(anyio.sleep_forever())
    async with no_stray_tasks():
        await asyncio.create_task(asyncio.sleep(0))
        cancelled = asyncio.create_task(anyio.sleep_forever())
        cancelled.cancel()
    before.cancel()


async def test_stray_task() -> None:
    """A task that is left over is named with its place, and cancelled."""
    with pytest.raises(AssertionError, match=r"1 tasks still run: reader \(sleep_forever at .*\.py:\d+\)"):
        async with no_stray_tasks():
            task = asyncio.create_task(anyio.sleep_forever(), name="reader")
    with pytest.raises(asyncio.CancelledError):
        await task
