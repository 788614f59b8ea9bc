"""The client's own rate limit."""

from __future__ import annotations

import anyio
import pytest

from tests.kube.conftest import Background
from trainer.kube.rest.rate_limiter import RateLimiter
from trainer_kube_testing import ManualClock, settle


class Line:
    """Requests that go through a limiter, and when."""

    def __init__(self, limiter: RateLimiter, clock: ManualClock) -> None:
        self.passed: list[tuple[str, float]] = []
        self._limiter = limiter
        self._clock = clock
        self._began = clock.monotonic()

    async def request(self, name: str) -> None:
        await self._limiter.wait()
        self.passed.append((name, round(self._clock.monotonic() - self._began, 3)))


async def test_burst_then_rate_in_order(clock: ManualClock, background: Background) -> None:
    """The burst goes at once; the others follow at the rate, in the order in which they came."""
    line = Line(RateLimiter(qps=5, burst=2, clock=clock), clock)
    for name in "abcde":
        background(line.request(name))
    await settle()
    for _ in range(3):
        await clock.advance(0.2)
    assert line.passed == [("a", 0), ("b", 0), ("c", 0.2), ("d", 0.4), ("e", 0.6)]


async def test_tokens_are_saved_up_to_the_burst(clock: ManualClock, background: Background) -> None:
    """However long a client is idle, not more than the burst goes at once."""
    line = Line(RateLimiter(qps=10, burst=3, clock=clock), clock)
    await clock.advance(3600)
    for name in "abcd":
        background(line.request(name))
    await settle()
    assert [name for name, _ in line.passed] == ["a", "b", "c"]


async def test_cancelled_request_takes_nothing(clock: ManualClock, background: Background) -> None:
    """The next in line gets the token for which the cancelled one waited, and no later."""
    line = Line(RateLimiter(qps=1, burst=1, clock=clock), clock)
    await line.request("first")
    impatient = background(line.request("impatient"))
    background(line.request("patient"))
    await clock.advance(0.5)
    impatient.cancel()
    await settle()
    await clock.advance(0.5)
    assert line.passed == [("first", 0), ("patient", 1)]


async def test_wait_is_reported(clock: ManualClock, background: Background) -> None:
    """The caller learns how long it was held up."""
    limiter = RateLimiter(qps=0.5, burst=1, clock=clock)
    assert await limiter.wait() == 0
    waiting = background(limiter.wait())
    await clock.advance(2)
    with anyio.fail_after(5):
        assert await waiting == 2


async def test_take_never_waits(clock: ManualClock) -> None:
    """Who does not want to wait learns at once whether there is a token."""
    limiter = RateLimiter(qps=0.1, burst=2, clock=clock)
    assert [limiter.take() for _ in range(3)] == [True, True, False]
    await clock.advance(10)
    assert [limiter.take() for _ in range(2)] == [True, False]


@pytest.mark.parametrize(("qps", "burst"), [(0, 1), (-1, 1), (1, 0)])
def test_limit_that_lets_nothing_through_is_refused(qps: float, burst: int) -> None:
    """A limiter that would wait forever cannot be made."""
    with pytest.raises(ValueError, match="positive qps"):
        RateLimiter(qps, burst)


async def test_late_comers_wait_in_line(clock: ManualClock) -> None:
    """A caller that arrives when a token is due does not overtake those that wait for it."""
    limiter = RateLimiter(qps=1, burst=1, clock=clock)
    await limiter.wait()
    served: list[str] = []

    async def come(name: str, after: float) -> None:
        if after:
            await clock.sleep(after)
        await limiter.wait()
        served.append(name)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(come, "late", 1)
        await settle()
        tasks.start_soon(come, "early", 0)
        await settle()
        await clock.advance(1)
        await clock.advance(1)
    assert served == ["early", "late"]
