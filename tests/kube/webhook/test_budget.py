"""Memory that reviews share."""

from __future__ import annotations

import tracemalloc
from typing import Any

import anyio
import msgspec
import pytest

from trainer.kube.webhook.budget import Budget, weight_of
from trainer_kube_testing import ManualClock, settle

SIZE = 500_000


def repeated(unit: str) -> str:
    """A list of this, again and again."""
    return '{"a":[' + ",".join([unit] * (SIZE // (len(unit) + 1))) + "]}"


def numbered(unit: str) -> str:
    """The same with a number in each, so that none are equal."""
    return ",".join(unit % number for number in range(100_000, 100_000 + SIZE // (len(unit) + 5)))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(repeated("[]"), id="lists"),
        pytest.param(repeated("[1]"), id="lists-of-one"),
        pytest.param(repeated("[[[[[[[[]]]]]]]]"), id="nested-lists"),
        pytest.param(repeated("{}"), id="mappings"),
        pytest.param(repeated('{"a":1}'), id="mappings-of-one"),
        pytest.param(repeated('{"a":{"b":{"c":{}}}}'), id="nested-mappings"),
        pytest.param('{"a":[' + numbered('{"%d":1}') + "]}", id="mappings-with-keys-of-their-own"),
        pytest.param("{" + numbered('"%d":1') + "}", id="keys"),
        pytest.param('{"a":[' + numbered("%d") + "]}", id="numbers"),
        pytest.param(repeated("1.5"), id="fractions"),
        pytest.param(repeated('"a"'), id="letters"),
        pytest.param(repeated('"ab"'), id="short-texts"),
        pytest.param(repeated('"é一"'), id="wide-texts"),
        pytest.param('{"a":"' + "x" * SIZE + '"}', id="text"),
        pytest.param('{"a":"' + "x" * SIZE + '\N{GRINNING FACE}"}', id="text-with-one-wide-letter"),
    ],
)
def test_weight(text: str) -> None:
    """What is counted in a text is never less than what the text and its values take, and not ten times as much."""
    body = bytearray(text.encode())
    decoder = msgspec.json.Decoder(dict[str, Any])
    tracemalloc.start()
    try:
        value = decoder.decode(body)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert value
    assert peak + len(body) <= weight_of(body) < 10 * (peak + len(body))


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


class Holders:
    """Those who hold memory, by name."""

    def __init__(self, budget: Budget, clock: ManualClock) -> None:
        self.holding: list[str] = []
        self.gave_up: list[str] = []
        self.done: dict[str, anyio.Event] = {}
        self._budget = budget
        self._clock = clock

    async def hold(self, name: str, amount: int) -> None:
        self.done[name] = anyio.Event()
        try:
            await self._budget.acquire(amount, self._clock, 5)
        except TimeoutError:
            self.gave_up.append(name)
            return
        self.holding.append(name)
        try:
            await self.done[name].wait()
            self.holding.remove(name)
        finally:
            self._budget.release(amount)


async def test_the_smallest_goes_first(clock: ManualClock) -> None:
    """Nobody holds more than there is, those who fit do not wait, and of those who wait the smallest is next."""
    budget = Budget(100)
    holders = Holders(budget, clock)
    async with anyio.create_task_group() as tasks:
        for name, amount in (("a", 90), ("large", 80), ("medium", 50), ("small", 10), ("also medium", 50)):
            tasks.start_soon(holders.hold, name, amount)
            await settle()
        assert (holders.holding, budget.used) == (["a", "small"], 100)
        holders.done["a"].set()
        await settle()
        assert (holders.holding, budget.used) == (["small", "medium"], 60)
        holders.done["small"].set()
        await settle()
        assert (holders.holding, budget.used) == (["medium", "also medium"], 100)
        for name in ("medium", "also medium", "large"):
            holders.done[name].set()
            await settle()
    assert (holders.holding, budget.used) == ([], 0)


async def test_one_heavy_at_a_time(clock: ManualClock) -> None:
    """More than `light` is held by one only, however much is there; those that are light do not wait for it."""
    budget = Budget(1000, light=10)
    holders = Holders(budget, clock)
    async with anyio.create_task_group() as tasks:
        for name, amount in (("heavy", 100), ("heavier", 200), ("medium", 50), ("light", 10), ("also light", 10)):
            tasks.start_soon(holders.hold, name, amount)
            await settle()
        assert holders.holding == ["heavy", "light", "also light"]
        for ended, begun in (("heavy", "medium"), ("medium", "heavier")):
            holders.done[ended].set()
            await settle()
            assert holders.holding == ["light", "also light", begun]
        for name in ("light", "also light", "heavier"):
            holders.done[name].set()
    assert budget.used == 0


async def test_who_waits_too_long_gives_up(clock: ManualClock) -> None:
    """And takes nothing with it, nor does who is cancelled."""
    budget = Budget(100)
    holders = Holders(budget, clock)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(holders.hold, "a", 100)
        await settle()
        tasks.start_soon(holders.hold, "b", 20)
        await clock.advance(5)
        assert (holders.holding, holders.gave_up) == (["a"], ["b"])
        tasks.start_soon(holders.hold, "c", 20)
        await settle()
        tasks.cancel_scope.cancel()
    assert budget.used == 0
