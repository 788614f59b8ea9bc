"""When a training counts as stalled, and how that is reported."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from trainer.api.trainjob_status import TrainerStatus
from trainer.kube.field_errors import FieldError
from trainer.kube.podlogs.instant import Instant
from trainer.progress.metrics import ProgressSeries
from trainer.progress.protocol import Message
from trainer.progress.stalls import StallWatch
from trainer_kube_testing import ManualClock

TIME = Instant(10 * 3600 + 30 * 60 + 45, 5)
TIMEOUT = 600.0


class Bench:
    """A watch with its clock and its series."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.registry = CollectorRegistry()
        self.watch = StallWatch(self.clock, ProgressSeries(self.registry))

    async def after(self, seconds: float) -> str | None:
        """What is reported of the training when so much time has passed."""
        await self.clock.advance(seconds)
        return self.watch.check()

    def report(self, message: Message) -> bool:
        """Whether a stall ends by this message."""
        return self.watch.record(message, TIME)

    def counts(self) -> tuple[float | None, float | None]:
        """Stalls so far, and trainings that are stalled."""
        read = self.registry.get_sample_value
        return read("trainer_progress_stalls_total"), read("trainer_progress_stalled_jobs")


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def test_stall_is_reported_once(bench: Bench) -> None:
    """When the time is over there is one complaint, until the training has got on and stalls again."""
    bench.watch.watch("run", TIMEOUT)
    bench.report(Message(current_step=4500, total_steps=10000))
    assert await bench.after(599) is None
    assert bench.counts() == (0, 0)
    assert await bench.after(1) == "no progress for 10 minutes (last: step 4500 of 10000 at 10:30:45 UTC)"
    assert await bench.after(9999) is None
    assert bench.counts() == (1, 1)
    assert bench.report(Message(current_step=4501))
    assert bench.counts() == (1, 0)
    assert await bench.after(599) is None
    assert await bench.after(1) is not None
    assert bench.counts() == (2, 1)


@pytest.mark.parametrize(
    ("before", "repeated", "moved"),
    [
        pytest.param(
            Message(progress_percentage=45, current_step=4, estimated_remaining_seconds=9),
            Message(progress_percentage=45, estimated_remaining_seconds=7, train_metrics={"loss": "1"}),
            Message(progress_percentage=45, current_step=5),
            id="metrics-and-estimates-do-not-count",
        ),
        pytest.param(
            Message(train_metrics={"loss": "1"}),
            Message(train_metrics={}, dropped=(FieldError("trainMetrics[loss]", "Invalid value: NaN"),)),
            Message(train_metrics={"loss": "2"}),
            id="metrics-that-are-no-numbers",
        ),
    ],
)
async def test_what_counts_as_progress(bench: Bench, before: Message, repeated: Message, moved: Message) -> None:
    """A percentage, step or epoch that differs; not what is repeated."""
    bench.watch.watch("run", TIMEOUT)
    bench.report(before)
    await bench.clock.advance(400)
    bench.report(repeated)
    bench.report(before)
    assert bench.watch.next_check == 200
    await bench.clock.advance(100)
    bench.report(moved)
    assert bench.watch.next_check == 600


@pytest.mark.parametrize(
    ("message", "last"),
    [
        pytest.param(Message(progress_percentage=45), "45 %", id="percentage"),
        pytest.param(Message(current_epoch=2, total_epochs=5), "epoch 2 of 5", id="epoch-of"),
        pytest.param(Message(train_metrics={"loss": "1"}), "metrics", id="metrics"),
    ],
)
async def test_complaint_tells_how_far_it_was(bench: Bench, message: Message, last: str) -> None:
    """As exactly as the training has reported, with the time by its node's clock."""
    bench.watch.watch("run", 2)
    bench.report(message)
    assert await bench.after(2) == f"no progress for 2 seconds (last: {last} at 10:30:45 UTC)"


@pytest.mark.parametrize(
    ("is_expected", "complaint"),
    [
        pytest.param(False, None, id="any-training"),
        pytest.param(True, "no progress for 10 minutes (nothing has been reported yet)", id="expected-to-report"),
    ],
)
async def test_training_that_never_reports(bench: Bench, is_expected: bool, complaint: str | None) -> None:
    """Most trainings report nothing; one whose author has set the time does, unless it hangs from the start."""
    bench.watch.watch("run", TIMEOUT, is_expected_to_report=is_expected)
    assert bench.watch.next_check == (TIMEOUT if is_expected else None)
    assert await bench.after(TIMEOUT) == complaint


async def test_looking_again_changes_nothing(bench: Bench) -> None:
    """Each reconcile watches; the time goes on, and what was reported stays reported."""
    bench.watch.watch("run", TIMEOUT)
    bench.report(Message(current_step=1))
    await bench.clock.advance(400)
    bench.watch.watch("run", TIMEOUT)
    assert await bench.after(199) is None
    assert await bench.after(1) is not None
    bench.watch.watch("run", TIMEOUT)
    assert bench.watch.check() is None
    assert bench.watch.next_check is None
    assert bench.counts() == (1, 1)


async def test_shorter_limit(bench: Bench) -> None:
    """A limit that is over already is reported at the next check."""
    bench.watch.watch("run", TIMEOUT)
    bench.report(Message(current_step=1))
    await bench.clock.advance(100)
    bench.watch.watch("run", 50)
    assert bench.watch.next_check == 0
    assert bench.watch.check() == "no progress for 50 seconds (last: step 1 at 10:30:45 UTC)"


async def test_explanation(bench: Bench) -> None:
    """It says since when there is no progress, by the clock of the manager, as long as the stall lasts."""
    bench.watch.watch("run", 60)
    await bench.clock.advance(30)
    bench.report(Message(current_step=1))
    await bench.after(300)
    assert bench.watch.stall == (
        "no progress since 2026-01-01T00:00:30Z, longer than the 1 minute allowed (last: step 1 at 10:30:45 UTC)"
    )
    bench.report(Message(current_step=2))
    assert bench.watch.stall is None


SHOWN = TrainerStatus(current_step=4, progress_percentage=40, last_updated_time="2026-01-01T10:30:45Z")


async def test_what_another_manager_has_seen_is_no_progress(bench: Bench) -> None:
    """A training that repeats what is shown already has not got on."""
    bench.watch.watch("run", TIMEOUT, shown=SHOWN)
    await bench.clock.advance(300)
    bench.report(Message(current_step=4))
    assert await bench.after(300) == "no progress for 10 minutes (last: step 4 at 10:30:45 UTC)"
