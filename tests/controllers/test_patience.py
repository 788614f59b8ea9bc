"""Holding back bad news for a moment."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.framework.samples import train_job
from tests.framework.status.test_status import condition, pending, restarting
from trainer.controllers.patience import SECONDS, Patience
from trainer.kube.testing import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


async def test_a_new_reason_has_to_last(clock: ManualClock) -> None:
    """It passes once it has been there long enough; what comes later waits for itself."""
    patience, job, image, node = Patience(clock), train_job(), pending(), pending("Unschedulable")
    assert patience.sift(job, [image]) == ((), SECONDS)
    await clock.advance(SECONDS / 2)
    assert patience.sift(job, [image, node]) == ((), SECONDS / 2)
    await clock.advance(SECONDS / 2)
    assert patience.sift(job, [image, node]) == ((image,), SECONDS / 2)


async def test_what_is_over_begins_anew(clock: ManualClock) -> None:
    """A reason that goes away at once is never told."""
    patience, job = Patience(clock), train_job()
    patience.sift(job, [pending()])
    await clock.advance(SECONDS)
    assert patience.sift(job, []) == ((), None)
    assert patience.sift(job, [pending()]) == ((), SECONDS)


@pytest.mark.parametrize(
    "told",
    [
        pytest.param("1 pod cannot start: x", id="reason-of-the-condition"),
        pytest.param("ImagePullBackOff: 1 pod cannot start: x", id="written-by-an-earlier-version"),
    ],
)
def test_what_was_told_is_not_held_back(clock: ManualClock, told: str) -> None:
    """After a restart of the manager the condition shows it; restarts are told at once."""
    job = train_job(status={"conditions": [condition("Pending", "True", "ImagePullBackOff", told)]})
    assert Patience(clock).sift(job, [pending(), restarting()])[1] is None
    over = train_job(status={"conditions": [condition("Pending", "False", "NoPodWaits", told)]})
    (passed, seconds) = Patience(clock).sift(over, [pending(), restarting()])
    assert [each.reason for each in passed] == ["RestartingJobSet"]
    assert seconds == SECONDS


def test_jobs_do_not_wait_for_each_other(clock: ManualClock) -> None:
    """Each TrainJob has a time of its own."""
    patience = Patience(clock)
    patience.sift(train_job("a"), [pending()])
    assert patience.sift(train_job("b"), [pending()]) == ((), SECONDS)


async def test_what_may_take_its_time(clock: ManualClock) -> None:
    """A reason that is normal for a while is held back for as long as it asks for, and others are not."""
    patience, job, slow = Patience(clock), train_job(), replace(pending("NoScheduler"), patience=30)
    assert patience.sift(job, [pending(), slow]) == ((), SECONDS)
    await clock.advance(SECONDS)
    passed, seconds = patience.sift(job, [pending(), slow])
    assert [each.reason for each in passed] == ["ImagePullBackOff"]
    assert seconds == 30 - SECONDS
    await clock.advance(30 - SECONDS)
    assert len(patience.sift(job, [pending(), slow])[0]) == 2
