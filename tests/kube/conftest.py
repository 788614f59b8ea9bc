"""Fixtures of the machinery's tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, TypeAlias

import pytest

from trainer_kube_testing import ManualClock

Background: TypeAlias = Callable[[Coroutine[Any, Any, Any]], "asyncio.Task[Any]"]
"""Runs a coroutine until the end of the test."""


@pytest.fixture
def clock() -> ManualClock:
    """A clock that only the test moves."""
    return ManualClock()


@pytest.fixture
async def background() -> AsyncIterator[Background]:
    """Starts tasks, which are cancelled after the test; one that failed fails the test.

    Not a task group: pytest-asyncio may leave a fixture in another task than it entered it in.
    """
    tasks: list[asyncio.Task[Any]] = []

    def start(coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        tasks.append(asyncio.create_task(coroutine))
        return tasks[-1]

    yield start
    for task in tasks:
        task.cancel()
    for outcome in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(outcome, Exception):
            raise outcome
