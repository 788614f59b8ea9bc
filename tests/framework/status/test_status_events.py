"""Which changes of the status become events."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.framework.samples import train_job
from tests.framework.status.test_status import (
    BEFORE,
    CREATED,
    FAILED,
    NOW,
    UNBUILT,
    condition,
    jobs,
    pending,
    restarting,
    stopping,
)
from trainer.framework.plugin_api.failure import FailedContainer
from trainer.framework.plugin_api.reports import StatusCondition
from trainer.framework.status.status import Observation, next_status
from trainer.framework.status.status_events import status_events
from trainer.kube.objects import Object

SUCCEEDED = ("Normal", "JobsCreationSucceeded", "Succeeded to create Jobs")
IS_CREATED = condition("Created", "True", "JobsCreationSucceeded", "Succeeded to create Jobs")
IS_NOT_BUILT = condition("Created", "False", "JobsBuildFailed", "Failed to build Jobs: x")
WAITS = condition("Pending", "True", "ImagePullBackOff", "ImagePullBackOff: 1 pod cannot start: x")
CULPRIT = FailedContainer("pod a: it failed", "a", "trainer")
RESTARTS = condition("Restarting", "True", "RestartingJobSet", "RestartingJobSet: restart 1: x")


@pytest.mark.parametrize(
    ("before", "suspend", "seen", "events"),
    [
        pytest.param([], False, Observation(CREATED), [], id="created"),
        pytest.param([IS_NOT_BUILT], False, Observation(CREATED), [SUCCEEDED], id="created-after-a-failure"),
        pytest.param(
            [],
            False,
            Observation(replace(CREATED, message="Succeeded to create Jobs; x", is_whole=False)),
            [("Warning", "ChangesNotApplied", "Succeeded to create Jobs; x")],
            id="created-in-part",
        ),
        pytest.param(
            [], False, Observation(UNBUILT), [("Warning", "JobsBuildFailed", "Failed to build Jobs: x")], id="not-built"
        ),
        pytest.param(
            [IS_CREATED, WAITS],
            False,
            Observation(CREATED, pod_problems=(pending("ErrX"), pending())),
            [("Warning", "ErrX", "1 pod cannot start: x")],
            id="one-more-reason",
        ),
        pytest.param(
            [IS_CREATED, WAITS],
            False,
            Observation(CREATED, jobs=jobs(ready=1)),
            [("Normal", "NoPodWaits", "No pod is waiting any longer")],
            id="pods-have-started",
        ),
        pytest.param(
            [IS_CREATED, WAITS],
            True,
            Observation(CREATED),
            [("Normal", "Suspended", "TrainJob is suspended")],
            id="a-suspended-job-has-no-pods",
        ),
        pytest.param(
            [IS_CREATED],
            False,
            Observation(CREATED, pod_problems=(stopping(),)),
            [("Warning", "StoppingPods", "pods are stopping: node-0")],
            id="pods-stop",
        ),
        pytest.param(
            [IS_CREATED, condition("Stopping", "True", "StoppingPods", "2 pods are stopping: node-0, node-1")],
            False,
            Observation(CREATED, pod_problems=(stopping(),)),
            [],
            id="fewer-pods-stop",
        ),
        pytest.param(
            [IS_CREATED],
            True,
            Observation(CREATED, pod_problems=(stopping("SuspendingPods"),)),
            [("Normal", "Suspended", "TrainJob is suspended")],
            id="pods-stop-since-somebody-has-suspended-it",
        ),
        pytest.param(
            [IS_CREATED, condition("Stopping", "True", "StoppingPods", "pods are stopping: node-0")],
            False,
            Observation(CREATED, pod_problems=(restarting(),)),
            [("Warning", "RestartingJobSet", "restart 1: pod a failed")],
            id="stopped-and-restarts",
        ),
        pytest.param(
            [IS_CREATED, RESTARTS],
            False,
            Observation(CREATED, pod_problems=(restarting("restart 2"),)),
            [("Warning", "RestartingJobSet", "restart 2: pod a failed")],
            id="next-restart",
        ),
        pytest.param(
            [IS_CREATED, RESTARTS],
            False,
            Observation(CREATED, replace(FAILED, culprit=CULPRIT), log=("one", "two")),
            [
                ("Warning", "FailedJobs", "a: failed"),
                ("Warning", "LastLogLines", "pod a, container trainer:\none\ntwo"),
            ],
            id="failed",
        ),
        pytest.param(
            [IS_CREATED],
            False,
            Observation(CREATED, FAILED, log=("a" * 600, "b" * 400, "c" * 299)),
            [("Warning", "FailedJobs", "a job failed"), ("Warning", "LastLogLines", f"{'b' * 400}\n{'c' * 299}")],
            id="the-end-of-the-log-is-what-counts",
        ),
        pytest.param(
            [IS_CREATED, condition("acme.com/Fine", "True", "Yes", "m")],
            False,
            Observation(
                CREATED,
                conditions=(
                    StatusCondition("acme.com/Fine", True, "Yes", "new words"),
                    StatusCondition("acme.com/New", False, "No"),
                ),
                plugin_types=frozenset({"acme.com/Fine", "acme.com/New"}),
            ),
            [("Normal", "No", "acme.com/New is False")],
            id="plugins",
        ),
    ],
)
def test_events(before: list[Object], suspend: bool, seen: Observation, events: list[tuple[str, str, str]]) -> None:
    """News are reported once; details that change all the time are not news."""
    job = train_job(suspend=suspend, status={"conditions": before} if before else None)
    assert list(status_events(job.status, next_status(job, seen, NOW), seen)) == events


def test_a_new_generation_is_no_event() -> None:
    """That a change was seen is in the status, and nothing happened."""
    job = train_job(status={"conditions": [IS_CREATED | {"observedGeneration": 1}], "observedGeneration": 1})
    job.metadata.generation = 2
    after = next_status(job, Observation(CREATED), BEFORE)
    assert after != job.status
    assert list(status_events(job.status, after, Observation(CREATED))) == []
