from __future__ import annotations

import tracemalloc
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.api.trainjob_status import TrainerStatus
from trainer.kube.field_errors import FieldError
from trainer.kube.objects import Object
from trainer.kube.podlogs.instant import Instant
from trainer.progress.protocol import Message
from trainer.progress.run import TrainingRun

START = Instant(1795257045, 123456789)
"""2026-11-21T10:30:45.123456789Z."""

M = Message


def at(seconds: float) -> Instant:
    return Instant(START.seconds + int(seconds), START.nanoseconds)


def run_of(*reports: tuple[float, Message], status: TrainerStatus | None = None) -> TrainingRun:
    run = TrainingRun(status)
    for seconds, message in reports:
        run.take(message, at(seconds))
    return run


def shown(*reports: tuple[float, Message], status: TrainerStatus | None = None) -> Object:
    """The status without its time, of which other tests tell."""
    result = run_of(*reports, status=status).status
    assert result is not None
    fields = result.to_object()
    del fields["lastUpdatedTime"]
    return fields


def remaining(*reports: tuple[float, Message], status: TrainerStatus | None = None) -> Any:
    fields = shown(*reports, status=status)
    return fields.get("estimatedRemainingSeconds"), fields.get("estimatedRemainingTimeSummary")


def steps(current: int, total: int = 1000) -> Message:
    return M(current_step=current, total_steps=total)


def null(*fields: str) -> Message:
    return M(cleared=frozenset(fields))


WRONG = (FieldError("currentStep", "Invalid value: -1: must be at least 0"),)


def test_nothing_before_the_first_message() -> None:
    """A run that has reported nothing has no status, so that what an earlier one has left stays."""
    assert TrainingRun().status is None


def test_everything_reported_is_shown() -> None:
    """All fields of a message reach the status as they are, with the time of the line in whole seconds."""
    message = Message(
        progress_percentage=45,
        estimated_remaining_seconds=795649,
        current_step=4500,
        total_steps=10000,
        current_epoch=2,
        total_epochs=5,
        train_metrics={"loss": "0.2347"},
        eval_metrics={"eval_loss": "0.2451"},
    )
    status = run_of((0, message)).status
    assert status is not None
    assert status.to_object() == {
        "progressPercentage": 45,
        "estimatedRemainingSeconds": 795649,
        "estimatedRemainingTimeSummary": "9 days 5 hours",
        "currentStep": 4500,
        "totalSteps": 10000,
        "currentEpoch": 2,
        "totalEpochs": 5,
        "trainMetrics": {"loss": "0.2347"},
        "evalMetrics": {"eval_loss": "0.2451"},
        "lastUpdatedTime": "2026-11-21T10:30:45Z",
    }


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        pytest.param(M(dropped=WRONG), {"trainMetrics": {"loss": "1"}}, id="a field"),
        pytest.param(M(dropped=WRONG, train_metrics={}), {}, id="a metric, which is shown no more"),
    ],
)
def test_a_message_without_a_value_that_counts(message: Message, expected: Object) -> None:
    """A message whose values were all dropped has measured nothing, so that the time is still that of the last one."""
    reports = (0, M(train_metrics={"loss": "1"})), (60, message)
    assert shown(*reports) == expected
    status = run_of(*reports).status
    assert status is not None
    assert status.last_updated_time == "2026-11-21T10:30:45Z"
    assert run_of((0, M(dropped=WRONG))).status is None
    counts = run_of((0, M(dropped=WRONG)), (60, replace(message, current_epoch=0))).status
    assert counts is not None
    assert counts.last_updated_time == "2026-11-21T10:31:45Z"


