"""What waits in the queues of Kueue."""

from __future__ import annotations

from typing import Any

import pytest

from packages.dashboard.tests.conftest import UserClient, visiting
from trainer.explain.suspension import WORKLOADS
from trainer.kube.errors import ForbiddenError
from trainer.kube.objects import Object
from trainer.kube.resource import Resource
from trainer_dashboard.requests.queues import SHOWN

WORKLOAD = WORKLOADS[0]
LOCAL_QUEUE = Resource(WORKLOAD.group, WORKLOAD.version, "localqueues", "LocalQueue")


def workload(name: str, *conditions: tuple[str, str], created: str = "2026-01-01T00:00:00Z", **spec: Any) -> Object:
    """A Workload of a TrainJob."""
    container = {"name": "node", "resources": {"requests": {"nvidia.com/gpu": 4}}}
    pod_set = {"name": "node", "count": 2, "template": {"spec": {"containers": [container]}}}
    owner = {"apiVersion": "trainer.kubeflow.org/v2alpha1", "kind": "TrainJob", "name": name, "controller": True}
    said = [{"type": kind, "status": status, "message": f"{kind} {name}"} for kind, status in conditions]
    return {
        "apiVersion": WORKLOAD.api_version,
        "kind": WORKLOAD.kind,
        "metadata": {
            "name": f"trainjob-{name}",
            "namespace": "default",
            "uid": f"uid-of-{name}",
            "creationTimestamp": created,
            "ownerReferences": [owner],
        },
        "spec": {"queueName": "team", "podSets": [pod_set]} | spec,
        "status": {"conditions": said},
    }


async def test_queues(client: UserClient) -> None:
    """Waiting Workloads come by priority and age, with what they ask for and why they wait."""
    client.serve(WORKLOAD)
    for each in (
        workload("late", ("QuotaReserved", "False"), created="2026-01-02T00:00:00Z"),
        workload("early", ("QuotaReserved", "True")),
        workload("urgent", priority=5, active=False),
        workload("runs", ("QuotaReserved", "True"), ("Admitted", "True")),
        workload("ended", ("Admitted", "True"), ("Finished", "True")),
        workload("elsewhere", queueName="other"),
    ):
        client.add(each)
    async with visiting(client) as visitor:
        _, answer = await visitor.json("/api/queues")
    assert (answer["isServed"], answer["problems"], answer["more"]) == (True, [], 0)
    assert answer["queues"] == [
        {"namespace": "default", "name": "other", "admitted": 0, "waiting": 1, "clusterQueue": ""},
        {"namespace": "default", "name": "team", "admitted": 1, "waiting": 3, "clusterQueue": ""},
    ]
    assert [(each["owner"], each["place"], each["message"]) for each in answer["workloads"]] == [
        ("TrainJob elsewhere", 1, ""),
        ("TrainJob urgent", None, "is inactive"),
        ("TrainJob early", 1, "has its quota, and waits for admission checks"),
        ("TrainJob late", 2, "QuotaReserved late"),
    ]
    assert [each["training"] for each in answer["workloads"]] == ["elsewhere", "urgent", "early", "late"]
    assert {each["gpus"] for each in answer["workloads"]} == {8}


@pytest.mark.parametrize(
    ("served", "problems"),
    [
        pytest.param(False, [], id="no-kueue"),
        pytest.param(True, ["workloads cannot be listed: no"], id="forbidden"),
    ],
)
async def test_nothing_to_show(client: UserClient, served: bool, problems: list[str]) -> None:
    """Without Kueue there are no queues, and without rights it is said."""
    if served:
        client.serve(WORKLOAD)
        client.faults.fail(ForbiddenError(403, "no"), verb="list", resource=WORKLOAD)
    async with visiting(client) as visitor:
        _, answer = await visitor.json("/api/queues")
    nothing = {"notes": [], "queues": [], "workloads": [], "more": 0, "clusterQueues": [], "moreClusterQueues": 0}
    assert answer == {"isServed": served, "problems": problems} | nothing


def local_queue(name: str, **status: Any) -> Object:
    """A queue of a namespace."""
    return {
        "apiVersion": LOCAL_QUEUE.api_version,
        "kind": LOCAL_QUEUE.kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"clusterQueue": "research"},
        "status": status,
    }


@pytest.mark.parametrize(
    ("forbidden", "queues"),
    [
        pytest.param(None, [("empty", 0, 0), ("team", 0, 1)], id="all"),
        pytest.param(WORKLOAD, [("empty", 0, 0), ("team", 4, 7)], id="no-workloads"),
        pytest.param(LOCAL_QUEUE, [("team", 0, 1)], id="no-local-queues"),
    ],
)
async def test_local_queues(client: UserClient, forbidden: Resource | None, queues: list[tuple[str, int, int]]) -> None:
    """Queues without Workloads are shown, and where Workloads may not be listed what the queues say they hold."""
    for resource in (WORKLOAD, LOCAL_QUEUE):
        client.serve(resource)
    client.add(workload("waits"))
    client.add(local_queue("team", admittedWorkloads=4, pendingWorkloads=7))
    client.add(local_queue("empty", admittedWorkloads="many"))
    if forbidden is not None:
        client.faults.fail(ForbiddenError(403, "no"), verb="list", resource=forbidden, times=None)
    async with visiting(client) as visitor:
        _, answer = await visitor.json("/api/queues")
    assert [(each["name"], each["admitted"], each["waiting"]) for each in answer["queues"]] == queues
    assert bool(answer["problems"]) is (forbidden == WORKLOAD)
    assert {each["clusterQueue"] for each in answer["queues"]} == ({""} if forbidden == LOCAL_QUEUE else {"research"})


async def test_many(client: UserClient) -> None:
    """A page has a part of a long queue, and says how many more there are."""
    client.serve(WORKLOAD)
    for number in range(SHOWN + 3):
        client.add(workload(f"job-{number}"))
    async with visiting(client) as visitor:
        _, answer = await visitor.json("/api/queues")
    assert (len(answer["workloads"]), answer["more"]) == (SHOWN, 3)
