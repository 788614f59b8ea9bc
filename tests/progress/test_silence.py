"""When a training counts as silent, and what that costs."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.progress.conftest import Training
from trainer.api.progress import STALL_SECONDS
from trainer.kube.podlogs.instant import Instant
from trainer.progress.silence import SilenceWatch
from trainer_kube_testing import ManualClock

BEGAN = Instant(1000, 0)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


async def watched(clock: ManualClock, reports: Sequence[int]) -> SilenceWatch:
    """A training with reports at these seconds after its beginning, the last one just now."""
    watch = SilenceWatch(clock)
    watch.watch("run", BEGAN, {})
    for second in reports:
        watch.record(Instant(1000 + second, 0))
    return watch


@pytest.mark.parametrize(
    ("reports", "seconds"),
    [
        pytest.param([5, 6, 7, 8, 9], 60, id="each-second"),
        pytest.param([30, 60, 90, 120], 300, id="each-half-minute"),
        pytest.param([5], 600, id="one-report"),
        pytest.param([300, 301], 3010, id="few-reports-after-a-long-start"),
        pytest.param([10, 20, 30, 40, 240, 250, 260], 300, id="evaluations-are-usual"),
        pytest.param([1, 86401, 172801, 259201], 129600, id="once-a-day"),
    ],
)
async def test_silence(clock: ManualClock, reports: list[int], seconds: float) -> None:
    """It begins after ten usual intervals, after a minute at least, and ends with the next report."""
    watch = await watched(clock, reports)
    assert watch.next_check == pytest.approx(seconds)
    await clock.advance(seconds - 1)
    assert not watch.check()
    await clock.advance(1)
    assert watch.check()
    assert watch.next_check is None
    watch.record(Instant(1001 + reports[-1] + int(seconds), 0))
    assert not watch.is_silent


async def test_a_time_in_the_future(clock: ManualClock) -> None:
    """A status with a time in the future, such as a program may post, leaves later reports what they are."""
    watch = SilenceWatch(clock)
    watch.watch("run", BEGAN, {"lastUpdatedTime": "2099-01-01T00:00:00Z"})
    await clock.advance(1_000_000)
    assert watch.check()
    watch.record(Instant.of(clock.now()))
    assert not watch.check()


async def test_no_silence(clock: ManualClock) -> None:
    """A first report that never comes is none, nor is a training that is not watched."""
    for watch in (await watched(clock, []), SilenceWatch(clock)):
        await clock.advance(1_000_000)
        assert (watch.check(), watch.next_check) == (False, None)


async def regular(training: Training) -> int:
    """It reports each ten seconds, then nothing more; the number of writes by then."""
    await training.start()
    for step in range(6):
        await training.clock.advance(10)
        await training.report(f'{{"currentStep": {step}, "totalSteps": 100, "estimatedRemainingSeconds": 28}}')
    await training.clock.advance(6)
    assert training.shown["estimatedRemainingTimeSummary"] == "28 seconds"
    return training.writes


async def test_a_silence_is_written_once(training: Training) -> None:
    """It takes the place of the remaining time, without a condition or a warning, and outlives the manager."""
    async with training.managed():
        writes = await regular(training)
        for _ in range(30):
            await training.clock.advance(10)
        assert training.shown["estimatedRemainingTimeSummary"].startswith("no report since ")
        assert "estimatedRemainingSeconds" not in training.shown
        assert (training.writes, training.stall, training.warnings) == (writes + 1, None, [])
    async with training.managed():
        await training.clock.advance(60)
        assert training.shown["estimatedRemainingTimeSummary"].startswith("no report since ")
        assert training.writes == writes + 1
        await training.report('{"currentStep": 7, "totalSteps": 100, "estimatedRemainingSeconds": 20}')
        await training.clock.advance(6)
        assert training.shown["estimatedRemainingTimeSummary"] == "20 seconds"
        assert training.writes == writes + 2


@pytest.mark.parametrize("seconds", [pytest.param("0", id="never"), pytest.param("9000", id="later")])
async def test_a_timeout_takes_precedence(training: Training, seconds: str) -> None:
    """Who has said when a training is stalled gets nothing earlier."""
    training.client.add(training.train_job_object(annotations={STALL_SECONDS: seconds}))
    async with training.managed():
        writes = await regular(training)
        await training.clock.advance(1000)
        assert training.shown["estimatedRemainingTimeSummary"] == "28 seconds"
        assert training.writes == writes


async def test_an_ended_training_is_not_silent(training: Training) -> None:
    """The words go with its end."""
    async with training.managed():
        await regular(training)
        await training.clock.advance(200)
        await training.finish()
        await training.clock.advance(10)
        assert "estimatedRemainingTimeSummary" not in training.shown