def test_impossible_totals_are_named() -> None:
    """A total that is dropped is named with its rule, whether it came with the step or before."""
    run = TrainingRun()
    expected = "totalSteps: Invalid value: 1000: must be at least currentStep, which is 1001; it counts as unknown"
    assert run.take(steps(1000), at(0)) == ()
    assert [str(error) for error in run.take(M(current_step=1001), at(1))] == [expected]
    assert run.take(M(current_step=1002), at(2)) == ()
    assert run.take(steps(1003, 1003), at(3)) == ()
    assert [error.field for error in run.take(M(current_epoch=2, total_epochs=1), at(3))] == ["totalEpochs"]


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        pytest.param(
            [steps(1), M(train_metrics={"loss": "1"}), M(eval_metrics={"acc": "2"})],
            {
                "progressPercentage": 0,
                "currentStep": 1,
                "totalSteps": 1000,
                "trainMetrics": {"loss": "1"},
                "evalMetrics": {"acc": "2"},
            },
            id="what a message lacks stays",
        ),
        pytest.param(
            [M(train_metrics={"loss": "1", "lr": "2"}), M(train_metrics={"loss": "3"})],
            {"trainMetrics": {"loss": "3"}},
            id="maps are replaced as wholes",
        ),
        pytest.param(
            [M(train_metrics={"loss": "1"}, eval_metrics={"acc": "2"}, current_step=3), null("train_metrics")],
            {"evalMetrics": {"acc": "2"}, "currentStep": 3},
            id="a null clears",
        ),
        pytest.param(
            [M(current_step=3), replace(null("current_step"), current_epoch=1), M(total_epochs=4)],
            {"progressPercentage": 25, "currentEpoch": 1, "totalEpochs": 4},
            id="a null among values",
        ),
        pytest.param([steps(10), M(current_step=1001)], {"currentStep": 1001}, id="a total that has become impossible"),
        pytest.param(
            [M(current_epoch=3, total_epochs=2, current_step=1, total_steps=4)],
            {"progressPercentage": 25, "currentEpoch": 3, "currentStep": 1, "totalSteps": 4},
            id="an impossible total of epochs",
        ),
        pytest.param(
            [M(total_steps=200), M(current_step=50)],
            {"progressPercentage": 25, "currentStep": 50, "totalSteps": 200},
            id="total once, steps later",
        ),
        pytest.param(
            [M(current_step=50, total_steps=0)], {"currentStep": 50, "totalSteps": 0}, id="a total of nothing"
        ),
        pytest.param(
            [M(current_step=50, total_steps=0, current_epoch=1, total_epochs=2)],
            {"progressPercentage": 50, "currentStep": 50, "totalSteps": 0, "currentEpoch": 1, "totalEpochs": 2},
            id="epochs where steps tell nothing",
        ),
        pytest.param(
            [steps(0), M(current_epoch=1, total_epochs=5), M(current_epoch=2)],
            {"progressPercentage": 40, "currentStep": 0, "totalSteps": 1000, "currentEpoch": 2, "totalEpochs": 5},
            id="epochs rather than steps that are not reported any more",
        ),
    ],
)
def test_merging(messages: list[Message], expected: Object) -> None:
    """What is known is what was reported last, field by field."""
    assert shown(*((0, message) for message in messages)) == expected


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        pytest.param([steps(9999, 10000)], 99, id="rounded down"),
        pytest.param([M(progress_percentage=99, current_step=1000, total_steps=1000)], 99, id="reported, not derived"),
        pytest.param([M(progress_percentage=45), steps(500)], 45, id="holds beside steps"),
        pytest.param([steps(500), M(progress_percentage=45), null("progress_percentage")], 50, id="until a null"),
        pytest.param([steps(500), M(total_steps=800)], 62, id="derived anew for another total"),
        pytest.param([steps(500), steps(100)], 10, id="goes back with the steps"),
    ],
)
def test_percentage(messages: list[Message], expected: int) -> None:
    """The percentage is the last one that was reported, or computed where none was, and 100 at the end only."""
    assert shown(*((0, message) for message in messages))["progressPercentage"] == expected


ETA = M(estimated_remaining_seconds=5400)
NO_ETA = null("estimated_remaining_seconds")


