"""Fair scheduling of callers that are due at once."""

from __future__ import annotations

import asyncio

from tests.kube.conftest import Background
from trainer.kube.rest.fair_scheduler import FairScheduler
from trainer_kube_testing import settle


async def test_a_few_go_on_in_each_round(background: Background) -> None:
    """Later callers wait for the next rounds of the event loop, in the order of their calls."""
    scheduler, order, rounds = FairScheduler(per_round=2), list[int](), list[int]()

    async def take(number: int) -> None:
        await scheduler.next_turn()
        order.append(number)

    for number in range(7):
        background(take(number))
    while len(order) < 7:
        before = len(order)
        await asyncio.sleep(0)
        rounds.append(len(order) - before)
    assert order == list(range(7))
    assert max(rounds) == 2


async def test_a_cancelled_caller_takes_no_turn(background: Background) -> None:
    """A caller that was cancelled while it waited does not hold up the others."""
    scheduler = FairScheduler(per_round=1)
    await scheduler.next_turn()
    waiting = [background(scheduler.next_turn()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[1].cancel()
    await settle()
    assert [task.done() for task in waiting] == [True] * 3
    assert [task.cancelled() for task in waiting] == [False, True, False]


async def test_a_turn_that_is_free_costs_no_round() -> None:
    """A caller waits only when all turns of the round are taken."""
    scheduler = FairScheduler(per_round=1)
    for _ in range(3):
        taking = scheduler.next_turn()
        try:
            taking.send(None)
        except StopIteration:
            pass
        else:
            raise AssertionError("it waited")
        await settle()
