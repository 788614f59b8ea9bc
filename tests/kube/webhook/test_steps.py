"""Work in steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest

from trainer.kube.webhook.steps import Steps, at_once, with_pauses
from trainer_kube_testing import ManualClock, settle

if TYPE_CHECKING:
    from collections.abc import Iterator


class Moving(ManualClock):
    """A clock on which each step takes what the test says."""

    def __init__(self, *lengths: float) -> None:
        super().__init__()
        self._lengths: Iterator[float] = iter(lengths)
        self._spent = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self._spent

    def work(self) -> None:
        """One stretch of work."""
        self._spent += next(self._lengths)


def work(clock: Moving, done: list[str]) -> Steps[str]:
    for name in ("first", "second"):
        clock.work()
        done.append(name)
        yield
    clock.work()
    done.append("third")
    return "result"


def test_at_once() -> None:
    """The result is that of the last step."""
    done: list[str] = []
    assert at_once(work(Moving(1, 1, 1), done)) == "result"
    assert done == ["first", "second", "third"]


async def test_others_have_three_quarters_of_the_time() -> None:
    """A step begins when three times as long as the step before it took has passed; so does whatever follows."""
    clock, done, results = Moving(1, 2, 3), list[str](), list[str]()

    async def take() -> None:
        results.append(await with_pauses(work(clock, done), clock))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(take)
        await settle()
        for count, pause in ((1, 3), (2, 6), (3, 9)):
            assert len(done) == count
            assert clock.sleeping == [pause]
            await clock.advance(pause - 0.5)
            assert (len(done), results) == (count, [])
            await clock.advance(0.5)
    assert results == ["result"]


async def test_what_a_step_raises() -> None:
    """It reaches the caller."""

    def fail() -> Steps[str]:
        yield
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await with_pauses(fail(), ManualClock())
