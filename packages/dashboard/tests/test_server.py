"""What the dashboard shows and does, through its API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio
import pytest

from packages.dashboard.tests.conftest import UserClient, node_pod, train_job, visiting
from trainer.api.trainjob import TRAIN_JOBS
from trainer.explain.suspension import JOB_UID, WORKLOADS
from trainer.kube.errors import ForbiddenError, KubeError
from trainer.kube.objects import Object
from trainer.kube.resource import EVENTS, PODS
from trainer.v1alpha1.client import SERVED
from trainer.v1alpha1.discovery import Served
from trainer_dashboard.live import job_page
from trainer_dashboard.recipe import recipe
from trainer_dashboard.server import OtherCluster

TAG = b"[trainer.kubeflow.org/v2alpha1/trainjob/trainerStatus]"


async def test_list(client: UserClient) -> None:
    """The list has all TrainJobs, and then what changes and goes."""
    client.add(train_job("one", state="Running", trainerStatus={"progressPercentage": 40}))
    client.add(train_job("two", namespace="other"))
    async with visiting(client) as visitor, visitor.stream("/api/trainjobs") as events:
        rows = (await events.next("rows"))["all"]
        assert {(row["namespace"], row["name"], row["state"]) for row in rows} == {
            ("default", "one", "Running"),
            ("other", "two", "Submitted"),
        }
        client.add(train_job("one", state="Running", trainerStatus={"progressPercentage": 41}))
        changed = await events.next("rows")
        assert [row["progress"] for row in changed["changed"]] == [41]
        client.remove(TRAIN_JOBS, "two", "other")
        assert await events.next("rows") == {"changed": [], "gone": [["other", "two"]]}


async def test_newest_first(client: UserClient) -> None:
    """Of many the newest come first, with their labels, and all others at once after them."""
    for number in range(100):
        job = train_job(f"job-{number:02}")
        job["metadata"] |= {"creationTimestamp": f"2026-01-01T00:{number % 60:02}:{number // 60:02}Z"}
        job["metadata"] |= {"labels": {f"label-{number:02}": str(number) for number in range(20)}}
        client.add(job)
    async with visiting(client) as visitor, visitor.stream("/api/trainjobs") as events:
        first, rest = await events.next("rows"), await events.next("rows")
        assert (len(first["all"]), first["more"], len(rest["changed"])) == (60, 40, 40)
        created = [row["created"] for row in (*first["all"], *rest["changed"])]
        assert created == sorted(created, reverse=True)
        assert list(first["all"][0]["labels"]) == [f"label-{number:02}" for number in range(16)]


@pytest.mark.parametrize(
    ("denied", "options", "namespace"),
    [
        pytest.param(set(), {}, "", id="all"),
        pytest.param({"list trainjobs"}, {"home": "team"}, "team", id="may-not-list-all"),
        pytest.param(set(), {"namespace": "chosen"}, "chosen", id="chosen"),
    ],
)
async def test_namespaces(client: UserClient, denied: set[str], options: dict[str, Any], namespace: str) -> None:
    """All namespaces are shown, or those of the user's context where not all may be listed."""
    client.denied = denied
    client.add(train_job("a", namespace="team"))
    client.add(train_job("b", namespace="chosen"))
    async with visiting(client, **options) as visitor:
        assert (await visitor.json("/api/cluster"))[1]["namespace"] == namespace
        async with visitor.stream("/api/trainjobs") as events:
            shown = {row["namespace"] for row in (await events.next("rows"))["all"]}
        assert shown == ({namespace} if namespace else {"team", "chosen"})


async def test_other_clusters(client: UserClient) -> None:
    """The page knows the commands that open those of other clusters."""
    async with visiting(client, others=[OtherCluster("far", "trainer dashboard --context far")]) as visitor:
        _, answer = await visitor.json("/api/cluster")
    assert answer["others"] == [{"name": "far", "command": "trainer dashboard --context far"}]


async def test_unknown_rights(client: UserClient) -> None:
    """A cluster that does not say what may be seen ends the command with its words."""
    client.denied = {"create selfsubjectaccessreviews"}
    with pytest.raises(ExceptionGroup) as raised:
        async with visiting(client):
            pass
    assert raised.group_contains(KubeError, match="you may not ask")