@pytest.mark.parametrize(
    ("reports", "expected"),
    [
        pytest.param([(0, steps(100))], (None, None), id="one report is no basis"),
        pytest.param([(0, steps(100)), (0.5, steps(200))], (None, None), id="nor are two within a second"),
        pytest.param([(0, steps(100)), (60, steps(100))], (None, None), id="nor the same step twice"),
        pytest.param(
            [(0, M(progress_percentage=10)), (300, M(progress_percentage=20))],
            (2400, "about 40 minutes"),
            id="two percentages",
        ),
        pytest.param([(0, ETA)], (5400, "1 hour 30 minutes"), id="reported"),
        pytest.param(
            [(0, steps(100)), (300, replace(steps(200), estimated_remaining_seconds=9)), (301, NO_ETA)],
            (2399, "about 40 minutes"),
            id="estimated after a null",
        ),
        pytest.param([(0, ETA), (60, M(train_metrics={}))], (5400, "1 hour 30 minutes"), id="holds beside metrics"),
        pytest.param(
            [(0, ETA), (0, steps(100)), (300, steps(200))], (2400, "about 40 minutes"), id="and not after that"
        ),
        pytest.param(
            [(0, steps(100)), (300, steps(200)), (301, ETA), (302, M(current_epoch=1))],
            (5400, "1 hour 30 minutes"),
            id="an epoch without total tells nothing",
        ),
        pytest.param([(0, steps(1000))], (0, None), id="at the end"),
        pytest.param(
            [(0, steps(500)), (500, M(progress_percentage=100, current_step=999))],
            (0, None),
            id="at 100 by its own word",
        ),
        pytest.param(
            [(0, steps(100)), (300, steps(200)), (600, steps(200, 600))],
            (900, "about 15 minutes"),
            id="a training that becomes shorter",
        ),
        pytest.param(
            [(0, steps(100)), (300, steps(200)), (600, steps(100))],
            (2700, "about 45 minutes"),
            id="a step back keeps the pace",
        ),
        pytest.param(
            [(0, steps(1, 2**31 - 1)), (1e9, steps(2, 2**31 - 1)), (2e9, steps(3, 2**31 - 1))],
            (2147483644 * 10**9, "about 24855134768520 days"),
            id="nearly forever",
        ),
    ],
)
def test_remaining_time(reports: list[tuple[float, Message]], expected: tuple[int | None, str | None]) -> None:
    """Remaining time is what was reported as long as that is the newest news, and an estimate that says so after."""
    assert remaining(*reports) == expected


def status(**fields: Any) -> TrainerStatus:
    return TrainerStatus(**{"last_updated_time": "2026-11-21T10:30:45Z", **fields})


ESTIMATED = status(
    progress_percentage=50,
    estimated_remaining_seconds=2700,
    estimated_remaining_time_summary="about 45 minutes",
    current_step=500,
    total_steps=1000,
)


@pytest.mark.parametrize(
    "written",
    [
        pytest.param(ESTIMATED, id="an estimate"),
        pytest.param(
            status(
                progress_percentage=45,
                estimated_remaining_seconds=795649,
                estimated_remaining_time_summary="9 days 5 hours",
                current_step=4500,
                total_steps=10000,
                current_epoch=2,
                total_epochs=5,
                train_metrics={"loss": "0.2347"},
                eval_metrics={"eval_loss": "0.2451"},
            ),
            id="everything",
        ),
        pytest.param(status(progress_percentage=30, current_step=2, total_steps=100), id="a percentage of its own"),
        pytest.param(status(current_step=-1, total_steps=-5), id="what no training reports"),
    ],
)
def test_another_manager_takes_over(written: TrainerStatus) -> None:
    """Until the training reports again, a new manager shows exactly what the earlier one has written."""
    assert TrainingRun(written).status == written


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param(status(progress_percentage=50, current_step=500, total_steps=1000), 51, id="computed"),
        pytest.param(status(progress_percentage=30, current_step=500, total_steps=1000), 30, id="reported"),
        pytest.param(
            status(progress_percentage=100, current_step=200, total_steps=100), 51, id="computed beyond the end"
        ),
    ],
)
def test_percentage_after_a_takeover(written: TrainerStatus, expected: int) -> None:
    """A percentage that an earlier manager has computed is computed anew, and a reported one holds."""
    assert shown((60, steps(510)), status=written)["progressPercentage"] == expected


