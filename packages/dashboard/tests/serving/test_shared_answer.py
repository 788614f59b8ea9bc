"""An answer that several ask for."""

from __future__ import annotations

import tracemalloc

import pytest
from msgspec import Raw

from trainer.kube.errors import ForbiddenError
from trainer.kube.objects import Object
from trainer_dashboard.serving.shared_answer import SharedAnswer
from trainer_kube_testing import ManualClock


async def test_age() -> None:
    """An answer is given again until it is too old."""
    clock, asked = ManualClock(), 0

    async def ask() -> Object:
        nonlocal asked
        asked += 1
        return {"number": asked}

    answer = SharedAnswer(clock, 10)
    assert [await answer.get(ask), await answer.get(ask)] == [Raw(b'{"number":1}'), Raw(b'{"number":1}')]
    await clock.advance(10)
    assert await answer.get(ask) == Raw(b'{"number":2}')


async def test_memory() -> None:
    """An answer that is too old is not kept."""
    clock = ManualClock()
    answer = SharedAnswer(clock, 10)

    async def ask() -> Object:
        return {"text": "x" * 5_000_000}

    tracemalloc.start()
    await answer.get(ask)
    answer.forget_if_old()
    assert tracemalloc.get_traced_memory()[0] > 5_000_000
    await clock.advance(10)
    answer.forget_if_old()
    assert tracemalloc.get_traced_memory()[0] < 1_000_000
    tracemalloc.stop()


async def test_failure() -> None:
    """A failure is not kept."""
    failures = [ForbiddenError(403, "no")]

    async def ask() -> Object:
        if failures:
            raise failures.pop()
        return {}

    answer = SharedAnswer(ManualClock(), 10)
    with pytest.raises(ForbiddenError):
        await answer.get(ask)
    assert await answer.get(ask) == Raw(b"{}")
