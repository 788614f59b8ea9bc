"""Work in threads, of which each party has one piece at a time."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from trainer_dashboard.access.turns import Turns
from trainer_kube_testing import settle


class Gate:
    """Calls that wait until they may end, and which of them have begun."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self._open = threading.Event()

    def pass_through(self, name: str) -> str:
        self.begun.append(name)
        assert self._open.wait(60)
        return name

    def open(self) -> None:
        self._open.set()


@asynccontextmanager
async def taking(at_once: int) -> AsyncIterator[Turns]:
    turns = Turns(at_once)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(turns.run)
        yield turns
        tasks.cancel_scope.cancel()


async def begun(gate: Gate, count: int) -> None:
    with anyio.fail_after(60):
        while len(gate.begun) < count:
            await settle()


async def test_one_of_each_party() -> None:
    """A party that asks for much has one thread, and the others theirs; all get their results."""
    gate, got = Gate(), []
    async with taking(2) as turns, anyio.create_task_group() as tasks:

        async def ask(party: str, name: str) -> None:
            got.append(await turns.call(party, lambda: gate.pass_through(name)))

        for number in range(10):
            tasks.start_soon(ask, "greedy", f"greedy-{number}")
        await begun(gate, 1)
        tasks.start_soon(ask, "other", "other")
        await begun(gate, 2)
        await settle()
        assert gate.begun == ["greedy-0", "other"]
        gate.open()
    assert len(got) == 11


async def test_parties_take_turns() -> None:
    """With one thread the parties follow each other, however much one of them has asked for before."""
    gate = Gate()
    async with taking(1) as turns, anyio.create_task_group() as tasks:

        async def ask(party: str) -> None:
            await turns.call(party, lambda: gate.pass_through(party))

        for _ in range(3):
            tasks.start_soon(ask, "greedy")
        await begun(gate, 1)
        tasks.start_soon(ask, "other")
        await settle()
        gate.open()
    assert gate.begun == ["greedy", "greedy", "other", "greedy"]


async def test_whoever_has_gone() -> None:
    """What has not begun is not done; what has begun keeps its turn until it has ended."""
    gate, last = Gate(), anyio.Event()
    async with taking(2) as turns, anyio.create_task_group() as tasks:

        async def ask(name: str) -> None:
            await turns.call("party", lambda: gate.pass_through(name))

        gone = [asyncio.create_task(ask(name)) for name in ("begun", "waiting")]
        await begun(gate, 1)
        for task in gone:
            task.cancel()  # as aiohttp ends the handler of a client that has gone, whatever scopes are shielded
        await asyncio.wait(gone)

        async def ask_last() -> None:
            await turns.call("party", lambda: gate.pass_through("last"))
            last.set()

        tasks.start_soon(ask_last)
        await settle()
        assert gate.begun == ["begun"]
        gate.open()
        with anyio.fail_after(60):
            await last.wait()
    assert gate.begun == ["begun", "last"]


async def test_errors() -> None:
    """What a call raises, its caller gets; the thread goes on."""

    def fail() -> None:
        raise ValueError("no")

    async with taking(1) as turns:
        for _ in range(3):
            with pytest.raises(ValueError, match="no"):
                await turns.call("party", fail)
        assert await turns.call("party", lambda: 3) == 3


async def test_results_are_not_kept() -> None:
    """A thread that waits for the next call keeps nothing of the last one."""

    class Answer:
        pass

    async with taking(1) as turns:
        answer = weakref.ref(await turns.call("party", Answer))
        await settle()
        gc.collect()
        assert answer() is None