async def test_page(client: UserClient) -> None:
    """The page of a TrainJob has its state, pods, events and curves, follows them, and ends with it."""
    condition = {"type": "Created", "status": "True", "lastTransitionTime": "2026-01-01T00:00:01Z"}
    client.add(train_job(state="Running", conditions=[condition]))
    client.add(node_pod("demo"))
    client.add(event("demo-node-0", "SuccessfulCreate"))
    log = client.log("demo-node-0-0-abcde", "default", "node")
    log.write(b'%b {"currentStep": 1, "trainMetrics": {"loss": 2.5}}\n' % TAG)
    async with visiting(client) as visitor, visitor.stream("/api/trainjobs/default/demo") as events:
        job = await events.next("job")
        assert (job["state"], job["conditions"]) == ("Running", [condition])
        async with visitor.stream("/api/trainjobs/default/demo") as second:
            metrics = await second.next("metrics")
            while not metrics["series"]:
                metrics = await second.next("metrics")
            assert [(each["name"], each["steps"], each["values"]) for each in metrics["series"]] == [
                ("loss", [1], [2.5])
            ]
        log.write(b'%b {"currentStep": 2, "evalMetrics": {"loss": 2}}\n' % TAG)
        seen: list[Any] = []
        while not any(series["kind"] == "eval" for series in seen):
            seen += (await events.next("metrics"))["series"]
        client.add(train_job(state="Failed", conditions=[condition | {"type": "Failed", "message": "exit code 3"}]))
        job = await events.next("job")
        assert (job["state"], job["message"]) == ("Failed", "exit code 3")
        client.remove(TRAIN_JOBS, "demo", "default")
        assert await events.next("gone") == {}


