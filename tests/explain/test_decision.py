"""Suspending and resuming TrainJobs where Kueue decides whether they run, and where it does not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.conftest import train_job
from trainer.api.kueue import QUEUE_LABEL
from trainer.api.trainjob import TRAIN_JOBS
from trainer.explain.decision import Decision, set_suspend
from trainer.explain.suspension import JOB_UID, WORKLOADS
from trainer.kube.errors import ForbiddenError, NotFoundError
from trainer.kube.objects import Object, name_of
from trainer.kube.resource import Resource
from trainer.workloads import JOBSETS
from trainer_kube_testing import FakeClient

HELD = "its Workload of-demo of Kueue is inactive"
DECIDES = "Kueue's queue team decides when it runs"
JOBSET: Object = {
    "apiVersion": JOBSETS.api_version,
    "kind": JOBSETS.kind,
    "metadata": {"name": "demo", "namespace": "default", "uid": "uid-of-jobset"},
    "spec": {},
}


def workload(uid: str, name: str = "of-demo", *, resource: Resource = WORKLOADS[0], **fields: Any) -> Object:
    """A Workload for the job with a uid."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", "labels": {JOB_UID: uid}},
        "spec": {"queueName": "team", "active": fields.pop("active", True)},
        **fields,
    }


def job(*, suspend: bool = False, queue: str = "") -> Object:
    """The TrainJob."""
    made = train_job("demo", state="Running")
    made["metadata"] |= {"uid": "uid-of-demo", "labels": {QUEUE_LABEL: queue} if queue else {}}
    return made | {"spec": made["spec"] | {"suspend": suspend}}


def cluster(*objects: Object, kueue: Resource | None = WORKLOADS[0]) -> FakeClient:
    """A cluster, perhaps with a version of Kueue."""
    return FakeClient(*objects, resources=[TRAIN_JOBS, JOBSETS, *([kueue] if kueue else [])])


def state(client: FakeClient, kueue: Resource = WORKLOADS[0]) -> tuple[bool, dict[str, bool]]:
    """Whether the TrainJob is suspended, and which Workloads are active."""
    (stored,) = client.objects(TRAIN_JOBS)
    return stored["spec"]["suspend"], {name_of(each): each["spec"]["active"] for each in client.objects(kueue)}


FINISHED: Object = {"status": {"conditions": [{"type": "Finished", "status": "True"}]}}


@pytest.mark.parametrize(
    ("before", "objects", "suspend", "decision", "after", "active"),
    [
        pytest.param(False, [workload("uid-of-demo")], True, Decision(True, f"{HELD} until it is resumed"),
                     False, {"of-demo": False}, id="suspend a TrainJob that Kueue queues"),
        pytest.param(True, [workload("uid-of-demo", active=False)], False, Decision(True, DECIDES),
                     True, {"of-demo": True}, id="resume a TrainJob that Kueue queues"),
        pytest.param(False, [JOBSET, workload("uid-of-jobset")], True, Decision(True, f"{HELD} until it is resumed"),
                     False, {"of-demo": False}, id="suspend one whose JobSet it queues"),
        pytest.param(False, [JOBSET, workload("uid-of-jobset", active=False)], False, Decision(True, DECIDES),
                     False, {"of-demo": True}, id="resume one whose JobSet it queues"),
        pytest.param(True, [JOBSET, workload("uid-of-jobset")], False, Decision(True, DECIDES),
                     False, {"of-demo": True}, id="resume one that was suspended by hand"),
        pytest.param(False, [workload("uid-of-demo", active=False)], True,
                     Decision(False, f"TrainJob demo is suspended already: {HELD}"),
                     False, {"of-demo": False}, id="inactive already"),
        pytest.param(True, [workload("uid-of-demo")], False,
                     Decision(False, f"Workload of-demo of TrainJob demo is active: {DECIDES}"),
                     True, {"of-demo": True}, id="it waits in its queue"),
        pytest.param(False, [workload("uid-of-demo"), workload("uid-of-demo", "slice")], True,
                     Decision(True, f"{HELD} until it is resumed"), False, {"of-demo": False, "slice": False},
                     id="several slices"),
        pytest.param(False, [workload("uid-of-demo", **FINISHED), workload("another", "other")], True, Decision(True),
                     True, {"of-demo": True, "other": True}, id="a finished Workload, and that of another job"),
    ],
)  # fmt: skip
async def test_kueue(
    before: bool, objects: list[Object], suspend: bool, decision: Decision, after: bool, active: dict[str, bool]
) -> None:
    """Its Workload is deactivated or activated, and spec.suspend of what it decides about is left to it."""
    made = job(suspend=before)
    client = cluster(made, *objects)
    assert await set_suspend(client, made, suspend=suspend, field_manager="test") == decision
    assert state(client) == (after, active)


