"""In a cluster everybody sees what they themselves may see, and nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from structlog.testing import capture_logs

from packages.dashboard.tests.access.test_authenticator import API
from packages.dashboard.tests.conftest import PAGE, Visitor, node_pod, running, train_job
from packages.dashboard.tests.members import CHANGES, JANE, READS, TOKEN, ClusterClient
from packages.dashboard.tests.test_server import TAG, event
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.access import DENIED, VALID_TOKEN
from trainer.kube.errors import TransportError
from trainer.kube.resource import NODES
from trainer.v1alpha1.discovery import V2ALPHA1
from trainer_dashboard.access.cluster_authenticator import PERMITTED, PROXIED, ClusterAuthenticator, Proxy
from trainer_dashboard.live.board import PAUSE, RENEWAL
from trainer_dashboard.live.event_stream import SIGN_IN_CHECK
from trainer_dashboard.server import Dashboard, DashboardOptions
from trainer_kube_testing import ManualClock

SECRET = "s" * 32
PROXY = Proxy(secret=SECRET)
BEHIND_PROXY = {"X-Remote-Secret": SECRET, "X-Remote-User": JANE, "X-Requested-With": "trainer-dashboard"}


@pytest.fixture
def cluster() -> ClusterClient:
    """TrainJobs of two teams."""
    return ClusterClient(train_job("ours", namespace="team"), train_job("theirs", namespace="secret-team"))


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@asynccontextmanager
async def visiting(
    cluster: ClusterClient, clock: ManualClock, token: str = TOKEN, proxy: Proxy | None = None, **options: Any
) -> AsyncIterator[Visitor]:
    """Somebody with a token who visits the dashboard of a cluster."""
    authenticator = ClusterAuthenticator(cluster, cluster, V2ALPHA1, clock=clock, proxy=proxy)
    dashboard = Dashboard(
        cluster, V2ALPHA1, DashboardOptions(**options), authenticator=authenticator, clock=clock, bundle=PAGE
    )
    async with running(dashboard, token) as visitor:
        yield visitor


def used(cluster: ClusterClient) -> set[str]:
    """What the dashboard's own account has asked about objects."""
    return {request.verb for request in cluster.requests} - {"list", "watch"}


@pytest.mark.parametrize(("method", "path"), API)
@pytest.mark.parametrize("token", ["", "wrong", "\xff", "a b"])
async def test_strangers(cluster: ClusterClient, clock: ManualClock, method: str, path: str, token: str) -> None:
    """Without a token that the API server knows nothing is answered but how to log in, and nothing asked."""
    async with visiting(cluster, clock) as visitor:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        status, content = await visitor.json(path, method, token="", headers=headers, json={"uid": "uid-of-ours"})
        assert (status, content["login"]) == (401, "token")
        assert used(cluster) == set()
        assert not cluster.acting
        assert {review["kind"] for review in cluster.reviews} <= {"TokenReview"}


async def test_the_page_is_for_everybody(cluster: ClusterClient, clock: ManualClock) -> None:
    """The form is there before anybody has logged in, under any name, and nobody is given a token."""
    async with visiting(cluster, clock, token="") as visitor:
        async with visitor.ask("/jobs/team/ours", headers={"Host": "dashboard.example.com"}) as answer:
            assert (answer.status, answer.content_type) == (200, "text/html")
        assert (await visitor.json("/api/session", "POST", token="code"))[0] == 401


@pytest.mark.parametrize(
    ("namespace", "names", "whole"),
    [
        pytest.param("*", {"ours", "theirs"}, True, id="all"),
        pytest.param("team", {"ours"}, False, id="one-namespace"),
        pytest.param("elsewhere", set(), False, id="none"),
    ],
)
async def test_list(cluster: ClusterClient, clock: ManualClock, namespace: str, names: set[str], whole: bool) -> None:
    """The list has the TrainJobs of the namespaces where the user may list them."""
    cluster.grant("list trainjobs", namespace=namespace)
    async with visiting(cluster, clock) as visitor:
        _, session = await visitor.json("/api/cluster")
        assert (session["user"], session["login"], session["isWhole"]) == (JANE, "token", whole)
        async with visitor.stream("/api/trainjobs") as events:
            assert {row["name"] for row in (await events.next("rows"))["all"]} == names


