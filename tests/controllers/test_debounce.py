"""What is reported a little later."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.framework.samples import train_job
from tests.framework.status.test_status import condition, pending, restarting
from trainer.controllers.debounce import SECONDS, Debounce, FirstStatusDebounce
from trainer.kube.testing import ManualClock

if TYPE_CHECKING:
    from trainer.kube.objects import Object


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


async def test_a_new_reason_has_to_last(clock: ManualClock) -> None:
    """It passes once it has been there long enough; what comes later waits for itself."""
    debounce, job, image, node = Debounce(clock), train_job(), pending(), pending("Unschedulable")
    assert debounce.filter(job, [image]) == ((), SECONDS)
    await clock.advance(SECONDS / 2)
    assert debounce.filter(job, [image, node]) == ((), SECONDS / 2)
    await clock.advance(SECONDS / 2)
    assert debounce.filter(job, [image, node]) == ((image,), SECONDS / 2)


async def test_what_is_over_begins_anew(clock: ManualClock) -> None:
    """A reason that goes away at once is never told."""
    debounce, job = Debounce(clock), train_job()
    debounce.filter(job, [pending()])
    await clock.advance(SECONDS)
    assert debounce.filter(job, []) == ((), None)
    assert debounce.filter(job, [pending()]) == ((), SECONDS)


@pytest.mark.parametrize(
    "told",
    [
        pytest.param("1 pod cannot start: x", id="reason-of-the-condition"),
        pytest.param("ImagePullBackOff: 1 pod cannot start: x", id="written-by-an-earlier-version"),
    ],
)
def test_what_was_told_is_not_held_back(clock: ManualClock, told: str) -> None:
    """After a restart of the manager the condition shows it; restarts are reported at once."""
    job = train_job(status={"conditions": [condition("Pending", "True", "ImagePullBackOff", told)]})
    assert Debounce(clock).filter(job, [pending(), restarting()])[1] is None
    over = train_job(status={"conditions": [condition("Pending", "False", "NoPodWaits", told)]})
    (passed, seconds) = Debounce(clock).filter(over, [pending(), restarting()])
    assert [each.reason for each in passed] == ["RestartingJobSet"]
    assert seconds == SECONDS


def test_jobs_do_not_wait_for_each_other(clock: ManualClock) -> None:
    """Each TrainJob has a time of its own."""
    debounce = Debounce(clock)
    debounce.filter(train_job("a"), [pending()])
    assert debounce.filter(train_job("b"), [pending()]) == ((), SECONDS)


async def test_what_may_take_its_time(clock: ManualClock) -> None:
    """A reason that is normal for a while is held back for as long as it asks for, and others are not."""
    debounce, job, slow = Debounce(clock), train_job(), replace(pending("NoScheduler"), debounce=30)
    assert debounce.filter(job, [pending(), slow]) == ((), SECONDS)
    await clock.advance(SECONDS)
    passed, seconds = debounce.filter(job, [pending(), slow])
    assert [each.reason for each in passed] == ["ImagePullBackOff"]
    assert seconds == 30 - SECONDS
    await clock.advance(30 - SECONDS)
    assert len(debounce.filter(job, [pending(), slow])[0]) == 2


@pytest.mark.parametrize(
    ("spec", "is_busy", "postpones"),
    [
        pytest.param({}, True, True, id="burst"),
        pytest.param({}, False, False, id="quiet"),
        pytest.param({"activeDeadlineSeconds": 60}, True, False, id="deadline"),
    ],
)
def test_first_statuses_in_a_burst(spec: Object, *, is_busy: bool, postpones: bool) -> None:
    """They are written later, except of a TrainJob that has to be requeued at its deadline."""
    assert FirstStatusDebounce(lambda: is_busy).postpones(train_job(**spec)) is postpones