@pytest.mark.parametrize(
    ("suspend", "condition", "remark"),
    [
        pytest.param(
            True,
            {"type": "Suspended", "status": "False", "reason": "Resumed"},
            "is suspended already, but somebody else has resumed its Jobs: resume and suspend it to stop them",
            id="somebody has resumed the JobSet",
        ),
        pytest.param(
            False,
            {"type": "Pending", "status": "True", "reason": "JobSetSuspended"},
            "is not suspended, but its JobSet is: resume the JobSet, or suspend and resume the TrainJob",
            id="somebody has suspended the JobSet",
        ),
    ],
)
async def test_jobset_that_others_have_changed(suspend: bool, condition: dict[str, str], remark: str) -> None:
    """Where there is nothing to do, the remark says how to get there when the Jobs are not as the TrainJob asks for."""
    made = job(suspend=suspend) | {"status": {"conditions": [condition]}}
    decision = await set_suspend(cluster(made), made, suspend=suspend, field_manager="test")
    assert decision == Decision(False, f"TrainJob demo {remark}")


async def test_older_kueue() -> None:
    """Its former version is found as well."""
    made = job()
    client = cluster(made, workload("uid-of-demo", resource=WORKLOADS[1]), kueue=WORKLOADS[1])
    client.faults.fail(NotFoundError(404, "no such resource"), times=None, resource=WORKLOADS[0])
    await set_suspend(client, made, suspend=True, field_manager="test")
    assert state(client, WORKLOADS[1]) == (False, {"of-demo": False})


async def test_without_kueue() -> None:
    """The TrainJob itself decides."""
    made = job()
    client = cluster(made, kueue=None)
    for resource in WORKLOADS:
        client.faults.fail(NotFoundError(404, "no such resource"), times=None, resource=resource)
    assert await set_suspend(client, made, suspend=True, field_manager="test") == Decision(True)
    assert client.objects(TRAIN_JOBS)[0]["spec"]["suspend"] is True


@pytest.mark.parametrize(
    ("verb", "right", "name"),
    [
        pytest.param("patch", "patch", "of-demo", id="reads only"),
        pytest.param("list", "list and patch", "NAME", id="reads nothing"),
    ],
)
@pytest.mark.parametrize("owner", ["TrainJob", "JobSet"])
async def test_forbidden(verb: str, right: str, name: str, owner: str) -> None:
    """Who may not change Workloads changes nothing, and reads which right it takes and what somebody else can run."""
    made = job(queue="team" if owner == "TrainJob" else "")
    jobset: Object = JOBSET | {
        "metadata": JOBSET["metadata"] | {"labels": {QUEUE_LABEL: "team"} if owner == "JobSet" else {}}
    }
    client = cluster(made, jobset, workload(f"uid-of-{'demo' if owner == 'TrainJob' else 'jobset'}"))
    client.faults.fail(ForbiddenError(403, "jane may not"), verb=verb, resource=WORKLOADS[0])

    with pytest.raises(ForbiddenError) as caught:
        await set_suspend(client, made, suspend=True, field_manager="test")

    assert str(caught.value) == (
        "Kueue's queue team decides whether TrainJob demo runs, by a Workload that you may not change: ask for the "
        f"right to {right} workloads.kueue.x-k8s.io, or have somebody run kubectl patch workload {name} --type merge "
        """-p '{"spec":{"active":false}}' -n default (jane may not)"""
    )
    assert state(client) == (False, {"of-demo": True})


async def test_no_queue_and_no_rights() -> None:
    """Who may not read Workloads suspends what is in no queue as ever."""
    made = job()
    client = cluster(made)
    client.faults.fail(ForbiddenError(403, "jane may not"), times=None, verb="list", resource=WORKLOADS[0])
    client.faults.fail(ForbiddenError(403, "jane may not"), times=None, verb="get", resource=JOBSETS)
    assert await set_suspend(client, made, suspend=True, field_manager="test") == Decision(True)
