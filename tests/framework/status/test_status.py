"""The state machine of a TrainJob (KEP-2170, "State Transition")."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.framework.samples import train_job
from trainer.api.trainjob_status import ConditionReason, ConditionType, JobStatus, TrainJobStatus
from trainer.framework.plugin_api.errors import BuildDefectError
from trainer.framework.plugin_api.failure import FailedContainer
from trainer.framework.plugin_api.reports import Outcome, PodProblem, StatusCondition
from trainer.framework.status.status import Ensured, Observation, next_status, owned_fields
from trainer.kube.objects import Object

BEFORE, NOW = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
CREATED = Ensured(True, ConditionReason.JOBS_CREATION_SUCCEEDED, "Succeeded to create Jobs")
UNBUILT = Ensured(False, ConditionReason.JOBS_BUILD_FAILED, "Failed to build Jobs: x")
COMPLETE = Outcome(ConditionType.COMPLETE, "AllJobsCompleted", "jobset completed successfully")
FAILED = Outcome(ConditionType.FAILED, "FailedJobs", "a job failed")


def condition(kind: str, status: str, reason: str, message: str = "", since: str = BEFORE) -> Object:
    """A condition as JSON."""
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since}


def pending(reason: str = "ImagePullBackOff", headline: str = "1 pod cannot start", details: str = "x") -> PodProblem:
    """Pods that cannot start."""
    return PodProblem(ConditionType.PENDING, reason, headline, lambda: details)


def stopping(reason: str = "StoppingPods") -> PodProblem:
    """Pods that go."""
    return PodProblem(ConditionType.STOPPING, reason, "pods are stopping", lambda: "node-0")


def restarting(headline: str = "restart 1", details: str = "pod a failed") -> PodProblem:
    """A restart."""
    return PodProblem(ConditionType.RESTARTING, "RestartingJobSet", headline, lambda: details)


def lost_node(headline: str = "node a is not ready", details: str = "pod a") -> PodProblem:
    """Pods on a lost node."""
    return PodProblem(ConditionType.STOPPING, "NodeNotReady", headline, lambda: details)


def jobs(**counts: int) -> list[JobStatus]:
    """The status of one replicated Job."""
    zeros = {"ready": 0, "succeeded": 0, "failed": 0, "active": 0, "suspended": 0}
    return [JobStatus.from_object({"name": "node"} | zeros | counts)]


def outline(status: TrainJobStatus) -> tuple[list[tuple[str, str, str]], str | None]:
    """Type, status and reason of the conditions, and the state."""
    return [(c.type, c.status, c.reason) for c in status.conditions or []], status.state


IS_CREATED = ("Created", "True", "JobsCreationSucceeded")


@pytest.mark.parametrize(
    ("before", "suspend", "seen", "conditions", "state"),
    [
        pytest.param(None, False, Observation(CREATED), [IS_CREATED], "Created", id="created"),
        pytest.param(
            None, False, Observation(UNBUILT), [("Created", "False", "JobsBuildFailed")], "Blocked", id="build-failed"
        ),
        pytest.param(
            None,
            True,
            Observation(UNBUILT),
            [("Created", "False", "JobsBuildFailed"), ("Suspended", "True", "Suspended")],
            "Blocked",
            id="resuming-would-not-help",
        ),
        pytest.param(
            None,
            False,
            Observation(CREATED, jobs=jobs(active=1), pod_problems=(pending(),)),
            [IS_CREATED, ("Pending", "True", "ImagePullBackOff")],
            "Pending",
            id="pods-cannot-start",
        ),
        pytest.param(
            {"conditions": [condition("Pending", "True", "Unschedulable", "m")], "state": "Pending"},
            False,
            Observation(CREATED, jobs=jobs(active=1, ready=1)),
            [("Pending", "False", "NoPodWaits"), IS_CREATED],
            "Running",
            id="pods-have-started-after-all",
        ),
        pytest.param(
            {"state": "Running"},
            False,
            Observation(CREATED, jobs=jobs(active=1), pod_problems=(restarting(),)),
            [IS_CREATED, ("Restarting", "True", "RestartingJobSet")],
            "Restarting",
            id="restarting",
        ),
        pytest.param(
            {"state": "Running"},
            False,
            Observation(CREATED, jobs=jobs(active=1), pod_problems=(pending(), restarting())),
            [IS_CREATED, ("Pending", "True", "ImagePullBackOff"), ("Restarting", "True", "RestartingJobSet")],
            "Pending",
            id="a-restart-that-cannot-go-on",
        ),
        pytest.param(
            {},
            False,
            Observation(CREATED, jobs=jobs(active=1), pod_problems=(stopping(), restarting())),
            [IS_CREATED, ("Stopping", "True", "StoppingPods"), ("Restarting", "True", "RestartingJobSet")],
            "Stopping",
            id="stopping-before-it-restarts",
        ),
        pytest.param(
            {"conditions": [condition("Stopping", "True", "StoppingPods", "m")], "state": "Stopping"},
            False,
            Observation(CREATED, jobs=jobs(active=1), pod_problems=(restarting(),)),
            [("Stopping", "False", "PodsGone"), IS_CREATED, ("Restarting", "True", "RestartingJobSet")],
            "Restarting",
            id="restarting-after-it-has-stopped",
        ),
        pytest.param(
            {},
            True,
            Observation(CREATED, jobs=jobs(active=1), pod_problems=(stopping("SuspendingPods"), pending())),
            [IS_CREATED, ("Suspended", "True", "Suspended"), ("Stopping", "True", "SuspendingPods")],
            "Stopping",
            id="suspended-with-pods",
        ),
        pytest.param(
            {"conditions": [condition("Stopping", "True", "SuspendingPods", "m")], "state": "Stopping"},
            True,
            Observation(CREATED, jobs=jobs(suspended=1)),
            [("Stopping", "False", "PodsGone"), IS_CREATED, ("Suspended", "True", "Suspended")],
            "Suspended",
            id="suspended-without-pods",
        ),
        pytest.param(
            {"conditions": [condition("Stopping", "True", "StoppingPods", "m")], "state": "Stopping"},
            False,
            Observation(CREATED, FAILED, jobs=jobs(failed=1), pod_problems=(stopping(),)),
            [("Stopping", "False", "PodsGone"), IS_CREATED, ("Failed", "True", "FailedJobs")],
            "Failed",
            id="failed-while-it-stops",
        ),
        pytest.param(
            {"conditions": [condition("Restarting", "True", "RestartingJobSet", "m")], "state": "Restarting"},
            False,
            Observation(CREATED, jobs=jobs(ready=1)),
            [("Restarting", "False", "RestartEnded"), IS_CREATED],
            "Running",
            id="restarted",
        ),
        pytest.param(
            {"conditions": [condition("Restarting", "True", "RestartingJobSet", "m")], "state": "Restarting"},
            False,
            Observation(CREATED, jobs=jobs(active=1)),
            [("Restarting", "True", "RestartingJobSet"), IS_CREATED],
            "Restarting",
            id="new-pods-are-not-ready-yet",
        ),
        pytest.param(
            {"conditions": [condition("Restarting", "True", "RestartingJobSet", "m")], "state": "Restarting"},
            True,
            Observation(CREATED, jobs=jobs(suspended=1)),
            [("Restarting", "False", "RestartEnded"), IS_CREATED, ("Suspended", "True", "Suspended")],
            "Suspended",
            id="suspended-while-restarting",
        ),
        pytest.param(
            {"state": "Running"},
            False,
            Observation(CREATED, jobs=jobs(active=1), pod_problems=(lost_node(), pending(), restarting())),
            [
                IS_CREATED,
                ("Stopping", "True", "NodeNotReady"),
                ("Pending", "True", "ImagePullBackOff"),
                ("Restarting", "True", "RestartingJobSet"),
            ],
            "Stopping",
            id="what-stops-holds-up-the-rest",
        ),
        pytest.param(
            {"conditions": [condition("Stopping", "True", "NodeNotReady", "m")], "state": "Stopping"},
            False,
            Observation(CREATED, jobs=jobs(active=1, ready=1)),
            [("Stopping", "False", "PodsGone"), IS_CREATED],
            "Running",
            id="node-is-back",
        ),
        pytest.param(
            {"conditions": [condition("Stopping", "True", "NodeNotReady", "m")], "state": "Stopping"},
            False,
            Observation(CREATED, outcome=FAILED, pod_problems=(lost_node(),)),
            [("Stopping", "False", "PodsGone"), IS_CREATED, ("Failed", "True", "FailedJobs")],
            "Failed",
            id="failed-with-its-node",
        ),
        pytest.param(
            None,
            True,
            Observation(CREATED, jobs=jobs(suspended=1)),
            [IS_CREATED, ("Suspended", "True", "Suspended")],
            "Suspended",
            id="created-suspended",
        ),
        pytest.param(
            {"conditions": [condition("Suspended", "True", "Suspended")], "state": "Suspended"},
            False,
            Observation(CREATED, jobs=jobs(active=1)),
            [("Suspended", "False", "Resumed"), IS_CREATED],
            "Created",
            id="resumed",
        ),
        pytest.param(
            {"state": "Running"},
            False,
            Observation(CREATED, jobs=jobs(active=1)),
            [IS_CREATED],
            "Running",
            id="a-pod-that-restarts-does-not-end-running",
        ),
        pytest.param(
            {"state": "Running", "conditions": [condition("Stalled", "True", "NoProgress", "m")]},
            False,
            Observation(CREATED, jobs=jobs(active=1, ready=1)),
            [IS_CREATED],
            "Stalled",
            id="no-progress",
        ),
        pytest.param(
            {"state": "Stalled", "conditions": [condition("Stalled", "False", "StallEnded", "m")]},
            False,
            Observation(CREATED, jobs=jobs(active=1)),
            [IS_CREATED],
            "Running",
            id="progress-again",
        ),
        pytest.param(
            {"state": "Stalled", "conditions": [condition("Stalled", "True", "NoProgress", "m")]},
            False,
            Observation(CREATED, jobs=jobs(active=1), pod_problems=(restarting(),)),
            [IS_CREATED, ("Restarting", "True", "RestartingJobSet")],
            "Restarting",
            id="restarting-explains-more",
        ),
        pytest.param(
            {"state": "Created", "conditions": [condition("Stalled", "True", "NoProgress", "m")]},
            False,
            Observation(CREATED, jobs=jobs(active=1)),
            [IS_CREATED],
            "Created",
            id="what-does-not-run-does-not-stall",
        ),
        pytest.param(
            {"state": "Running"},
            False,
            Observation(CREATED, COMPLETE, jobs(succeeded=1)),
            [IS_CREATED, ("Complete", "True", "AllJobsCompleted")],
            "Complete",
            id="complete",
        ),
        pytest.param(
            None,
            False,
            Observation(CREATED, FAILED, jobs(failed=1)),
            [IS_CREATED, ("Failed", "True", "FailedJobs")],
            "Failed",
            id="failed",
        ),
        pytest.param(
            {"conditions": [condition("Complete", "True", "AllJobsCompleted")], "state": "Complete"},
            True,
            Observation(),
            [("Complete", "True", "AllJobsCompleted")],
            "Complete",
            id="suspending-a-finished-TrainJob-changes-nothing",
        ),
        pytest.param(
            {"conditions": [condition("Failed", "True", "FailedJobs")], "state": "Failed"},
            False,
            Observation(None, COMPLETE),
            [("Failed", "True", "FailedJobs")],
            "Failed",
            id="an-end-is-final",
        ),
    ],
)
def test_transitions(
    before: Object | None, suspend: bool, seen: Observation, conditions: list[Any], state: str | None
) -> None:
    """Conditions and state follow from what was seen and what they were."""
    job = train_job(suspend=suspend, status=before)
    status = next_status(job, seen, NOW)
    assert outline(status) == (conditions, state)
    others = [each for each in (before or {}).get("conditions", []) if each["type"] == "Stalled"]
    ours = owned_fields(status)
    again = train_job(suspend=suspend, status=ours | {"conditions": [*ours.get("conditions", []), *others]})
    later = next_status(again, seen, "2027-01-01T00:00:00Z")
    assert owned_fields(later) == owned_fields(status), "doing it twice equals doing it once"


def test_transition_time_changes_only_with_the_status() -> None:
    """A new message keeps the time, a new status does not."""
    previous = {
        "conditions": [
            condition("Created", "True", "JobsCreationSucceeded", "old message"),
            condition("Suspended", "True", "Suspended"),
        ]
    }
    status = next_status(train_job(status=previous), Observation(CREATED), NOW)
    assert [(c.type, c.last_transition_time) for c in status.conditions or []] == [
        ("Created", BEFORE),
        ("Suspended", NOW),
    ]


@pytest.mark.parametrize(
    ("suspend", "previous", "creation", "started"),
    [
        pytest.param(False, {}, CREATED, NOW, id="created"),
        pytest.param(False, {"conditions": [condition("Suspended", "True", "Suspended")]}, CREATED, NOW, id="resumed"),
        pytest.param(True, {"startTime": BEFORE}, CREATED, BEFORE, id="suspended-again"),
        pytest.param(True, {}, replace(CREATED, is_resumed=True), NOW, id="resumed-by-others"),
        pytest.param(False, {}, Ensured(False, ConditionReason.JOBS_BUILD_FAILED, "no"), None, id="blocked"),
    ],
)
def test_start(suspend: bool, previous: Object, creation: Ensured, started: str | None) -> None:
    """The time when the Jobs were first allowed to run stays."""
    status = next_status(train_job(suspend=suspend, status=previous), Observation(creation), NOW)
    assert owned_fields(status).get("startTime") == started


def test_what_others_own_is_left_out() -> None:
    """Progress and foreign conditions are not in what we apply, so they stay with their owners."""
    previous = {
        "conditions": [
            condition("QuotaReserved", "True", "Kueue"),
            condition("Created", "True", "JobsCreationSucceeded"),
        ],
        "trainerStatus": {"progressPercentage": 3, "lastUpdatedTime": BEFORE},
    }
    status = next_status(train_job(status=previous), Observation(CREATED), NOW)
    assert owned_fields(status).keys() == {"conditions", "state", "startTime"}, (
        "without a generation there is none to tell"
    )
    assert [c["type"] for c in owned_fields(status)["conditions"]] == ["Created"]
    assert [c["type"] for c in owned_fields(TrainJobStatus.from_object(previous))["conditions"]] == ["Created"]


@pytest.mark.parametrize(
    ("before", "seen", "after"),
    [
        pytest.param(jobs(succeeded=1), Observation(), jobs(succeeded=1), id="what-has-ended"),
        pytest.param(jobs(suspended=1), Observation(), jobs(), id="what-was-deleted-suspended"),
        pytest.param(jobs(active=1), Observation(jobs=jobs(failed=1)), jobs(failed=1), id="still-there"),
    ],
)
def test_counts_outlive_the_jobs(before: list[JobStatus], seen: Observation, after: list[JobStatus]) -> None:
    """When the child Jobs of a finished TrainJob are gone, the last counts stay, but nothing runs any more."""
    previous = {
        "conditions": [condition("Failed", "True", "DeadlineExceeded")],
        "jobsStatus": [job.to_object() for job in before],
        "state": "Failed",
    }
    assert next_status(train_job(status=previous), seen, NOW).jobs_status == after


def test_observed_generation() -> None:
    """Every condition that is derived anew, and the status, tell of which generation they are."""
    job = train_job(suspend=True, status={"conditions": [condition("Suspended", "True", "Suspended")]})
    job.metadata.generation = 4
    status = next_status(job, Observation(CREATED), NOW)
    assert status.observed_generation == 4
    assert {c.type: (c.observed_generation, c.last_transition_time) for c in status.conditions or []} == {
        "Created": (4, NOW),
        "Suspended": (4, BEFORE),
    }


def test_an_end_keeps_its_generation() -> None:
    """A change of a finished TrainJob has been seen, but says nothing about how it ended."""
    complete = condition("Complete", "True", "AllJobsCompleted") | {"observedGeneration": 1}
    job = train_job(suspend=True, status={"conditions": [complete], "state": "Complete", "observedGeneration": 1})
    job.metadata.generation = 2
    fields = owned_fields(next_status(job, Observation(), NOW))
    assert fields == {"conditions": [complete], "state": "Complete", "observedGeneration": 2}


@pytest.mark.parametrize(
    ("reported", "seen", "message"),
    [
        pytest.param("", (pending(),), "1 pod cannot start: x", id="new"),
        pytest.param(
            "Unschedulable: 1 pod cannot start: pod a\nImagePullBackOff: 1 pod cannot start: pod b",
            (pending("ErrX", details=" many\n words "), pending("Unschedulable", details="pod c")),
            "1 pod cannot start: many words\nUnschedulable: 1 pod cannot start: pod a",
            id="one-of-several-has-changed",
        ),
        pytest.param("", (pending(details="y" * 9000),), f"1 pod cannot start: {'y' * 500}", id="long"),
    ],
)
def test_the_message_remembers_what_was_reported(reported: str, seen: tuple[PodProblem, ...], message: str) -> None:
    """Only a new headline changes the line of a problem; the first one's reason is that of the condition."""
    reason, _, message_before = reported.partition(": ")
    before = {"conditions": [condition("Pending", "True", reason, message_before)]} if reported else None
    status = next_status(train_job(status=before), Observation(CREATED, pod_problems=seen), NOW)
    (found,) = [c for c in status.conditions or [] if c.type == "Pending"]
    assert found.message == message
    assert found.reason == seen[0].reason