async def test_other_namespaces_are_silent(cluster: ClusterClient, clock: ManualClock) -> None:
    """What happens in other namespaces is not sent, not even that something has gone there."""
    cluster.grant("list trainjobs", namespace="team")
    async with visiting(cluster, clock) as visitor, visitor.stream("/api/trainjobs") as events:
        await events.next("rows")
        cluster.add(train_job("theirs", namespace="secret-team", state="Running"))
        cluster.add(train_job("third", namespace="third-team"))
        cluster.remove(TRAIN_JOBS, "theirs", "secret-team")
        await clock.advance(1)
        cluster.remove(TRAIN_JOBS, "ours", "team")
        await clock.advance(1)
        assert await events.next("rows") == {"changed": [], "gone": [["team", "ours"]]}


async def test_users_do_not_share_rights(cluster: ClusterClient, clock: ManualClock) -> None:
    """What one user may see is shown to no other, although all share one cache."""
    cluster.users["token-of-joe"] = {"username": "joe", "groups": []}
    cluster.grant("list trainjobs")
    async with visiting(cluster, clock) as visitor:
        async with visitor.stream("/api/trainjobs") as events:
            assert len((await events.next("rows"))["all"]) == 2
        visitor.token = "token-of-joe"
        async with visitor.stream("/api/trainjobs") as events:
            assert (await events.next("rows"))["all"] == []
        assert len([each for each in cluster.requests if each.verb == "watch" and each.resource == TRAIN_JOBS]) == 1


async def test_rights_that_come_and_go(cluster: ClusterClient, clock: ManualClock) -> None:
    """An open list loses what its user may not see any more, and gets what they may see from now on."""
    cluster.grant("list trainjobs", namespace="team")
    async with visiting(cluster, clock) as visitor, visitor.stream("/api/trainjobs") as events:
        await events.next("rows")
        cluster.rules.clear()
        cluster.grant("list trainjobs", namespace="secret-team")
        await clock.advance(RENEWAL + PERMITTED + 1)
        seen: dict[str, set[str]] = {"changed": set(), "gone": set()}
        while not all(seen.values()):
            news = await events.next("rows")
            seen["changed"] |= {row["name"] for row in news["changed"]}
            seen["gone"] |= {name for _, name in news["gone"]}
        assert seen == {"changed": {"theirs"}, "gone": {"ours"}}


@pytest.mark.parametrize(
    ("kept", "is_removed", "shown"),
    [
        pytest.param("secret-team", False, {"theirs"}, id="appears"),
        pytest.param("secret-team", True, {"theirs"}, id="appears-and-goes"),
        pytest.param("late-team", False, {"late"}, id="appears-in-a-namespace-of-theirs"),
    ],
)
async def test_the_right_over_all_is_lost(
    cluster: ClusterClient, clock: ManualClock, kept: str, is_removed: bool, shown: set[str]
) -> None:
    """What comes while the API server is asked whether a user may still list all goes with this right."""
    cluster.grant("list trainjobs")
    async with visiting(cluster, clock) as visitor, visitor.stream("/api/trainjobs") as events:
        rows = {row["name"] for row in (await events.next("rows"))["all"]}
        cluster.held = anyio.Event()
        cluster.rules.clear()
        cluster.grant("list trainjobs", namespace=kept)
        asked = len(cluster.reviews)
        await clock.advance(RENEWAL)
        assert [review["kind"] for review in cluster.reviews[asked:]].count("SubjectAccessReview") == 1
        cluster.add(train_job("late", namespace="late-team"))
        while "late" not in rows:
            rows |= {row["name"] for row in (await events.next("rows"))["changed"]}
        if is_removed:
            cluster.remove(TRAIN_JOBS, "late", "late-team")
        cluster.held.set()
        cluster.held = None
        await clock.advance(PAUSE)
        while rows != shown:
            news = await events.next("rows")
            rows = rows - {name for _, name in news["gone"]} | {row["name"] for row in news["changed"]}


