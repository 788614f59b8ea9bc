"""The list of sweeps, and the page of one, as they are pushed."""

from __future__ import annotations

import anyio
import msgspec
import pytest

from packages.dashboard.tests.conftest import PAGE as BUNDLE
from packages.dashboard.tests.conftest import UserClient, running, visiting
from packages.dashboard.tests.members import TOKEN, ClusterClient
from packages.dashboard.tests.sweeps import RESOURCES, V1_SWEEPS, cluster, record, searched, sweep, trial
from trainer.api.optimization import OPTIMIZATION_JOBS
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.clock import SystemClock
from trainer.kube.objects import Object
from trainer.v1alpha1.discovery import V2ALPHA1, Served
from trainer_dashboard.access.authenticator import LoopbackAuthenticator
from trainer_dashboard.access.cluster_authenticator import ClusterAuthenticator
from trainer_dashboard.access.parties import Parties
from trainer_dashboard.server import Dashboard, DashboardOptions

ASSIGNED = {"lr": "0.01", "layers": "3", "optimizer": "sgd"}
PAGE = "/api/sweeps/default/digits"


@pytest.fixture
def client() -> UserClient:
    return cluster()


async def test_list(client: UserClient) -> None:
    """The list has all sweeps, and then what changes and goes."""
    client.add(sweep(state="Running", progressPercentage=5))
    async with visiting(client) as visitor, visitor.stream("/api/sweeps") as events:
        assert [(row["name"], row["progress"]) for row in (await events.next("rows"))["all"]] == [("digits", 5)]
        client.add(sweep(state="Running", progressPercentage=10))
        assert [row["progress"] for row in (await events.next("rows"))["changed"]] == [10]
        client.remove(OPTIMIZATION_JOBS, "digits", "default")
        assert (await events.next("rows"))["gone"] == [["default", "digits"]]


async def test_page(client: UserClient) -> None:
    """The page has the search and its trials, follows both, and ends with the sweep."""
    of = client.add(sweep(state="Running"))
    client.add(trial(1, ASSIGNED, [(1, 0.5)], of=of, state="Running"))
    client.add(trial(1, ASSIGNED, of=sweep("other"), state="Running"))
    client.add(trial(7, ASSIGNED, of=sweep(namespace="elsewhere"), state="Running"))
    async with visiting(client) as visitor, visitor.stream(PAGE) as events:
        assert (await events.next("sweep"))["metric"] == "val_loss"
        (first,) = (await events.next("trials"))["all"]
        assert (first["name"], first["value"], first["points"]) == ("digits-trial-1", 0.5, [[1, 0.5]])
        client.add(trial(2, ASSIGNED, of=of))
        assert [each["number"] for each in (await events.next("trials"))["changed"]] == [2]
        client.add(trial(1, ASSIGNED, [(1, 0.5), (2, 0.25)], of=of, state="Running"))
        changed = await events.next("trials")
        assert ([each["value"] for each in changed["changed"]], changed["gone"]) == ([0.25], [])
        client.add(sweep(state="Running", trials=[record(1, list(ASSIGNED.values()), value="0.2")]))
        client.remove(TRAIN_JOBS, "digits-trial-2", "default")
        news: Object = {}
        while not {"changed", "gone"} <= {name for name, value in news.items() if value}:
            news |= {name: value for name, value in (await events.next("trials")).items() if value}
        assert (news["changed"][0]["state"], news["gone"]) == ("Succeeded", [2])
        client.remove(OPTIMIZATION_JOBS, "digits", "default")
        assert await events.next("gone") == {}


async def test_importance(client: UserClient) -> None:
    """The importance of parameters follows the trials that have ended."""
    ended = [record(number, [f"1e-{number}", "3", "sgd"], value=str(number)) for number in range(1, 7)]
    client.add(sweep(trials=ended[:2]))
    async with visiting(client) as visitor, visitor.stream(PAGE) as events:
        assert (await events.next("importance"))["of"] == {}
        client.add(sweep(trials=ended))
        found = await events.next("importance")
        assert max(found["of"], key=found["of"].__getitem__) == "lr"


async def test_unknown(client: UserClient) -> None:
    """A sweep that is not there is gone at once."""
    async with visiting(client) as visitor, visitor.stream(PAGE) as events:
        assert await events.next("gone") == {}