def test_the_cause_of_a_restart_stays() -> None:
    """When pods of a later failure are gone, the last restart still tells what happened then."""
    reported = "RestartingJobSet: restart 1: pod a failed"
    before = {"conditions": [condition("Restarting", "True", "RestartingJobSet", reported)], "state": "Restarting"}
    status = next_status(train_job(status=before), Observation(CREATED, jobs=jobs(ready=1)), NOW)
    (found,) = [c for c in status.conditions or [] if c.type == "Restarting"]
    assert (found.status, found.message) == ("False", reported)


def test_a_failure_tells_the_culprit_and_its_log() -> None:
    """The first line is the failure; then come what pod and JobSet say, and the last lines of the log."""
    culprit = FailedContainer("pod a: container trainer exited with code 3", "a", "trainer", "node-1")
    outcome = Outcome(ConditionType.FAILED, "FailedJobs", "a job failed", culprit)
    status = next_status(train_job(), Observation(CREATED, outcome, log=("Traceback", "ValueError: lr")), NOW)
    assert (status.conditions or [])[-1].message.splitlines() == [
        "node-1: ValueError: lr",
        "pod a: container trainer exited with code 3; a job failed",
        "last lines of its log:",
        "Traceback",
        "ValueError: lr",
    ]


def test_conditions_of_plugins() -> None:
    """They are ours, keep their times, and stay when they are not reported or the TrainJob has ended."""
    types = frozenset({"acme.com/Verified", "acme.com/Other"})
    previous = {
        "conditions": [
            condition("acme.com/Verified", "True", "Fine", "m"),
            condition("acme.com/Other", "Unknown", "NoIdea"),
            condition("QuotaReserved", "True", "Kueue"),
        ]
    }
    verified = StatusCondition("acme.com/Verified", None, "Lost", "n")
    seen = Observation(CREATED, COMPLETE, conditions=(verified,), plugin_types=types)
    status = next_status(train_job(status=previous), seen, NOW)
    assert [(c.type, c.status, c.reason, c.last_transition_time) for c in status.conditions or []] == [
        ("acme.com/Verified", "Unknown", "Lost", NOW),
        ("acme.com/Other", "Unknown", "NoIdea", BEFORE),
        ("Created", "True", "JobsCreationSucceeded", NOW),
        ("Complete", "True", "AllJobsCompleted", NOW),
    ]
    ended = train_job(status=owned_fields(status, types))
    assert next_status(ended, Observation(plugin_types=types), NOW) == status


def test_a_long_message_is_cut() -> None:
    """The message of a condition has no more characters than the API allows, so that its status can be written."""
    long = replace(UNBUILT, message="x" * 40_000)
    (created,) = next_status(train_job(), Observation(long), NOW).conditions or []
    assert created.message == "x" * 32_768


def test_a_plugin_that_raised_is_named() -> None:
    """What a plugin could not say is reported with the condition Created, which holds all the same."""
    error = BuildDefectError("plugin nosy failed in status_conditions", ValueError("oh"))
    (created,) = next_status(train_job(), Observation(CREATED, errors=(error,)), NOW).conditions or []
    assert created.status == "True"
    assert created.message == (
        "Succeeded to create Jobs; Internal error: plugin nosy failed in status_conditions: ValueError: oh"
    )
