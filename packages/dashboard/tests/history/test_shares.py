"""Places that namespaces share."""

from __future__ import annotations

from collections import Counter
from functools import partial

import anyio
import pytest
from anyio.lowlevel import checkpoint

from trainer_dashboard.history.shares import Shares


class Work:
    """Work of namespaces that lasts until the test ends it."""

    def __init__(self, places: int) -> None:
        self._shares = Shares(places)
        self.now: Counter[str] = Counter()
        self.begun: Counter[str] = Counter()
        self.ends = {"a": anyio.Event(), "b": anyio.Event(), "c": anyio.Event()}

    async def run(self, namespace: str) -> None:
        await self._shares.run(namespace, partial(self._work, namespace))

    async def _work(self, namespace: str) -> None:
        self.now[namespace] += 1
        self.begun[namespace] += 1
        try:
            await self.ends[namespace].wait()
        finally:
            self.now[namespace] -= 1


@pytest.mark.parametrize(
    ("come", "held"),
    [
        pytest.param("a", {"a": 1}, id="one"),
        pytest.param("aaaaaaaaaa", {"a": 6}, id="all-of-one"),
        pytest.param("aaaaaaaaaab", {"a": 5, "b": 1}, id="one-of-another"),
        pytest.param("aaaaaaaaaabbbbbb", {"a": 3, "b": 3}, id="equal-shares"),
        pytest.param("aaaaaaaaaabbbbbbcc", {"a": 2, "b": 2, "c": 2}, id="a-third"),
        pytest.param("abcaaaaaaaaa", {"a": 4, "b": 1, "c": 1}, id="what-others-leave"),
    ],
)
async def test_shares(come: str, held: dict[str, int]) -> None:
    """Where places are short, each namespace has as many as any other, or all that it wants."""
    work = Work(6)
    async with anyio.create_task_group() as tasks:
        for namespace in come:
            tasks.start_soon(work.run, namespace)
            for _ in range(5):
                await checkpoint()
        assert +work.now == held
        tasks.cancel_scope.cancel()
    assert not +work.now


async def test_work_that_lost_its_place() -> None:
    """It is begun again when others have ended, and ends once."""
    work = Work(2)
    async with anyio.create_task_group() as tasks:
        for namespace in ("a", "a", "b"):
            tasks.start_soon(work.run, namespace)
        while work.now != {"a": 1, "b": 1}:
            await checkpoint()
        work.ends["b"].set()
        while work.now["a"] < 2:
            await checkpoint()
        work.ends["a"].set()
    assert work.begun == {"a": 3, "b": 1}


async def test_work_that_is_cancelled() -> None:
    """What is cancelled while it waits, or while it has a place, leaves room for the others."""
    work = Work(1)
    async with anyio.create_task_group() as others:
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(work.run, "a")
            while work.now["a"] == 0:
                await checkpoint()
            others.start_soon(work.run, "a")
            tasks.cancel_scope.cancel()
        while work.now["a"] == 0:
            await checkpoint()
        work.ends["a"].set()
    assert work.begun["a"] == 2