async def test_a_namespace_that_goes(cluster: ClusterClient, clock: ManualClock) -> None:
    """With a namespace go its TrainJobs and the rights in it: from the list, and from their pages."""
    cluster.grant(*READS, namespace="team")
    async with (
        visiting(cluster, clock) as visitor,
        visitor.stream("/api/trainjobs") as rows,
        visitor.stream("/api/trainjobs/team/ours") as page,
    ):
        await rows.next("rows")
        await page.next("problems", "job")
        cluster.remove(TRAIN_JOBS, "ours", "team")
        cluster.rules.clear()
        await clock.advance(3)
        assert await rows.next("rows") == {"changed": [], "gone": [["team", "ours"]]}
        assert await page.next("gone") == {}
        await clock.advance(RENEWAL + PERMITTED + 1)
        assert (await visitor.json("/api/trainjobs/team/ours"))[0] == 403


@pytest.mark.parametrize("token", [TOKEN, "token-of-joe"])
async def test_expired_token(cluster: ClusterClient, clock: ManualClock, token: str) -> None:
    """A token that has expired ends open streams, and the next request asks for another login."""
    cluster.users["token-of-joe"] = {"username": "joe", "groups": [], "uid": "7", "extra": {"a": ["b"]}}
    for who in (JANE, "joe"):
        cluster.grant(*READS, who=who)
    async with visiting(cluster, clock, token) as visitor:
        async with visitor.stream("/api/trainjobs") as rows, visitor.stream("/api/trainjobs/team/ours") as page:
            await rows.next("rows")
            await page.next("job")
            del cluster.users[token]
            await clock.advance(VALID_TOKEN + SIGN_IN_CHECK + 1)
            for events in (rows, page):
                await events.to_end()
        status, content = await visitor.json("/api/trainjobs")
        assert (status, content["login"]) == (401, "token")
        assert "expired" in content["error"]


async def test_a_token_that_expires_before_it_is_reviewed_anew(cluster: ClusterClient, clock: ManualClock) -> None:
    """What the API server does not accept in a request of the user's own asks for another login."""
    cluster.grant(*READS)
    async with visiting(cluster, clock) as visitor:
        assert (await visitor.json("/api/trainjobs/team/ours/yaml"))[0] == 200
        del cluster.users[TOKEN]
        status, content = await visitor.json("/api/trainjobs/team/ours/yaml")
        assert (status, content["login"]) == (401, "token")


@pytest.mark.parametrize(
    ("rules", "problems"),
    [
        pytest.param(READS, [], id="all"),
        pytest.param(("get trainjobs", "get pods/log", "list pods"), ["list events"], id="no-events"),
        pytest.param(("get trainjobs", "list events", "list pods"), ["get pods/log"], id="no-logs"),
        pytest.param(("get trainjobs", "list events"), ["list pods", "get pods/log"], id="no-pods"),
        pytest.param(("get trainjobs",), ["list pods", "list events", "get pods/log"], id="only-trainjobs"),
    ],
)
async def test_page(cluster: ClusterClient, clock: ManualClock, rules: tuple[str, ...], problems: list[str]) -> None:
    """The page of a TrainJob has the parts that the user may see, and says what is missing."""
    cluster = ClusterClient(train_job(), node_pod("demo"), event("demo", "Started"), clock=clock)
    log = cluster.log("demo-node-0-0-abcde", "default", "node")
    log.write(b'%b {"currentStep": 1, "trainMetrics": {"loss": 2.5}}\n' % TAG)
    cluster.grant(*rules, namespace="default")
    async with visiting(cluster, clock) as visitor, visitor.stream("/api/trainjobs/default/demo") as events:
        for _ in range(20):
            await clock.advance(1)
        log.write(b'%b {"currentStep": 2, "trainMetrics": {"loss": 2.25}}\n' % TAG)
        for _ in range(20):
            await clock.advance(1)
        cluster.remove(TRAIN_JOBS, "demo", "default")
        await clock.advance(3)
        got: dict[str, Any] = {}
        curves: list[Any] = []
        async for name, content in events.all_until("gone"):
            got[name] = content
            curves += content.get("series", []) if name == "metrics" else []
    assert got["job"]["name"] == "demo"
    assert [node["node"] for node in got["nodes"]] == (["node-0"] if "list pods" in rules else [])
    assert [each["reason"] for each in got["events"]] == (["Started"] if "list events" in rules else [])
    assert {value for each in curves for value in each["values"]} == ({2.5, 2.25} if "get pods/log" in rules else set())
    assert got["problems"] == [f"you may not {problem} in the namespace default" for problem in problems]
    if "get pods/log" not in rules:
        assert not cluster.requests_of("log")


