"""The status of a v1 job, from its TrainJob and pods."""

from __future__ import annotations

import pytest

from packages.v1_jobs.tests.controllers.samples import JAX, PYTORCH, jax_job, pytorch_job
from trainer.kube.objects import Object
from trainer_v1_jobs.api.status import JobStatus
from trainer_v1_jobs.controllers.roles import Counts
from trainer_v1_jobs.controllers.status import Seen, next_status, refused_status, unmanaged_status

BEFORE, NOW, END = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z", "2026-01-01T00:00:30Z"

Summary = list[tuple[str, str, str]]


def condition(type_: str, status: str = "True", reason: str = "", since: str = BEFORE) -> Object:
    """A stored condition of a job."""
    times = {"lastUpdateTime": since, "lastTransitionTime": since}
    return {"type": type_, "status": status, "reason": reason or f"PyTorchJob{type_}", "message": ""} | times


def train_job(*conditions: tuple[str, str]) -> Object:
    """A TrainJob with these conditions, which are True."""
    return {
        "status": {
            "conditions": [
                {"type": type_, "status": "True", "message": message, "lastTransitionTime": END}
                for type_, message in conditions
            ]
        }
    }


def summary(status: JobStatus) -> Summary:
    """Type, status and reason of each condition, in their order."""
    return [(each.type, each.status, each.reason or "") for each in status.conditions or []]


CREATED = ("Created", "True", "PyTorchJobCreated")
RUNNING = ("Running", "True", "PyTorchJobRunning")
RUNNING_STORED = (condition("Created"), condition("Running"))
BOTH_RUN = {"Master": Counts(active=1), "Worker": Counts(active=2)}
WAITING = {"Master": Counts(), "Worker": Counts()}


@pytest.mark.parametrize(
    ("stored", "seen", "expected"),
    [
        pytest.param((), Seen(WAITING), [CREATED], id="new"),
        pytest.param((), Seen(WAITING, train_job()), [CREATED], id="pods-wait"),
        pytest.param(
            (), Seen({"Master": Counts(), "Worker": Counts(active=2)}, train_job()), [CREATED], id="master-waits"
        ),
        pytest.param((condition("Created"),), Seen(BOTH_RUN, train_job()), [CREATED, RUNNING], id="runs"),
        pytest.param((condition("Created"),), Seen({"Worker": Counts(active=1)}, train_job()), [CREATED, RUNNING],
                     id="a-worker-runs-where-there-is-no-master"),
        pytest.param(RUNNING_STORED, Seen(WAITING, train_job()), [CREATED, RUNNING], id="runs-on-while-pods-change"),
        pytest.param(
            RUNNING_STORED,
            Seen({"Master": Counts(active=1), "Worker": Counts(1, 0, 1)}, train_job(("Restarting", "x"))),
            [CREATED, ("Restarting", "True", "PyTorchJobRestarting")],
            id="restarting-takes-the-place-of-running",
        ),
        pytest.param(
            (condition("Created"), condition("Restarting")),
            Seen(BOTH_RUN, train_job()),
            [CREATED, RUNNING],
            id="running-takes-the-place-of-restarting",
        ),
        pytest.param(
            RUNNING_STORED,
            Seen(BOTH_RUN, train_job(("Complete", "done"))),
            [CREATED, ("Running", "False", "PyTorchJobRunning"), ("Succeeded", "True", "PyTorchJobSucceeded")],
            id="succeeded",
        ),
        pytest.param(
            RUNNING_STORED,
            Seen({"Master": Counts(succeeded=1), "Worker": Counts(active=2)}, train_job()),
            [CREATED, ("Running", "False", "PyTorchJobRunning"), ("Succeeded", "True", "PyTorchJobSucceeded")],
            id="the-master-has-succeeded",
        ),
        pytest.param(
            RUNNING_STORED,
            Seen({"Master": Counts(succeeded=1, stopped=1), "Worker": Counts(failed=1)}, train_job()),
            [CREATED, RUNNING],
            id="the-master-is-stopped",
        ),
        pytest.param(
            RUNNING_STORED,
            Seen({"Master": Counts(succeeded=1), "Worker": Counts(failed=1)}, train_job(("Failed", "exit code 1"))),
            [CREATED, ("Running", "False", "PyTorchJobRunning"), ("Succeeded", "True", "PyTorchJobSucceeded")],
            id="a-worker-has-failed-after-the-master",
        ),
        pytest.param(
            RUNNING_STORED,
            Seen({"Master": Counts(active=1), "Worker": Counts(succeeded=2)}, train_job()),
            [CREATED, RUNNING],
            id="the-workers-have-succeeded",
        ),
        pytest.param(
            RUNNING_STORED,
            Seen(WAITING, train_job(("Failed", "exit code 1"))),
            [CREATED, ("Running", "False", "PyTorchJobRunning"), ("Failed", "True", "PyTorchJobFailed")],
            id="failed",
        ),
        pytest.param(
            RUNNING_STORED,
            Seen(BOTH_RUN, is_suspended=True),
            [CREATED, ("Running", "False", "PyTorchJobSuspended"), ("Suspended", "True", "PyTorchJobSuspended")],
            id="suspended-while-it-runs",
        ),
        pytest.param(
            (),
            Seen(WAITING, is_suspended=True),
            [CREATED, ("Suspended", "True", "PyTorchJobSuspended")],
            id="suspended-from-the-beginning",
        ),
        pytest.param(
            (condition("Created"), condition("Suspended")),
            Seen(WAITING),
            [CREATED, ("Suspended", "False", "PyTorchJobResumed")],
            id="resumed",
        ),
        pytest.param(
            (condition("Unmanaged"), condition("Created")), Seen(WAITING), [CREATED], id="taken-up-after-all"
        ),
        pytest.param(
            (condition("Created"), condition("Failed")),
            Seen(BOTH_RUN, train_job(("Complete", ""))),
            [CREATED, ("Failed", "True", "PyTorchJobFailed")],
            id="nothing-changes-after-the-end",
        ),
    ],
)  # fmt: skip
def test_conditions(stored: tuple[Object, ...], seen: Seen, expected: Summary) -> None:
    """Conditions have the operator's reasons, and the one that changed last comes last."""
    job = pytorch_job() | {"status": {"conditions": list(stored)}}
    assert summary(next_status(job, PYTORCH, seen, NOW)) == expected