@pytest.mark.parametrize(
    ("written", "reports", "expected"),
    [
        pytest.param(ESTIMATED, [(0, steps(500))], (2700, "about 45 minutes"), id="the same line again"),
        pytest.param(
            status(progress_percentage=50, estimated_remaining_seconds=600),
            [(60, M(progress_percentage=55))],
            (540, "about 9 minutes"),
            id="after a reported time",
        ),
    ],
)
def test_estimates_after_a_takeover(
    written: TrainerStatus, reports: list[tuple[float, Message]], expected: tuple[int, str]
) -> None:
    """A new manager goes on with the pace that the earlier one has found."""
    assert remaining(*reports, status=written) == expected


def test_status_with_a_time_that_cannot_be_read() -> None:
    """A status that no manager has written is no basis: the run begins anew."""
    assert TrainingRun(status(last_updated_time="yesterday", current_step=1)).status is None


COUNTS = st.one_of(st.none(), st.integers(0, 12), st.integers(0, 2**31 - 1))
MESSAGES = st.builds(
    Message,
    progress_percentage=st.one_of(st.none(), st.integers(0, 100)),
    estimated_remaining_seconds=st.one_of(st.none(), st.integers(0, 2**63 - 1)),
    current_step=COUNTS,
    total_steps=COUNTS,
    current_epoch=COUNTS,
    total_epochs=COUNTS,
    train_metrics=st.one_of(st.none(), st.just({"loss": "1"}), st.just({})),
    cleared=st.sets(st.sampled_from(["progress_percentage", "current_step", "total_steps", "total_epochs"])).map(
        frozenset
    ),
)
REPORTS = st.lists(st.tuples(st.one_of(st.integers(0, 100), st.integers(-(10**9), 2 * 10**9)), MESSAGES), max_size=12)


@given(REPORTS)
def test_any_messages_in_any_order(reports: list[tuple[int, Message]]) -> None:
    """Whatever is reported, the status is valid, never invents 100 %, and can be taken over."""
    run = TrainingRun()
    for seconds, message in reports:
        run.take(message, at(seconds))
        shown_status = run.status
        assert shown_status is not None
        TrainerStatus.from_object(shown_status.to_object(), strict=True)
        if message.progress_percentage is not None:
            assert shown_status.progress_percentage == message.progress_percentage
        if message.estimated_remaining_seconds is not None:
            assert shown_status.estimated_remaining_seconds == message.estimated_remaining_seconds
        if shown_status.progress_percentage == 100 and message.progress_percentage is None:
            ends = [is_at_end(shown_status, name) for name in ("step", "epoch")]
            assert any(ends) or any(earlier.progress_percentage == 100 for _, earlier in reports)
        resumed = TrainingRun(shown_status)
        assert resumed.status is not None
        assert resumed.status.to_object().keys() == shown_status.to_object().keys()


def is_at_end(shown_status: TrainerStatus, name: str) -> bool:
    """Whether the steps, or the epochs, are at their end."""
    fields = shown_status.to_object()
    current, total = fields.get(f"current{name.title()}"), fields.get(f"total{name.title()}s")
    return current is not None and bool(total) and current == total


def test_memory_of_a_thousand_runs() -> None:
    """A thousand runs of many messages each take little more than the metrics that they show."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        runs = [TrainingRun() for _ in range(1000)]
        for run in runs:
            for step in range(10):
                run.take(steps(step), at(step))
        assert tracemalloc.get_traced_memory()[0] - before < 1_500_000
    finally:
        tracemalloc.stop()