async def test_a_page_without_the_right_to_it(cluster: ClusterClient, clock: ManualClock) -> None:
    """Whether there is such a TrainJob or not, who may not get it gets the same answer."""
    cluster.grant(*READS, namespace="team")
    async with visiting(cluster, clock) as visitor:
        answers = [await visitor.json(f"/api/trainjobs/secret-team/{name}") for name in ("theirs", "nothing")]
        assert answers == [(403, {"error": "you may not get TrainJobs in the namespace secret-team"})] * 2


async def test_a_page_whose_right_goes(cluster: ClusterClient, clock: ManualClock) -> None:
    """An open page ends when its user may not see the TrainJob any more."""
    cluster.grant(*READS, namespace="team")
    async with visiting(cluster, clock) as visitor:
        async with visitor.stream("/api/trainjobs/team/ours") as events:
            await events.next("job")
            cluster.rules.clear()
            await clock.advance(PERMITTED + 5)
            assert "gone" not in await events.to_end()
        assert (await visitor.json("/api/trainjobs/team/ours"))[0] == 403


async def test_logs(cluster: ClusterClient, clock: ManualClock) -> None:
    """Logs are read by the user's own client, and only of pods whose logs they may read."""
    cluster.add(node_pod("demo"))
    cluster.log("demo-node-0-0-abcde", "default", "node").write(b"hello\n")
    path = "/api/logs/default?source=demo-node-0-0-abcde/node"
    async with visiting(cluster, clock) as visitor:
        assert await visitor.json(path) == (403, {"error": "you may not get pods/log in the namespace default"})
        await clock.advance(DENIED)
        cluster.grant("get pods/log", namespace="default")
        async with visitor.stream(path) as events:
            await clock.advance(1)
            assert [text for _, text in (await events.next("lines"))["lines"]] == ["hello"]
        assert not cluster.requests_of("log")
        assert cluster.acting[-1].requests_of("log")


async def test_changes_are_made_with_the_rights_of_the_user(cluster: ClusterClient, clock: ManualClock) -> None:
    """YAML, rights and changes are requests of the user; the account of the dashboard sends none."""
    cluster.grant(*READS, *CHANGES, namespace="team")
    async with visiting(cluster, clock) as visitor:
        path, body = "/api/trainjobs/team/ours", {"uid": "uid-of-ours"}
        assert (await visitor.json(f"{path}/rights"))[1] == {
            "suspend": True,
            "delete": True,
            "create": False,
        }
        assert "name: ours" in (await visitor.json(f"{path}/yaml"))[1]["yaml"]
        assert (await visitor.json(f"{path}/suspend", "POST", json=body))[0] == 200
        assert (cluster.find(TRAIN_JOBS, "ours", "team") or {})["spec"]["suspend"] is True
        other = "/api/trainjobs/secret-team/theirs"
        assert (await visitor.json(f"{other}/rights"))[1] == {
            "suspend": False,
            "delete": False,
            "create": False,
        }
        for method, where in (
            ("GET", "/yaml"),
            ("GET", "/explanation"),
            ("GET", "/copy"),
            ("POST", "/suspend"),
            ("POST", "/scale"),
            ("DELETE", ""),
        ):
            status, _ = await visitor.json(f"{other}{where}", method, json={"uid": "uid-of-theirs", "nodes": 2})
            assert status == 403, where
        assert (await visitor.json("/api/capacity"))[1]["members"] == []
        assert len((await visitor.json("/api/runtimes"))[1]["problems"]) == 2
        assert (await visitor.json("/api/queues"))[1]["workloads"] == []
        copy = (await visitor.json(f"{path}/copy"))[1]
        assert (await visitor.json("/api/trainjobs", "POST", json=copy))[0] == 403
        assert (await visitor.json("/api/trials", "POST", json=copy))[1]["problem"]
        assert (await visitor.json(path, "DELETE", json=body))[0] == 200
        assert [obj["metadata"]["name"] for obj in cluster.objects(TRAIN_JOBS)] == ["theirs"]
        assert used(cluster) == set()
        assert NODES not in {request.resource for request in cluster.requests}


