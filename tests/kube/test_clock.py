"""Clocks and what builds on them."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import anyio
import pytest

from trainer.kube.clock import SystemClock, move_on_after, parse_timestamp, timestamp
from trainer_kube_testing import ManualClock, settle


def test_timestamps_read_back() -> None:
    """A moment is written in whole seconds of UTC and reads back equal."""
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert timestamp(moment) == "2026-01-02T03:04:05Z"
    assert parse_timestamp(timestamp(moment)) == moment


def test_timestamp_without_zone_is_refused() -> None:
    """A local time is no time in Kubernetes."""
    with pytest.raises(ValueError, match="has no time zone"):
        parse_timestamp("2026-01-02T03:04:05")


async def test_move_on_after_cancels_the_body_in_time(clock: ManualClock) -> None:
    """The body ends at its deadline and the scope tells so."""
    outcome: list[bool] = []

    async def body() -> None:
        async with move_on_after(clock, 10) as scope:
            await anyio.sleep_forever()
        outcome.append(scope.cancelled_caught)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(body)
        await clock.advance(9)
        assert outcome == []
        await clock.advance(1)
    assert outcome == [True]


async def test_a_time_limit_by_the_clock_of_the_machine_starts_no_task() -> None:
    """It is the event loop's own deadline, which an exception and a cancellation leave unchanged."""
    tasks = asyncio.all_tasks()
    async with move_on_after(SystemClock(), 0) as over:
        await anyio.sleep_forever()
    async with move_on_after(SystemClock(), 60) as scope:
        assert asyncio.all_tasks() == tasks
    assert over.cancelled_caught
    assert not scope.cancelled_caught
    with pytest.raises(KeyError):
        async with move_on_after(SystemClock(), 60):
            raise KeyError("x")


@pytest.mark.parametrize("seconds", [10, None])
async def test_move_on_after_leaves_a_quick_body_alone(clock: ManualClock, seconds: float | None) -> None:
    """A body that ends in time leaves no timer behind."""
    async with move_on_after(clock, seconds) as scope:
        await settle()
    assert not scope.cancelled_caught
    assert clock.sleeping == []


async def test_move_on_after_passes_exceptions_unchanged(clock: ManualClock) -> None:
    """What the body raises is not wrapped in a group."""
    with pytest.raises(KeyError):
        async with move_on_after(clock, 10):
            raise KeyError("x")
    assert clock.sleeping == []


async def test_move_on_after_passes_cancellation_on(clock: ManualClock) -> None:
    """Cancellation from outside is not taken for the deadline."""
    with anyio.CancelScope() as outer:
        async with move_on_after(clock, 10) as scope:
            outer.cancel()
            await anyio.sleep_forever()
    assert outer.cancelled_caught
    assert not scope.cancelled_caught
    assert clock.sleeping == []


async def test_manual_clock_wakes_sleepers_in_order(clock: ManualClock) -> None:
    """Each sleeper wakes at its own time, also those that sleep again on the way."""
    woken: list[tuple[str, float]] = []

    async def sleeper(name: str, *seconds: float) -> None:
        for pause in seconds:
            await clock.sleep(pause)
            woken.append((name, clock.monotonic()))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(sleeper, "a", 3, 3)
        tasks.start_soon(sleeper, "b", 5)
        await clock.wait_for_sleepers(2)
        assert clock.sleeping == [3, 5]
        await clock.advance(10)
    assert woken == [("a", 3), ("b", 5), ("a", 6)]
    assert clock.monotonic() == 10
    assert timestamp(clock.now()) == "2026-01-01T00:00:10Z"
