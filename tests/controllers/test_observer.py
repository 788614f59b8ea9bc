"""What a reconcile observes of plugins and of the cluster."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.controllers.test_failure_log import CULPRIT
from tests.framework.samples import train_job, train_job_object
from tests.framework.status.test_status import COMPLETE, CREATED, condition, jobs, pending, restarting
from trainer.api.trainjob import TrainJob
from trainer.api.trainjob_status import ConditionType
from trainer.controllers.job import Job
from trainer.controllers.job_status import SECONDS, Debounce, Observer
from trainer.framework.pipeline import Pipeline
from trainer.framework.plugin_api.extension_points import Plugin
from trainer.framework.plugin_api.reports import Outcome, StatusCondition, StatusReport
from trainer.framework.startup.registry import Registry
from trainer.framework.status.status import Observation
from trainer.kube.selection import Selection
from trainer_kube_testing import FakeClient, ManualClock

FAILED = Outcome(ConditionType.FAILED, "FailedJobs", "a job failed", CULPRIT)
VERIFIED = StatusCondition("acme.com/Verified", True, "Fine")


class Everything:
    """Reports all that can be reported."""

    name = "everything"
    condition_types = frozenset({VERIFIED.type})

    def train_job_status(self, train_job: TrainJob) -> StatusReport:
        """See `TrainJobStatus`."""
        return StatusReport(jobs(active=1), problems=[pending(), restarting()], conditions=[VERIFIED])


class Broken:
    """Raises when it is called."""

    name = "broken"
    condition_types = frozenset({"acme.com/Broken"})

    def train_job_status(self, train_job: TrainJob) -> StatusReport:
        """See `TrainJobStatus`."""
        raise LookupError("status")


async def observe(
    job: TrainJob, *plugins: Plugin, outcome: Outcome | None = None, client: FakeClient | None = None
) -> Observation:
    """The observation of a TrainJob."""
    observer = Observer(Pipeline(Registry(plugins)), client or FakeClient(), ManualClock())
    return await observer.observe(Job(job, train_job_object()), CREATED, outcome)


async def test_reports_are_observed() -> None:
    """What plugins report is observed; a new reason has to last first."""
    seen = await observe(train_job(), Everything())
    assert (seen.ensured, seen.outcome, seen.jobs) == (CREATED, None, jobs(active=1))
    assert [each.type for each in seen.pod_problems] == [ConditionType.RESTARTING]
    assert seen.requeue_after == SECONDS
    assert (seen.conditions, seen.plugin_types) == ((VERIFIED,), {VERIFIED.type})
    assert seen.errors == ()


async def test_a_suspended_job_has_no_pod_problems() -> None:
    """Its pods are being deleted, whatever they wait for or restart after."""
    assert (await observe(train_job(suspend=True), Everything())).pod_problems == ()


async def test_the_log_of_a_failure() -> None:
    """The log of the culprit is read."""
    client = FakeClient()
    client.add({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "default"}})
    client.log("a", "default").write(b"last words\n")
    seen = await observe(train_job(), Everything(), outcome=FAILED, client=client)
    assert (seen.outcome, seen.log, seen.pod_problems) == (FAILED, ("last words",), ())


async def test_a_failure_without_pods_remembers_the_last_restart() -> None:
    """The condition Restarting keeps its message."""
    reported = "RestartingJobSet: restart 1: pod a: container trainer exited with code 3"
    job = train_job(status={"conditions": [condition("Restarting", "False", "RestartEnded", reported)]})
    outcome = Outcome(ConditionType.FAILED, "FailedJobs", "a job failed", jobs=Selection("default"))
    seen = await observe(job, Everything(), outcome=outcome)
    assert seen.outcome is not None
    assert seen.outcome.message == (
        "a job failed; no failed pod is left that would say more; "
        "before that: restart 1: pod a: container trainer exited with code 3"
    )


async def test_a_finished_job_is_only_counted() -> None:
    """How it ended is final, so its log is not read again."""
    job = train_job(status={"conditions": [condition("Complete", "True", "Done")]})
    client = FakeClient()
    seen = await observe(job, Everything(), outcome=FAILED, client=client)
    assert (seen.outcome, seen.jobs, seen.conditions) == (None, jobs(active=1), ())
    assert client.requests == []


async def test_a_plugin_that_raises_hides_no_other_report() -> None:
    """Its error is observed, and the reports of the others are too."""
    seen = await observe(train_job(), Broken(), Everything(), outcome=COMPLETE)
    assert (seen.outcome, seen.jobs, seen.conditions) == (COMPLETE, jobs(active=1), (VERIFIED,))
    assert [str(problem) for problem in seen.errors] == [
        "Internal error: plugin broken failed in train_job_status: LookupError: status"
    ]


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
    """A reason that goes away at once is never reported."""
    debounce, job = Debounce(clock), train_job()
    debounce.filter(job, [pending()])
    await clock.advance(SECONDS)
    assert debounce.filter(job, []) == ((), None)
    assert debounce.filter(job, [pending()]) == ((), SECONDS)


@pytest.mark.parametrize(
    "reported",
    [
        pytest.param("1 pod cannot start: x", id="reason-of-the-condition"),
        pytest.param("ImagePullBackOff: 1 pod cannot start: x", id="written-by-an-earlier-version"),
    ],
)
def test_what_was_reported_is_not_held_back(clock: ManualClock, reported: str) -> None:
    """After a restart of the manager the condition shows it; restarts are reported at once."""
    job = train_job(status={"conditions": [condition("Pending", "True", "ImagePullBackOff", reported)]})
    assert Debounce(clock).filter(job, [pending(), restarting()])[1] is None
    over = train_job(status={"conditions": [condition("Pending", "False", "NoPodWaits", reported)]})
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