@pytest.mark.parametrize(("method", "path"), [each for each in API if each.values[0] != "GET"])
async def test_changes_of_other_pages(cluster: ClusterClient, clock: ManualClock, method: str, path: str) -> None:
    """What a page of another origin can have a browser send changes nothing, though a proxy adds the user's token."""
    cluster.grant(*READS, *CHANGES, "create trainjobs", namespace="team")
    async with visiting(cluster, clock) as visitor:
        headers = {"X-Requested-With": "", "Content-Type": "text/plain"}
        status, content = await visitor.json(path, method, headers=headers, data='{"uid": "uid-of-ours", "yaml": ""}')
        assert (status, "X-Requested-With" in content["error"]) == (403, True)
        assert not any(acting.requests for acting in cluster.acting)


async def test_groups_that_change(cluster: ClusterClient, clock: ManualClock) -> None:
    """A stream ends when its user, with the same token, has other groups: what it shows was decided by the old ones."""
    cluster.users[TOKEN]["groups"] = ["system:authenticated", "research"]
    cluster.grant(*READS, who="research")
    async with visiting(cluster, clock) as visitor, visitor.stream("/api/trainjobs") as rows:
        assert len((await rows.next("rows"))["all"]) == 2
        cluster.users[TOKEN] = {"username": JANE, "groups": ["system:authenticated"]}
        await clock.advance(VALID_TOKEN + SIGN_IN_CHECK + 1)
        await rows.to_end()


async def test_logs_whose_right_goes(cluster: ClusterClient, clock: ManualClock) -> None:
    """Logs end with the right to read them, though the API server goes on with what it has begun to send."""
    cluster.add(node_pod("demo"))
    cluster.log("demo-node-0-0-abcde", "default", "node").write(b"hello\n")
    cluster.grant("get pods/log", namespace="default")
    path = "/api/logs/default?source=demo-node-0-0-abcde/node"
    async with visiting(cluster, clock) as visitor, visitor.stream(path) as events:
        await clock.advance(1)
        await events.next("lines")
        cluster.rules.clear()
        await clock.advance(PERMITTED + SIGN_IN_CHECK + 1)
        await events.to_end()


@pytest.mark.parametrize("logs", [True, False])
async def test_a_comparison_has_what_its_viewer_may_see(cluster: ClusterClient, clock: ManualClock, logs: bool) -> None:
    """A TrainJob that may not be seen is missing, and one whose logs may not be read has no metrics."""
    cluster.grant("get trainjobs", "list trainjobs", *(["get pods/log"] if logs else []), namespace="team")
    pod = node_pod("ours")
    pod["metadata"]["namespace"] = "team"
    cluster.add(pod)
    log = cluster.log("ours-node-0-0-abcde", "team", "node")
    log.write(b'%b {"currentStep": 1, "trainMetrics": {"loss": 2}}\n' % TAG)
    path = "/api/metrics?job=team/ours&job=secret-team/theirs"
    async with visiting(cluster, clock) as visitor, visitor.stream(path) as events:
        seen = [await events.next("job", "trouble", "gone", "metrics") for _ in range(4 if logs else 3)]
        assert [each for each in seen if each["source"] == 1] == [{"source": 1}]
        trouble = "" if logs else "you may not get pods/log in its namespace"
        assert {"source": 0, "text": trouble} in seen
        assert bool(cluster.requests_of("log")) is logs
        assert any("series" in each for each in seen) is logs


