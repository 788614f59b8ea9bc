"""Fixtures of the machinery's tests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
import structlog
from blockbuster import blockbuster_ctx

from trainer.kube.testing import ManualClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

Background: TypeAlias = Callable[[Coroutine[Any, Any, Any]], "asyncio.Task[Any]"]
"""Runs a coroutine until the end of the test."""


@pytest.fixture(autouse=True)
def no_blocking_calls() -> Iterator[None]:
    """A blocking call from our code on the event loop fails the test."""
    with blockbuster_ctx("trainer.kube") as detector:
        for function in detector.functions.values():
            # Runs in a worker thread, with an event loop of its own.
            function.can_block_in("trainer/kube/connection.py", {"_load_kubeconfig"})
        for name in ("os.stat", "io.BufferedReader.read", "io.TextIOWrapper.read"):
            # Formatting a logged traceback reads source files.
            detector.functions[name].can_block_in("linecache.py", {"checkcache", "updatecache"})
        yield


@pytest.fixture(autouse=True)
def plain_logs() -> Iterator[None]:
    """Log events go to the captured output without the decorations that read source files."""
    structlog.configure(
        processors=[structlog.processors.format_exc_info, structlog.processors.KeyValueRenderer()],
        cache_logger_on_first_use=False,
    )
    yield
    structlog.reset_defaults()


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
