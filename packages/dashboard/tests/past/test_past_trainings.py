"""The history on the page: what is listed and shown of trainings that are gone, and to whom."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from anyio.to_thread import run_sync

from packages.dashboard.tests.conftest import PAGE, UserClient, Visitor, running, train_job, visiting
from packages.dashboard.tests.members import TOKEN, ClusterClient
from packages.dashboard.tests.past_trainings import (
    past_training,
    save,
    save_documents,
    save_event,
    save_log,
    save_samples,
)
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.kube.access import DENIED
from trainer.kube.errors import TransportError
from trainer.kube.objects import Object
from trainer.kube.resource import CONFIG_MAPS, Resource
from trainer.plugins import volcano
from trainer.progress.curves import SAMPLES_LIMIT
from trainer.v1alpha1.discovery import V2ALPHA1
from trainer.workloads import JOBSETS
from trainer.workloads.scheduling_groups import POD_GROUPS
from trainer_dashboard.access.cluster_authenticator import PERMITTED, ClusterAuthenticator
from trainer_dashboard.history.database import Database
from trainer_dashboard.history.schema import DOCUMENTS
from trainer_dashboard.history.statements import put
from trainer_dashboard.live.curves import SAMPLES
from trainer_dashboard.past.past_rows import LOGS
from trainer_dashboard.past.past_trainings import PastTrainings
from trainer_dashboard.server import Dashboard, DashboardOptions
from trainer_kube_testing import ManualClock

ONE = "/api/history/team/demo/one"


def kept(resource: Resource, name: str = "demo") -> Object:
    """An object of a training."""
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}}


@asynccontextmanager
async def owning(client: UserClient, database: Database, **options: Any) -> AsyncIterator[Visitor]:
    """Somebody who has started a dashboard with a history."""
    past = PastTrainings(database, client, "https://api.example.com")
    async with visiting(client, past=past, **options) as visitor:
        yield visitor


@asynccontextmanager
async def visiting_cluster(
    cluster: ClusterClient, clock: ManualClock, database: Database, **options: Any
) -> AsyncIterator[Visitor]:
    """Jane, who visits the dashboard of a cluster with a history."""
    authenticator = ClusterAuthenticator(cluster, cluster, V2ALPHA1, clock=clock)
    past = PastTrainings(database, cluster, "https://api.example.com")
    made = Dashboard(
        cluster, V2ALPHA1, DashboardOptions(**options), authenticator=authenticator, clock=clock, bundle=PAGE, past=past
    )
    async with running(made, TOKEN) as visitor:
        yield visitor


async def listed(visitor: Visitor, query: str = "") -> list[str]:
    """The uids of a list."""
    status, content = await visitor.json(f"/api/history{query}")
    assert status == 200, content
    return [training["uid"] for training in content["trainings"]]


async def test_order(client: UserClient, database: Database) -> None:
    """What has ended, or was deleted before its end, is listed by that time; what runs and other clusters are not."""
    rows = [
        past_training("first", 10.0, deleted=500.0),
        past_training("running", None),
        past_training("stopped", None, deleted=30.0, state="Running"),
        past_training("last", 40.0),
        past_training("other-cluster", 50.0, cluster="another"),
    ]
    await run_sync(save, database, *rows)
    async with owning(client, database) as visitor:
        assert await listed(visitor) == ["last", "stopped", "first"]
        _, content = await visitor.json("/api/history")
    assert content["namespaces"] == ["team"]
    assert content["next"] == ""
    last, stopped, first = content["trainings"]
    assert (last["ended"], last["deleted"]) == ("2026-01-01T00:00:40Z", None)
    assert (stopped["ended"], stopped["deleted"], stopped["seconds"]) == (None, "2026-01-01T00:00:30Z", 29.0)
    assert (first["created"], first["seconds"]) == ("2026-01-01T00:00:00Z", 9.0)


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        pytest.param(f"?q={'x' * 257}", "q must have at most 256 characters", id="long"),
        pytest.param("?q=%00", "q must not have the character NUL", id="nul"),
        pytest.param("?name=a%00", "name must not have the character NUL", id="nul-in-name"),
        pytest.param("?before=nan", "before must be seconds since 1970", id="not-a-number"),
        pytest.param("?before=soon", "before must be seconds since 1970", id="text"),
        pytest.param("?after=1", "after must be what the page before has as next", id="cursor"),
        pytest.param("?after=x/y", "after must be seconds since 1970", id="cursor-time"),
    ],
)
async def test_wrong_questions(client: UserClient, database: Database, query: str, problem: str) -> None:
    """What the page does not ask is refused with the field."""
    async with owning(client, database) as visitor:
        assert await visitor.json(f"/api/history{query}") == (400, {"error": problem})


async def test_one(client: UserClient, database: Database) -> None:
    """A training that is gone is shown with all that was kept of it."""
    metrics = '[["accuracy", "0.9", true], ["loss", "0.25", false]]'
    row = past_training("one", deleted=90.0, creator="jane", image="example.com/a:1", nodes=2, metrics=metrics)
    conditions = [{"type": "Complete", "status": "True", "reason": "Ended", "message": "it is over"}]
    job = train_job("demo", namespace="team", conditions=conditions, state="Complete")

    def write() -> None:
        save(database, row | {"runtime_version": "generation 3", "message": "it is over"})
        save_documents(database, "one", trainjob=job, jobset=kept(JOBSETS), runtime=kept(CLUSTER_TRAINING_RUNTIMES))
        save_documents(database, "one", parameters={"parameters": {"lr": "0.1"}})
        save_samples(database, "one", [2.5, 2.25])
        save_log(database, "one", "node-1", "step 1", "step 2")
        save_log(database, "one", "node-0", "hello", "")
        save_log(database, "one", "node-0", "fetched", container="initializer")
        save_event(database, "one", "Started", "pulled")

    await run_sync(write)
    async with owning(client, database) as visitor:
        _, page = await visitor.json(ONE)
        training, shown = page["training"], page["job"]
        assert (training["owner"], training["image"], training["nodes"]) == ("jane", "example.com/a:1", 2)
        assert (training["runtime"], training["runtimeVersion"]) == ("plain", "generation 3")
        assert training["metric"] == {"name": "loss", "isEval": False, "value": "0.25"}
        assert shown["conditions"] == conditions
        assert shown["recipe"]["parameters"] == [["lr", "0.1"]]
        _, curves = await visitor.json(f"{ONE}/metrics")
        (series,) = curves["series"]
        assert (series["kind"], series["name"]) == ("train", "loss")
        assert (series["steps"], series["values"]) == ([0, 1], [2.5, 2.25])
        _, logs = await visitor.json(f"{ONE}/logs")
        places = [(each["node"], each["container"]) for each in logs["logs"]]
        assert places == [("node-0", "node"), ("node-1", "node"), ("node-0", "initializer")]
        assert logs["logs"][0]["lines"] == [["2026-01-01T00:00:00Z", "hello"], ["2026-01-01T00:00:01Z", ""]]
        _, events = await visitor.json(f"{ONE}/events")
        assert [(event["reason"], event["message"]) for event in events["events"]] == [("Started", "pulled")]
        _, objects = await visitor.json(f"{ONE}/objects")
        assert [each["kind"] for each in objects["objects"]] == ["TrainJob", "ClusterTrainingRuntime", "JobSet"]
        assert objects["problems"] == []
        assert "runtimeRef:" in objects["objects"][0]["yaml"]
        for path in (f"{ONE}/none", f"{ONE}/logs/none", "/api/history/team", "/api/history/team/%2e%2e/one"):
            assert (await visitor.json(path))[0] == 404, path
        assert (await visitor.json(ONE, "DELETE"))[0] == 404
        client.denied.add("get pods/log")
        _, page = await visitor.json(ONE)
        assert page["job"]["recipe"]["parameters"] == []


async def test_logs_of_many(client: UserClient, database: Database) -> None:
    """An answer has the last lines of some containers, however many there were, or of the one that is asked for."""
    nodes = [f"node-{number:03}" for number in range(3 * LOGS)]

    def write() -> None:
        save(database, past_training("one"))
        for node in nodes:
            save_log(database, "one", node, f"of {node}")
        save_log(database, "one", "a-node", "fetched", container="initializer")

    await run_sync(write)
    async with owning(client, database) as visitor:
        _, first = await visitor.json(f"{ONE}/logs")
        assert [log["node"] for log in first["logs"]] == nodes[:LOGS]
        assert first["containers"] == [*([node, "node"] for node in nodes), ["a-node", "initializer"]]
        for source, expected in (
            ("a-node/initializer", [["a-node", "initializer"]]),
            (f"{nodes[-1]}/node", [[nodes[-1], "node"]]),
            ("a-node/node", first["containers"][:LOGS]),
        ):
            _, answer = await visitor.json(f"{ONE}/logs?source={source}")
            assert [[log["node"], log["container"]] for log in answer["logs"]] == expected
            assert answer["containers"] == first["containers"]


async def test_many_samples(client: UserClient, database: Database) -> None:
    """The longest curves get coarser, and no shorter, where a training has more samples than an answer."""
    counts = {"long": SAMPLES_LIMIT - 1, "as-long": SAMPLES_LIMIT - 1, "half": SAMPLES_LIMIT // 2, "short": 10}

    def write() -> None:
        save(database, past_training("one"))
        for number, (name, count) in enumerate(counts.items()):
            save_samples(database, "one", range(count), name, number)

    await run_sync(write)
    async with owning(client, database) as visitor:
        _, content = await visitor.json(f"{ONE}/metrics")
    found = {series["name"]: series["values"] for series in content["series"]}
    assert sum(map(len, found.values())) <= SAMPLES
    assert {name: values[-1] for name, values in found.items()} == {name: count - 1 for name, count in counts.items()}
    assert [len(found[name]) for name in ("half", "short")] == [counts["half"], 10]


async def test_nothing_kept(client: UserClient, database: Database) -> None:
    """Of a training that left nothing but its row there is an empty page."""
    await run_sync(save, database, past_training("one", None, deleted=1e300, created=-1e300))
    async with owning(client, database) as visitor:
        _, page = await visitor.json(ONE)
        assert (page["job"], page["training"]["deleted"], page["training"]["created"]) == (None, None, None)
        assert (await visitor.json(f"{ONE}/metrics"))[1]["series"] == []
        assert (await visitor.json(f"{ONE}/logs"))[1] == {"containers": [], "logs": []}
        assert (await visitor.json(f"{ONE}/events"))[1] == {"events": []}
        assert (await visitor.json(f"{ONE}/objects"))[1] == {"objects": [], "problems": []}


@pytest.mark.parametrize(
    ("path", "row"),
    [
        pytest.param("/api/history/team/demo/two", {}, id="uid"),
        pytest.param("/api/history/team/other/one", {}, id="name"),
        pytest.param("/api/history/elsewhere/demo/one", {}, id="namespace"),
        pytest.param(ONE, {"cluster": "another"}, id="cluster"),
    ],
)
async def test_no_such_training(client: UserClient, database: Database, path: str, row: dict[str, Any]) -> None:
    """The uid of a training leads to it under its own name, and in its own cluster alone."""
    await run_sync(save, database, past_training("one", **row))
    async with owning(client, database) as visitor:
        assert await visitor.json(path) == (404, {"error": "the history has no such training"})
        assert (await visitor.json(f"{path}/logs"))[0] == 404


async def test_damaged(client: UserClient, database: Database) -> None:
    """Content that cannot be read is an error of this training, and of no other."""

    def write() -> None:
        save(database, past_training("one"), past_training("two"))
        row = {"uid": "one", "kind": "trainjob", "content": b"nonsense"}
        database.write(lambda connection: put(connection, DOCUMENTS, [row]))

    await run_sync(write)
    async with owning(client, database) as visitor:
        assert await visitor.json(ONE) == (500, {"error": "what the history has of this training is damaged"})
        assert (await visitor.json("/api/history/team/demo/two"))[0] == 200


async def test_no_database_yet(client: UserClient, tmp_path: Path) -> None:
    """Before anything was recorded the page says what does that, and no file is made."""
    database = await run_sync(Database, f"sqlite:///{tmp_path}/none/history.db")
    async with owning(client, database) as visitor:
        status, content = await visitor.json("/api/history")
        assert (status, content["trainings"]) == (200, [])
        assert content["note"].startswith("Nothing is recorded yet: trainer history record does that")
        assert (await visitor.json(ONE))[0] == 503
        assert not (tmp_path / "none").exists()
        await run_sync(database.migrate)
        assert (await visitor.json("/api/history"))[1]["note"] == ""
    await run_sync(database.close)


async def test_no_answer(client: UserClient, cluster: ClusterClient, clock: ManualClock, tmp_path: Path) -> None:
    """The owner sees what is wrong with the database, and others do not see its name."""
    (tmp_path / "history.db").write_text("no database" * 100)
    database = await run_sync(Database, f"sqlite:///{tmp_path}/history.db")
    cluster.grant("list trainjobs")
    async with owning(client, database) as visitor:
        status, content = await visitor.json("/api/history")
        assert (status, "history.db" in content["error"]) == (503, True)
    async with visiting_cluster(cluster, clock, database) as visitor:
        status, content = await visitor.json("/api/history")
        assert (status, "history.db" in content["error"]) == (503, False)
    await run_sync(database.close)


async def test_without_history(client: UserClient, database: Database) -> None:
    """The page knows whether there is a history to ask."""
    async with visiting(client) as visitor:
        assert (await visitor.json("/api/cluster"))[1]["hasHistory"] is False
        assert (await visitor.json("/api/history"))[0] == 404
    async with owning(client, database) as visitor:
        assert (await visitor.json("/api/cluster"))[1]["hasHistory"] is True


async def test_one_namespace(client: UserClient, database: Database) -> None:
    """A dashboard of one namespace has the history of that one alone."""
    rows = past_training("one"), past_training("two", namespace="other")
    await run_sync(save, database, *rows)
    async with owning(client, database, namespace="team") as visitor:
        assert await listed(visitor) == ["one"]
        assert (await visitor.json("/api/history"))[1]["namespaces"] == ["team"]
        assert (await visitor.json("/api/history?namespace=other"))[0] == 404
        assert (await visitor.json("/api/history/other/demo/two"))[0] == 404


@pytest.mark.parametrize(
    ("denied", "path", "problem"),
    [
        pytest.param("list trainjobs", "/api/history", "list TrainJobs", id="list"),
        pytest.param("get trainjobs", ONE, "get TrainJobs", id="page"),
        pytest.param("get trainjobs", f"{ONE}/logs", "get TrainJobs", id="logs-of-what-may-not-be-seen"),
        pytest.param("get pods/log", f"{ONE}/logs", "get pods/log", id="logs"),
        pytest.param("get pods/log", f"{ONE}/metrics", "get pods/log", id="metrics"),
        pytest.param("list events", f"{ONE}/events", "list events", id="events"),
    ],
)
async def test_rights_of_the_owner(
    client: UserClient, database: Database, denied: str, path: str, problem: str
) -> None:
    """The kubeconfig of whoever has started the dashboard decides, though the database has more."""
    await run_sync(save, database, past_training("one"))
    client.denied.add(denied)
    async with owning(client, database, home="team") as visitor:
        assert await visitor.json(path) == (403, {"error": f"you may not {problem} in the namespace team"})


@pytest.mark.parametrize(
    ("namespace", "query", "uids"),
    [
        pytest.param("*", "", {"ours", "theirs"}, id="all"),
        pytest.param("*", "?namespace=secret-team", {"theirs"}, id="all-of-one"),
        pytest.param("team", "", {"ours"}, id="own"),
        pytest.param("team", "?namespace=team", {"ours"}, id="own-of-one"),
        pytest.param("elsewhere", "", set(), id="none"),
        pytest.param("team", "?namespace=secret-team", None, id="of-others"),
        pytest.param("team", "?namespace=nowhere", None, id="of-nobody"),
    ],
)
async def test_list_of_a_user(
    cluster: ClusterClient,
    clock: ManualClock,
    database: Database,
    namespace: str,
    query: str,
    uids: set[str] | None,
) -> None:
    """A user sees trainings, and names of namespaces, where they may list TrainJobs; other ones are all the same."""
    await run_sync(save, database, past_training("ours"), past_training("theirs", namespace="secret-team"))
    cluster.grant("list trainjobs", namespace=namespace)
    async with visiting_cluster(cluster, clock, database) as visitor:
        status, content = await visitor.json(f"/api/history{query}")
        if uids is None:
            where = query.partition("=")[2]
            assert (status, content["error"]) == (403, f"you may not list TrainJobs in the namespace {where}")
            return
        assert {training["uid"] for training in content["trainings"]} == uids
        expected = {"*": ["secret-team", "team"], "team": ["team"], "elsewhere": []}[namespace]
        assert content["namespaces"] == expected


@pytest.mark.parametrize(
    ("part", "rules"),
    [
        pytest.param("", ["get trainjobs"], id="page"),
        pytest.param("/metrics", ["get trainjobs", "get pods/log"], id="metrics"),
        pytest.param("/logs", ["get trainjobs", "get pods/log"], id="logs"),
        pytest.param("/events", ["get trainjobs", "list events"], id="events"),
        pytest.param("/objects", ["get trainjobs"], id="objects"),
    ],
)
async def test_rights_of_a_user(
    cluster: ClusterClient, clock: ManualClock, database: Database, part: str, rules: list[str]
) -> None:
    """Each part needs the right to what it was read from, in its own namespace or in all, and each by itself."""
    await run_sync(save, database, past_training("one"))
    async with visiting_cluster(cluster, clock, database) as visitor:

        async def status_with(*granted: str, namespace: str) -> int:
            cluster.rules.clear()
            cluster.grant(*granted, namespace=namespace)
            await clock.advance(PERMITTED + 1)
            status: int = (await visitor.json(f"{ONE}{part}"))[0]
            return status

        assert await status_with(*rules, namespace="team") == 200
        assert await status_with(*rules, namespace="*") == 200
        assert await status_with(*rules, "list trainjobs", namespace="other-team") == 403
        for missing in rules:
            held = {"list trainjobs", *rules} - {missing}
            assert await status_with(*held, namespace="team") == 403, missing


async def test_objects_of_a_user(cluster: ClusterClient, clock: ManualClock, database: Database) -> None:
    """Each object needs the right to get its kind where it was, and the page says which ones are missing."""

    documents = {"trainjob": train_job(), "jobset": kept(JOBSETS), "runtime": kept(TRAINING_RUNTIMES)}
    documents |= {"configmap/a": kept(CONFIG_MAPS, "a"), "configmap/b": kept(CONFIG_MAPS, "b")}
    documents |= {"podgroup/demo": kept(volcano.POD_GROUPS), "podgroup/of-kubernetes": kept(POD_GROUPS[0])}
    documents |= {"secret/demo": {"apiVersion": "v1", "kind": "Secret"}}

    def write() -> None:
        save(database, past_training("one"))
        save_documents(database, "one", **documents)

    await run_sync(write)
    cluster.grant("get trainjobs", "get trainingruntimes", "get podgroups", "get secrets", namespace="team")
    cluster.grant("get jobsets", "get configmaps", namespace="other-team")
    async with visiting_cluster(cluster, clock, database) as visitor:
        _, content = await visitor.json(f"{ONE}/objects")
        assert [each["kind"] for each in content["objects"]] == ["TrainJob", "TrainingRuntime", "PodGroup", "PodGroup"]
        assert content["problems"] == [
            "you may not get jobsets in the namespace team",
            "you may not get configmaps in the namespace team",
            "objects of kind Secret are not shown",
        ]
        cluster.grant("get configmaps", namespace="team")
        await clock.advance(DENIED + 1)
        _, content = await visitor.json(f"{ONE}/objects")
        names = [each["name"] for each in content["objects"] if each["kind"] == "ConfigMap"]
        assert names == ["a", "b"]


async def test_a_namespace_that_is_gone(cluster: ClusterClient, clock: ManualClock, database: Database) -> None:
    """With a namespace go the rights in it: its history is for who may read the TrainJobs of all namespaces."""
    await run_sync(save, database, past_training("one", deleted=90.0))
    cluster.grant("list trainjobs", "get trainjobs", namespace="team")
    async with visiting_cluster(cluster, clock, database) as visitor:
        assert await listed(visitor) == ["one"]
        cluster.rules.clear()
        await clock.advance(PERMITTED + 1)
        assert await listed(visitor) == []
        assert (await visitor.json(ONE))[0] == 403
        cluster.grant("list trainjobs", "get trainjobs")
        await clock.advance(PERMITTED + 1)
        assert await listed(visitor) == ["one"]
        assert (await visitor.json(ONE))[0] == 200


async def test_no_existence_without_rights(cluster: ClusterClient, clock: ManualClock, database: Database) -> None:
    """Whether there was such a training or not, who may not get it gets the same answer."""
    await run_sync(save, database, past_training("one"))
    async with visiting_cluster(cluster, clock, database) as visitor:
        answers = [await visitor.json(f"/api/history/team/demo/{uid}") for uid in ("one", "two")]
        assert answers == [(403, {"error": "you may not get TrainJobs in the namespace team"})] * 2


async def test_failure_of_reviews_of_namespaces(cluster: ClusterClient, clock: ManualClock, database: Database) -> None:
    """The list says so where the API server does not say of a single namespace whether a user may see it."""
    await run_sync(save, database, past_training("one"))
    cluster.grant("list trainjobs", namespace="team")
    async with visiting_cluster(cluster, clock, database) as visitor:
        assert await listed(visitor) == ["one"]
        await run_sync(save, database, past_training("two", namespace="new"), past_training("three", namespace="newer"))
        cluster.failure = TransportError("the API server is away")
        status, content = await visitor.json("/api/history")
    assert (status, "the API server is away" in content["error"]) == (502, True)