async def test_nobody_is_let_in_by_a_failure(cluster: ClusterClient, clock: ManualClock) -> None:
    """While the API server does not say who somebody is, they get nothing, and learn no details."""
    cluster.grant(*READS)
    async with visiting(cluster, clock) as visitor:
        cluster.failure = TransportError(f"connection refused, {TOKEN}")
        with capture_logs() as logs:
            status, content = await visitor.json("/api/trainjobs")
        assert status == 503
        assert "refused" not in content["error"]
        assert "refused" in str(logs)
        assert TOKEN not in str(logs)


async def test_a_failure_shows_nothing(cluster: ClusterClient, clock: ManualClock) -> None:
    """While the API server does not say what somebody may see, a list shows nothing and ends."""
    async with visiting(cluster, clock) as visitor:
        await visitor.json("/api/cluster")
        cluster.failure = TransportError("connection refused")
        async with visitor.stream("/api/trainjobs") as events:
            assert set(await events.to_end()) <= {"heard"}
        assert (await visitor.json("/api/trainjobs/team/ours"))[0] == 502


async def test_reviews_are_remembered(cluster: ClusterClient, clock: ManualClock) -> None:
    """Fifty pages of one user cost one TokenReview and one review of each right."""
    cluster.grant("list trainjobs")
    async with visiting(cluster, clock) as visitor:
        for _ in range(50):
            async with visitor.stream("/api/trainjobs") as events:
                await events.next("rows")
        assert [review["kind"] for review in cluster.reviews] == ["TokenReview", "SubjectAccessReview"]


async def test_clients_of_users(cluster: ClusterClient, clock: ManualClock) -> None:
    """All requests with one token share a client, and no two tokens do."""
    cluster.users["another-token-of-jane"] = cluster.users[TOKEN]
    async with visiting(cluster, clock) as visitor:
        for token in (TOKEN, "another-token-of-jane", TOKEN):
            await visitor.json("/api/trainjobs/team/ours/rights", token=token)
    assert len(cluster.acting) == 2


@pytest.mark.parametrize(
    ("headers", "proxy", "status"),
    [
        pytest.param(BEHIND_PROXY, PROXY, 200, id="proxy"),
        pytest.param(BEHIND_PROXY, None, 401, id="no-proxy-configured"),
        pytest.param(BEHIND_PROXY, Proxy(has_certificate=True), 401, id="no-certificate"),
        pytest.param(BEHIND_PROXY | {"X-Remote-Secret": "wrong"}, PROXY, 401, id="wrong-secret"),
        pytest.param({**BEHIND_PROXY, "X-Remote-Secret": ""}, Proxy(), 401, id="empty-secret"),
        pytest.param({"X-Remote-User": JANE}, PROXY, 401, id="without-secret"),
        pytest.param([*BEHIND_PROXY.items(), ("X-Remote-Secret", SECRET)], PROXY, 401, id="two-secrets"),
        pytest.param([*BEHIND_PROXY.items(), ("X-Remote-User", "joe")], PROXY, 401, id="two-users"),
        pytest.param(BEHIND_PROXY | {"X-Remote-User": ""}, PROXY, 401, id="no-user"),
        pytest.param(BEHIND_PROXY | {"X-Remote-User": "system:admin"}, PROXY, 401, id="user-of-kubernetes"),
        pytest.param(BEHIND_PROXY | {"X-Remote-Group": "system:masters"}, PROXY, 401, id="group-of-kubernetes"),
        pytest.param(BEHIND_PROXY | {"X-Remote-User": "j\u202ex"}, PROXY, 401, id="not-printable"),
        pytest.param(BEHIND_PROXY | {"X-Remote-User": "x" * 1025}, PROXY, 401, id="long-name"),
        pytest.param(BEHIND_PROXY | {"X-Requested-With": ""}, PROXY, 403, id="another-page"),
    ],
)
async def test_proxy(
    cluster: ClusterClient, clock: ManualClock, headers: Any, proxy: Proxy | None, status: int
) -> None:
    """Headers of a proxy count if it proves itself, name one ordinary user, and come from our page."""
    cluster.grant(*READS)
    async with visiting(cluster, clock, proxy=proxy) as visitor:
        answer = visitor.session.get(f"{visitor.dashboard.address}api/cluster", headers=headers)
        async with answer as response:
            assert response.status == status
            if status == 200:
                assert (await response.json())["user"] == JANE
            if status == 401:
                assert (await response.json())["login"] == ("token" if proxy is None else "proxy")