async def test_v1alpha1() -> None:
    """On a cluster of v1alpha1 they are read in that version."""
    client = cluster()
    of = client.add(sweep() | {"apiVersion": V1_SWEEPS.api_version})
    client.add(trial(1, ASSIGNED, [(1, 0.5)], of=of) | {"apiVersion": "trainer.kubeflow.org/v1alpha1"})
    async with visiting(client, Served("v1alpha1")) as visitor, visitor.stream(PAGE) as events:
        assert [each["value"] for each in (await events.next("trials"))["all"]] == [0.5]


@pytest.mark.parametrize(
    ("client", "denied", "status", "expected"),
    [
        pytest.param(cluster(), set(), 200, True, id="served"),
        pytest.param(UserClient(), set(), 200, False, id="without-the-kind"),
        pytest.param(cluster(), {"list optimizationjobs"}, 404, False, id="without-the-right"),
    ],
)
async def test_optional(client: UserClient, denied: set[str], status: int, *, expected: bool) -> None:
    """Without the kind, or the right to list it, the page is as ever: nothing is shown, and nothing is wrong."""
    client.denied = denied
    async with visiting(client) as visitor:
        assert (await visitor.json("/api/cluster"))[1]["hasSweeps"] is expected
        async with visitor.ask("/api/sweeps") as answer:
            assert answer.status == status
        async with visitor.stream("/api/trainjobs") as events:
            assert (await events.next("rows"))["all"] == []


async def test_unknown_right(client: UserClient) -> None:
    """Where the API server does not say at the start what may be listed, the page is there all the same."""
    client.denied = {"create selfsubjectaccessreviews"}
    client.add(sweep())
    async with visiting(client, namespace="default") as visitor, visitor.stream("/api/sweeps") as events:
        assert [row["name"] for row in (await events.next("rows"))["all"]] == ["digits"]


def member_of(server: ClusterClient) -> Dashboard:
    """The dashboard of a cluster, for all of its users."""
    authenticator = ClusterAuthenticator(server, server, V2ALPHA1, clock=SystemClock())
    return Dashboard(server, V2ALPHA1, DashboardOptions(), authenticator=authenticator, bundle=BUNDLE)


async def test_rights_of_users() -> None:
    """Everybody sees the sweeps that they may list, and trials where they may list TrainJobs."""
    server = ClusterClient()
    for resource in RESOURCES[3:]:
        server.serve(resource)
    of = server.add(sweep(trials=[record(1, list(ASSIGNED.values()), value="0.5")]))
    server.add(sweep("secret", namespace="other"))
    server.add(trial(2, ASSIGNED, of=of))
    async with running(member_of(server), TOKEN) as visitor:
        assert (await visitor.json("/api/cluster"))[1]["hasSweeps"] is False
        status, answer = await visitor.json(PAGE)
        assert (status, answer["error"]) == (403, "you may not get OptimizationJobs in the namespace default")
    server.grant("list optimizationjobs", "get optimizationjobs", namespace="default")
    async with running(member_of(server), TOKEN) as visitor:
        with anyio.fail_after(20):
            assert (await visitor.json("/api/cluster"))[1]["hasSweeps"] is True
        async with visitor.stream("/api/sweeps") as events:
            assert [row["name"] for row in (await events.next("rows"))["all"]] == ["digits"]
        async with visitor.stream(PAGE) as events:
            assert await events.next("problems") == ["you may not list TrainJobs in the namespace default"]
            assert [each["number"] for each in (await events.next("trials"))["all"]] == [1]
    server.grant("list trainjobs", namespace="default")
    async with running(member_of(server), TOKEN) as visitor, visitor.stream(PAGE) as events:
        assert [each["number"] for each in (await events.next("trials"))["all"]] == [1, 2]


async def test_memory(client: UserClient) -> None:
    """What is held of the trials of a page counts for whoever looks at it."""
    of, jobs = searched("digits", 60)
    for each in (of, *jobs):
        client.add(each)
    parties, authenticator = Parties(), LoopbackAuthenticator(client)
    made = Dashboard(client, V2ALPHA1, DashboardOptions(), authenticator=authenticator, bundle=BUNDLE, parties=parties)
    async with running(made, authenticator.token) as visitor, visitor.stream(PAGE) as events:
        trials = await events.next("trials")
        await events.next("importance")
        assert parties.memory.used > 2 * len(msgspec.json.encode(trials["all"]))
