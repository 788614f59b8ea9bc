"""Runtimes and queues of the namespaces in which a user has rights."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from packages.dashboard.tests.access.test_cluster_authenticator import visiting
from packages.dashboard.tests.conftest import train_job
from packages.dashboard.tests.members import ClusterClient
from packages.dashboard.tests.requests.test_queues import WORKLOAD, workload
from packages.dashboard.tests.requests.test_runtimes import runtime
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.kube.errors import ForbiddenError, TransportError
from trainer_dashboard.access.visible import LISTED, NamespaceScope, visible
from trainer_kube_testing import FakeClient, ManualClock

TEAMS = ("a", "b", "c")
LEFT_OUT = "are shown of the namespaces whose TrainJobs you see: you may not list them in all"


@pytest.fixture
def cluster() -> ClusterClient:
    """Three teams, each with a TrainJob, a runtime and a Workload of its own; nobody trains in a fourth namespace."""
    cluster = ClusterClient(*(train_job("demo", namespace=team) for team in TEAMS))
    for resource in (CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES, WORKLOAD):
        cluster.serve(resource)
    cluster.add(runtime(CLUSTER_TRAINING_RUNTIMES, "torch"))
    for team in (*TEAMS, "idle"):
        cluster.add(runtime(TRAINING_RUNTIMES, f"runtime-of-{team}", team))
        queued = workload(f"queued-of-{team}")
        cluster.add(queued | {"metadata": queued["metadata"] | {"namespace": team}})
    return cluster


KINDS = ("trainingruntimes", "workloads")


def of(*namespaces: str) -> list[tuple[str, str]]:
    """Rights to see TrainJobs and all kinds in namespaces."""
    return [(f"list {kind}", where) for kind in ("trainjobs", *KINDS) for where in namespaces]


@pytest.mark.parametrize(
    ("grants", "shown", "problem", "note"),
    [
        pytest.param([], [], "cannot be listed: ", "", id="no-right"),
        pytest.param(of("b"), ["b"], "", LEFT_OUT, id="one-namespace"),
        pytest.param(of("b", "c"), ["b", "c"], "", LEFT_OUT, id="two-namespaces"),
        pytest.param(of("*"), ["a", "b", "c", "idle"], "", "", id="all"),
        pytest.param(of("b") + of("*")[1:], ["a", "b", "c", "idle"], "", "", id="all-but-of-train-jobs"),
        pytest.param(of("*")[:1] + of("c"), ["c"], "cannot be listed in a, b: ", LEFT_OUT, id="train-jobs-of-all"),
        pytest.param(of("a")[:1], [], "cannot be listed in a: ", LEFT_OUT, id="train-jobs-alone"),
        pytest.param(of("idle"), [], "cannot be listed: ", "", id="a-namespace-without-train-jobs"),
    ],
)
@pytest.mark.parametrize(
    ("kind", "path"), [pytest.param(kind, f"/api/{kind}", id=kind) for kind in ("runtimes", "queues")]
)
async def test_rights(
    cluster: ClusterClient,
    kind: str,
    path: str,
    grants: list[tuple[str, str]],
    shown: list[str],
    problem: str,
    note: str,
) -> None:
    """Users see the runtimes and queues of the namespaces in which they may list them, and what is left out."""
    for rule, namespace in grants:
        cluster.grant(rule, namespace=namespace)
    cluster.grant("list clustertrainingruntimes")
    async with visiting(cluster, ManualClock()) as visitor:
        status, answer = await visitor.json(path)
    assert status == 200
    found = [each["namespace"] for each in answer[kind] if each["namespace"]]
    assert found == shown
    assert [problem in each for each in answer["problems"]] == ([True] if problem else [])
    assert [note in each for each in answer["notes"]] == ([True] if note else [])


async def test_runtimes_of_the_cluster(cluster: ClusterClient) -> None:
    """Runtimes of the cluster need a right of their own, without which those of a namespace are shown."""
    for rule, namespace in of("a"):
        cluster.grant(rule, namespace=namespace)
    async with visiting(cluster, ManualClock()) as visitor:
        _, answer = await visitor.json("/api/runtimes")
    assert [each["name"] for each in answer["runtimes"]] == ["runtime-of-a"]
    assert [each.partition(":")[0] for each in answer["problems"]] == ["clustertrainingruntimes cannot be listed"]


def scope_of(names: Iterable[str]) -> NamespaceScope:
    """Those of a user who may list TrainJobs in these namespaces."""

    async def namespaces() -> list[str]:
        return list(names)

    return NamespaceScope("", namespaces)


async def test_many_namespaces() -> None:
    """One answer reads a bounded number of namespaces, and says so."""
    client: Any = FakeClient(resources=[TRAINING_RUNTIMES])
    client.faults.fail(ForbiddenError(403, "no"), verb="list")
    client.add(runtime(TRAINING_RUNTIMES, "torch", "team-7"))
    found = await visible(client, TRAINING_RUNTIMES, scope_of(f"team-{number}" for number in range(LISTED + 1)))
    assert len(client.requests_of("list")) == 1 + LISTED
    assert len(found.objects) == 1
    assert f"the first {LISTED} of {LISTED + 1}" in found.problems[-1]


async def test_a_server_that_does_not_answer() -> None:
    """A failure in one of several namespaces is that of the whole answer."""
    client: Any = FakeClient(resources=[TRAINING_RUNTIMES])
    client.faults.fail(ForbiddenError(403, "no"), verb="list")
    client.faults.fail(TransportError("gone"), verb="list", times=None, skip=1)
    with pytest.raises(TransportError, match="gone"):
        await visible(client, TRAINING_RUNTIMES, scope_of(TEAMS))