async def test_what_users_see_behind_a_proxy(cluster: ClusterClient, clock: ManualClock) -> None:
    """A group of the proxy gives its rights, to what is cached and to what is done in the name of the user."""
    cluster.grant(*READS, *CHANGES, who="team-a, b", namespace="team")
    groups = [("X-Remote-Group", "others"), ("X-Remote-Group", "team-a, b")]
    async with visiting(cluster, clock, "", PROXY) as visitor:
        headers = [*BEHIND_PROXY.items(), *groups]
        address = f"{visitor.dashboard.address}api/trainjobs"
        async with visitor.session.get(f"{address}/team/ours/yaml", headers=headers) as answer:
            assert answer.status == 200
        async with visitor.session.get(f"{address}/secret-team/theirs/yaml", headers=headers) as answer:
            assert answer.status == 403
        body = {"uid": "uid-of-ours"}
        async with visitor.session.delete(f"{address}/team/ours", headers=headers, json=body) as answer:
            assert answer.status == 200
        assert used(cluster) == set()
        assert (await visitor.json("/api/cluster", headers=BEHIND_PROXY))[1]["isWhole"] is False
    (asked,) = [review["spec"] for review in cluster.reviews]
    assert (asked["user"], asked["groups"]) == (JANE, ["system:authenticated"])


async def test_groups_in_one_header(cluster: ClusterClient, clock: ManualClock) -> None:
    """A proxy may write all groups into one header."""
    cluster.grant("list trainjobs", who="b")
    proxy = Proxy(secret=SECRET, user_header="X-Forwarded-User", group_header="X-Forwarded-Groups", group_separator=",")
    headers = BEHIND_PROXY | {"X-Forwarded-User": "joe", "X-Forwarded-Groups": "a, b,,c"}
    async with visiting(cluster, clock, "", proxy) as visitor:
        _, content = await visitor.json("/api/cluster", headers=headers)
    assert (content["user"], content["isWhole"]) == ("joe", True)


async def test_streams_behind_a_proxy_end(cluster: ClusterClient, clock: ManualClock) -> None:
    """The proxy is asked now and then whether its user is still logged in."""
    cluster.grant(*READS)
    async with (
        visiting(cluster, clock, "", PROXY) as visitor,
        visitor.ask("/api/trainjobs", headers=BEHIND_PROXY) as answer,
    ):
        await answer.content.readuntil(b"\n\n")
        await clock.advance(PROXIED + SIGN_IN_CHECK)
        with anyio.fail_after(20):
            await answer.content.read()


async def test_a_token_behind_a_proxy(cluster: ClusterClient, clock: ManualClock) -> None:
    """Programs that do not come through the proxy use a token."""
    cluster.grant(*READS)
    async with visiting(cluster, clock, proxy=PROXY) as visitor:
        assert (await visitor.json("/api/cluster"))[1]["user"] == JANE


@pytest.mark.parametrize(
    ("granted", "expected"),
    [
        pytest.param("team", (200, "namespace: team"), id="where-they-may"),
        pytest.param("nowhere", (403, "you may not create TrainJobs in the namespace default"), id="nowhere"),
    ],
)
async def test_draft(cluster: ClusterClient, clock: ManualClock, granted: str, expected: tuple[int, str]) -> None:
    """A new TrainJob begins in a namespace where its user may create one; where there is none, the answer says so."""
    cluster.grant("list trainjobs", namespace="team")
    cluster.grant("create trainjobs", namespace=granted)
    async with visiting(cluster, clock) as visitor:
        status, content = await visitor.json("/api/draft")
    assert (status, expected[1] in str(content)) == (expected[0], True)