async def test_recipe_of_each_version(client: UserClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a TrainJob runs is read once for all pages, and anew where its spec or the parameters have changed."""
    read: list[Object] = []

    def recipe_of(job: Object, reported: Mapping[str, str]) -> Object:
        read.append(job)
        return recipe.recipe_of(job, reported)

    def changed(generation: int, argument: str, **status: Any) -> Object:
        job = train_job(**status)
        job["metadata"]["generation"] = generation
        job["spec"]["trainer"] = {"args": [argument]}
        return client.add(job)

    monkeypatch.setattr(job_page, "recipe_of", recipe_of)
    changed(1, "--lr=1")
    log = client.log("demo-node-0-0-abcde", "default", "node")
    path = "/api/trainjobs/default/demo"
    async with visiting(client) as visitor, visitor.stream(path) as events, visitor.stream(path) as others:
        for each in (events, others):
            assert (await each.next("job"))["recipe"]["parameters"] == [["lr", "1"]]
        changed(1, "--lr=1", state="Running")
        assert (await events.next("job"))["state"] == "Running"
        assert len(read) == 1
        changed(2, "--lr=2", state="Running")
        assert (await events.next("job"))["recipe"]["parameters"] == [["lr", "2"]]
        log.write(b'%b {"parameters": {"epochs": "3"}}\n' % TAG)
        client.add(node_pod("demo"))
        assert (await events.next("job"))["recipe"]["parameters"] == [["lr", "2"], ["epochs", "3"]]
        assert len(read) == 3


async def test_page_shows_pods_and_events(client: UserClient) -> None:
    """Pods and events of this TrainJob alone are on its page."""
    client.add(train_job())
    client.add(train_job("demo-2"))
    client.add(node_pod("demo"))
    client.add(node_pod("demo-2"))
    client.add(event("demo", "One"))
    client.add(event("demo-2-node-0", "Other"))
    async with visiting(client) as visitor, visitor.stream("/api/trainjobs/default/demo") as events:
        nodes = await events.next("nodes")
        while not nodes:
            nodes = await events.next("nodes")
        assert [(node["node"], node["phase"], node["logs"]) for node in nodes] == [("node-0", "Running", ["node"])]
    async with visiting(client) as visitor, visitor.stream("/api/trainjobs/default/demo") as events:
        shown = await events.next("events")
        while not shown:
            shown = await events.next("events")
        assert [each["reason"] for each in shown] == ["One"]


async def test_watches_end_with_the_pages(client: UserClient) -> None:
    """Pods and events of a namespace are watched once, as long as somebody looks."""
    client.add(train_job())
    path = "/api/trainjobs/default/demo"

    def watches() -> int:
        return sum(request.resource in {PODS, EVENTS} for request in client.requests_of("watch"))

    async with visiting(client) as visitor:
        async with visitor.stream(path) as one, visitor.stream(path) as two:
            await one.next("job")
            await two.next("job")
            async with visitor.stream(path) as third:
                await third.next("nodes")
            assert watches() == 2
        with anyio.fail_after(20):  # until the server has seen that the others are gone
            while watches() == 2:
                async with visitor.stream(path) as later:
                    await later.next("nodes")


async def test_no_rights_to_events(client: UserClient) -> None:
    """What may not be watched is missing, and the page says so."""
    client.faults.fail(ForbiddenError(403, "events is forbidden"), verb={"list", "watch"}, resource=EVENTS, times=None)
    client.add(train_job())
    async with visiting(client) as visitor, visitor.stream("/api/trainjobs/default/demo") as events:
        problems: list[str] = []
        while not problems:
            problems = await events.next("problems")
        assert "events is forbidden" in problems[0]


@pytest.mark.parametrize("path", ["/api/trainjobs", "/api/trainjobs/default/demo"])
async def test_no_rights_to_train_jobs(client: UserClient, path: str) -> None:
    """A page that waits for TrainJobs which may not be listed says why, and goes on when they may."""
    fault = client.faults.fail(
        ForbiddenError(403, "trainjobs is forbidden"), verb={"list", "watch"}, resource=TRAIN_JOBS, times=None
    )
    client.add(train_job())
    async with visiting(client) as visitor, visitor.stream(path) as events:
        text = (await events.next("problem"))["text"]
        assert "trainjobs is forbidden" in text
        assert "grant list and watch" in text
        fault.end()
        assert await events.next("rows", "job")
        recovered = await events.next("problem")
        assert (recovered["text"], recovered["seconds"] >= 0) == ("", True)


async def test_a_lost_cluster(client: UserClient) -> None:
    """A page hears when the API server was heard; what is sent while it is lost says that it is, and since when."""
    async with visiting(client) as visitor, visitor.stream("/api/trainjobs") as events:
        assert 0 <= (await events.next("heard"))["seconds"] < 20
        client.faults.refuse_connections()
        problem = await events.next("problem")
        assert (bool(problem["text"]), problem["seconds"] >= 0) == (True, True)


async def test_metrics_that_cannot_be_read(client: UserClient) -> None:
    """A feed of metrics that breaks costs the metrics alone, and the page says so."""
    client.faults.fail(RuntimeError("a mistake"), verb="log", times=None)
    client.add(train_job())
    client.add(node_pod("demo"))
    async with visiting(client) as visitor, visitor.stream("/api/trainjobs/default/demo") as events:
        problems: list[str] = []
        while not problems:
            problems = await events.next("problems")
        assert problems == ["metrics cannot be read: the output of the program says why"]
        assert (await visitor.json("/api/cluster"))[0] == 200


async def test_no_such_job(client: UserClient) -> None:
    """The page of nothing says that it is gone."""
    async with visiting(client) as visitor, visitor.stream("/api/trainjobs/default/demo") as events:
        assert await events.next("gone") == {}


async def test_logs(client: UserClient) -> None:
    """Logs of several containers come in one stream, without messages about progress, and with their ends."""
    for index in (0, 1):
        client.add(node_pod("demo", index))
        log = client.log(f"demo-node-0-{index}-abcde", "default", "node")
        log.write(b"<b>hello</b> from %d\n%b {}\n%b\n" % (index, TAG, b"x" * 10_000))
    path = "/api/logs/default?source=demo-node-0-0-abcde/node&source=demo-node-0-1-abcde/node"
    async with visiting(client) as visitor, visitor.stream(path) as events:
        got: dict[int, list[str]] = {}
        while sum(map(len, got.values())) < 4:
            lines = await events.next("lines")
            got.setdefault(lines["source"], []).extend(text for _, text in lines["lines"])
        assert {source: texts[0] for source, texts in got.items()} == {n: f"<b>hello</b> from {n}" for n in (0, 1)}
        assert {len(texts[1]) for texts in got.values()} == {4099}
        client.remove(PODS, "demo-node-0-0-abcde", "default")
        client.log("demo-node-0-0-abcde", "default", "node").end()
        assert await events.next("end") == {"source": 0, "reason": ""}


async def test_end_of_logs_that_are_read_slowly(client: UserClient) -> None:
    """A reader that comes back after all containers have ended misses no line of what was written last."""
    pods = [f"demo-node-0-{index}-abcde" for index in range(8)]
    logs = [client.log(pod, "default", "node") for pod in pods]
    for index in range(len(pods)):
        client.add(node_pod("demo", index))
    query = "&".join(f"source={pod}/node" for pod in pods)
    async with visiting(client) as visitor, visitor.stream(f"/api/logs/default?{query}") as events:
        for log in logs:
            log.write(b"begin\n")
        begun = {(await events.next("lines"))["source"] for _ in logs}
        assert len(begun) == len(logs)
        for log in logs:
            log.write((b"x" * 4000 + b"\n") * 250)
        lines = [len((await events.next("lines"))["lines"])]
        for pod, log in zip(pods, logs, strict=True):
            client.remove(PODS, pod, "default")
            log.end()
        ended = 0
        while ended < len(logs):
            got = await events.next("lines", "end")
            lines.append(len(got.get("lines", ())))
            ended += "reason" in got
        assert sum(lines) == 250 * len(logs)


@pytest.mark.parametrize(
    "query",
    [
        "",
        "source=pod",
        "source=pod/",
        "source=a/b/c",
        "source=../secrets/x",
        "source=%2e%2e/x",
        "&".join(f"source=p/c{number}" for number in range(17)),
        "source=p/c&source=p/c",
    ],
)
async def test_wrong_sources(client: UserClient, query: str) -> None:
    """Only names of containers reach the cluster, and not too many."""
    async with visiting(client) as visitor:
        status, content = await visitor.json(f"/api/logs/default?{query}")
        assert (status, content["error"]) == (400, "source must be POD/CONTAINER, 1 to 16 times, each another")
        assert not client.requests_of("log")


async def test_actions(client: UserClient) -> None:
    """A TrainJob is suspended, resumed, scaled and deleted by uid."""
    client.add(train_job())
    async with visiting(client) as visitor:
        for verb, suspended in (("suspend", True), ("resume", False)):
            path = f"/api/trainjobs/default/demo/{verb}"
            assert await visitor.json(path, "POST", json={"uid": "uid-of-demo"}) == (200, {})
            assert (client.find(TRAIN_JOBS, "demo", "default") or {})["spec"]["suspend"] is suspended
        scaled = await visitor.json(
            "/api/trainjobs/default/demo/scale", "POST", json={"uid": "uid-of-demo", "nodes": 3}
        )
        assert scaled == (200, {})
        assert (client.find(TRAIN_JOBS, "demo", "default") or {})["spec"]["trainer"] == {"numNodes": 3}
        status, content = await visitor.json("/api/trainjobs/default/demo", "DELETE", json={"uid": "another"})
        assert status == 409
        assert content["error"]
        assert await visitor.json("/api/trainjobs/default/demo", "DELETE", json={"uid": "uid-of-demo"}) == (200, {})
        assert client.find(TRAIN_JOBS, "demo", "default") is None


async def test_suspension_by_kueue() -> None:
    """Where Kueue decides whether a TrainJob runs, its Workload is changed; else the page says why nothing is."""
    client = UserClient(train_job(), resources=(TRAIN_JOBS, WORKLOADS[0]))
    metadata = {"name": "of-demo", "namespace": "default", "uid": "w", "labels": {JOB_UID: "uid-of-demo"}}
    spec = {"queueName": "team", "active": True}
    client.add({"apiVersion": WORKLOADS[0].api_version, "kind": "Workload", "metadata": metadata, "spec": spec})
    path, body = "/api/trainjobs/default/demo", {"uid": "uid-of-demo"}
    async with visiting(client) as visitor:
        refused = await visitor.json(f"{path}/resume", "POST", json=body)
        assert refused == (
            409, {"error": "Workload of-demo of TrainJob demo is active: Kueue's queue team decides when it runs"}
        )  # fmt: skip
        assert await visitor.json(f"{path}/suspend", "POST", json=body) == (200, {})
        assert (client.find(WORKLOADS[0], "of-demo", "default") or {})["spec"]["active"] is False
        assert (await visitor.json(f"{path}/resume", "POST", json={"uid": "another"}))[0] == 409
        assert await visitor.json(f"{path}/resume", "POST", json=body) == (200, {})
    assert (client.find(WORKLOADS[0], "of-demo", "default") or {})["spec"]["active"] is True


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"[]", b'{"uid": 1}', b'{"uid": ""}', b"{}", b"x" * 5000),
        *(b'{"uid": "\xff"}', rb'{"uid": "\ud800"}', b'{"a":' * 800, b'{"uid": NaN}'),
    ],
)
async def test_wrong_body(client: UserClient, body: bytes) -> None:
    """A change without the uid changes nothing."""
    client.add(train_job())
    async with visiting(client) as visitor:
        status, content = await visitor.json("/api/trainjobs/default/demo/suspend", "POST", data=body)
        assert status == 400
        assert content["error"].startswith("the body must ")
        assert not client.requests_of("patch")


@pytest.mark.parametrize("nodes", [0, -1, 1.5, "2", None, 2**31])
async def test_wrong_number_of_nodes(client: UserClient, nodes: Any) -> None:
    """A number of nodes that no TrainJob may have changes nothing."""
    client.add(train_job())
    async with visiting(client) as visitor:
        body = {"uid": "uid-of-demo", "nodes": nodes}
        status, content = await visitor.json("/api/trainjobs/default/demo/scale", "POST", json=body)
        assert (status, "nodes" in content["error"]) == (400, True)
        assert not client.requests_of("patch")


async def test_rights(client: UserClient) -> None:
    """The page is offered what the user may do to this very TrainJob, and the list what they may do in a namespace."""
    client.denied = {"delete trainjobs"}
    async with visiting(client) as visitor:
        rights = await visitor.json("/api/trainjobs/default/demo/rights")
        of_all = await visitor.json("/api/rights/default")
    assert rights == of_all == (200, {"suspend": True, "delete": False, "create": True})
    assert {review.get("name") for review in client.reviews[2:4]} == {"demo"}
    assert {(review["namespace"], review.get("name")) for review in client.reviews[-3:]} == {("default", None)}


@pytest.mark.parametrize("path", ["/api/trainjobs/default/demo/other", "/api/trainjobs/UPPER/demo", "/api/logs/a%2fb"])
async def test_unknown_paths(client: UserClient, path: str) -> None:
    """There is nothing at other paths."""
    async with visiting(client) as visitor:
        assert (await visitor.json(path))[0] == 404


async def test_v1alpha1() -> None:
    """A cluster with the released version is shown alike, and its YAML as it is stored."""
    client = UserClient(resources=(*SERVED.values(),))
    job = train_job(spec={"trainer": {"numNodes": 3}}) | {"apiVersion": "trainer.kubeflow.org/v1alpha1"}
    client.add(job)
    async with visiting(client, Served("v1alpha1")) as visitor, visitor.stream("/api/trainjobs") as events:
        (row,) = (await events.next("rows"))["all"]
        assert (row["name"], row["nodes"]) == ("demo", 3)
        _, content = await visitor.json("/api/trainjobs/default/demo/yaml")
        assert "apiVersion: trainer.kubeflow.org/v1alpha1\n" in content["yaml"]
        answer = await visitor.json("/api/trainjobs/default/demo/suspend", "POST", json={"uid": "uid-of-demo"})
        assert answer == (200, {})


def event(involved: str, reason: str) -> dict[str, Any]:
    """An event about an object."""
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{involved}.{reason.lower()}", "namespace": "default"},
        "involvedObject": {"kind": "Job", "name": involved, "namespace": "default"},
        "reason": reason,
        "message": "something happened",
        "type": "Normal",
        "lastTimestamp": "2026-01-01T00:00:05Z",
    }