def test_repeated() -> None:
    """What is derived from an unchanged world is what is stored."""
    seen = Seen(BOTH_RUN, train_job())
    first = next_status(pytorch_job(), PYTORCH, seen, BEFORE)
    assert next_status(pytorch_job() | {"status": first.to_object()}, PYTORCH, seen, NOW) == first


def test_replica_statuses() -> None:
    """Each role has its counts, and the selector of its pods as text and as the proposal has it."""
    counts = {"Master": Counts(active=1), "Worker": Counts(active=1, succeeded=1, failed=1)}
    found = next_status(pytorch_job(), PYTORCH, Seen(counts, train_job()), NOW).to_object()["replicaStatuses"]
    labels = {
        "training.kubeflow.org/job-name": "job",
        "training.kubeflow.org/operator-name": "pytorchjob-controller",
        "training.kubeflow.org/replica-type": "worker",
    }
    assert found["Worker"] == {
        "active": 1,
        "succeeded": 1,
        "failed": 1,
        "labelSelector": {"matchLabels": labels},
        "selector": ",".join(f"{name}={value}" for name, value in labels.items()),
    }
    assert found["Master"]["active"] == 1
    assert found["Master"]["failed"] == 0


def test_pods_that_run_at_the_end_have_succeeded() -> None:
    """As for the operator, which no longer looks at them."""
    found = next_status(pytorch_job(), PYTORCH, Seen(BOTH_RUN, train_job(("Complete", ""))), NOW).to_object()
    assert {role: each["succeeded"] for role, each in found["replicaStatuses"].items()} == {"Master": 1, "Worker": 2}
    assert {each["active"] for each in found["replicaStatuses"].values()} == {0}


@pytest.mark.parametrize(
    ("seen", "start", "completion"),
    [
        pytest.param(Seen(WAITING, train_job()), BEFORE, None, id="goes-on"),
        pytest.param(Seen(WAITING, train_job(("Complete", ""))), BEFORE, END, id="when-the-TrainJob-has-completed"),
        pytest.param(Seen(WAITING, train_job(("Failed", ""))), BEFORE, END, id="when-the-TrainJob-has-failed"),
        pytest.param(Seen(WAITING, is_suspended=True), BEFORE, None, id="suspended"),
    ],
)
def test_times(seen: Seen, start: str, completion: str | None) -> None:
    """The start stays, and the end is that of the TrainJob."""
    job = pytorch_job() | {"status": {"conditions": [condition("Created")], "startTime": BEFORE}}
    found = next_status(job, PYTORCH, seen, NOW)
    assert (found.start_time, found.completion_time) == (start, completion)


def test_a_resumed_job_starts_anew() -> None:
    """The time for activeDeadlineSeconds counts from the resumption."""
    stored = {"conditions": [condition("Created"), condition("Suspended")], "startTime": BEFORE}
    assert next_status(pytorch_job() | {"status": stored}, PYTORCH, Seen(WAITING), NOW).start_time == NOW


def test_why_it_has_failed() -> None:
    """The message has the operator's count and what the TrainJob says: container, exit code, log."""
    seen = Seen({"Worker": Counts(failed=2)}, train_job(("Failed", "container jax of job-node-0-0: exit code 3")))
    found = next_status(jax_job(), JAX, seen, NOW).conditions or []
    assert found[-1].message == (
        "JAXJob default/job is failed because 2 Worker replica(s) failed: container jax of job-node-0-0: exit code 3"
    )


def test_a_job_that_cannot_become_a_trainjob() -> None:
    """It has failed for good, with the fields and remedies."""
    found = refused_status(jax_job(), JAX, "spec.x: Required value", NOW)
    assert summary(found) == [("Failed", "True", "JAXJobFailedValidation")]
    assert found.completion_time == NOW


def test_a_job_that_nobody_works_on() -> None:
    """Unmanaged comes first, so that the state that the Training Operator has left is still shown."""
    job = pytorch_job() | {"status": {"conditions": list(RUNNING_STORED), "startTime": BEFORE}}
    found = unmanaged_status(job, "PodsOfTrainingOperator", "why", NOW)
    assert summary(found) == [("Unmanaged", "True", "PodsOfTrainingOperator"), CREATED, RUNNING]
    assert unmanaged_status(job | {"status": found.to_object()}, "PodsOfTrainingOperator", "why", END) == found
