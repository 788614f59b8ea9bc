"""What is forgotten, and when."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import pytest
from anyio.to_thread import run_sync
from sqlalchemy import Connection, select

from packages.dashboard.tests.history.conftest import Cluster, node_pod
from packages.dashboard.tests.history.test_queries import row
from packages.dashboard.tests.history.test_recorder import event, report, steps_of
from trainer.api.trainjob import TRAIN_JOBS
from trainer_dashboard.history.database import Database
from trainer_dashboard.history.persistence import Persistence
from trainer_dashboard.history.queries import History
from trainer_dashboard.history.records import metric_progress
from trainer_dashboard.history.retention import DAY, Retention, RetentionOptions
from trainer_dashboard.history.schema import DOCUMENTS, TRAININGS
from trainer_dashboard.history.statements import put
from trainer_kube_testing import ManualClock

ALL = {"running", "there", "old", "early", "new"}


@pytest.mark.parametrize(
    ("options", "left", "detailed"),
    [
        pytest.param(RetentionOptions(), ALL, ALL, id="default"),
        pytest.param(RetentionOptions(seconds=7 * DAY), {"running", "there", "new"}, {"running", "new"}, id="age"),
        pytest.param(RetentionOptions(size=45_000), ALL - {"old"}, ALL - {"old"}, id="size"),
        pytest.param(
            RetentionOptions(size=35_000),
            {"running", "there", "early", "new"},
            {"running", "early", "new"},
            id="smaller",
        ),
        pytest.param(RetentionOptions(size=1), {"running", "there"}, {"running"}, id="never what runs"),
    ],
)
async def test_retention(
    database: Database, clock: ManualClock, options: RetentionOptions, left: set[str], detailed: set[str]
) -> None:
    """Trainings go by the time of their end, or of an earlier deletion, with all that belongs to them; of those that
    are in the cluster the row stays, and all of one that runs. Those of another cluster stay, and take no room."""
    now = clock.now().timestamp()
    times = {
        "running": {},
        "there": {"ended": now - 9 * DAY},
        "old": {"ended": now - 10 * DAY, "deleted": now - DAY},
        "early": {"deleted": now - 8 * DAY},
        "new": {"ended": now - 2 * DAY, "deleted": now - DAY},
    }
    elsewhere = row("elsewhere", now - 20 * DAY, ended=now - 16 * DAY, deleted=now - 15 * DAY, cluster="there")

    def fill(connection: Connection) -> None:
        here = [row(uid, now - 20 * DAY, uid, cluster="here", **columns) for uid, columns in times.items()]
        put(connection, TRAININGS, [*here, elsewhere])
        uids = [*times, "elsewhere"]
        put(connection, DOCUMENTS, [{"uid": uid, "kind": "trainjob", "content": b"x" * 10_000} for uid in uids])

    await database.run(fill)
    retention = Retention(Persistence(database, clock), options, "here", clock)
    for _ in range(2):
        await retention.look()
        found = await run_sync(History(database).trainings)
        assert {each.uid for each in found} == {*left, "elsewhere"}
        assert {each.uid for each in found if each.forgotten is None} == {*detailed & left, "elsewhere"}

    def documents(connection: Connection) -> set[str]:
        return set(connection.scalars(select(DOCUMENTS.c.uid)))

    assert await database.run(documents) == {*detailed & left, "elsewhere"}


@pytest.mark.parametrize(
    ("size", "left"),
    [
        pytest.param(1_000_000, {"a": 8, "b": 30, "c": 3}, id="room"),
        pytest.param(350_000, {"a": 8, "b": 20, "c": 3}, id="who-has-most-loses"),
        pytest.param(150_000, {"a": 5, "b": 5, "c": 3}, id="shares"),
        pytest.param(33_000, {"a": 1, "b": 1, "c": 1}, id="equal-shares"),
    ],
)
@pytest.mark.parametrize("is_over", [True, False])
async def test_shares(
    database: Database, clock: ManualClock, size: int, left: dict[str, int], *, is_over: bool
) -> None:
    """What does not fit is taken from the namespaces that have most; where theirs is not over, from nobody else."""
    now, uids = clock.now().timestamp(), {"a": 8, "b": 30, "c": 3}

    def fill(connection: Connection) -> None:
        for age, (namespace, number) in enumerate(uids.items()):
            # Those of the namespace with most are the newest.
            over = now - DAY * (1 if namespace == "b" else 9 + age)
            ended = {"ended": over, "deleted": over} if is_over or namespace != "b" else {}
            columns: dict[str, Any] = {"namespace": namespace, "cluster": "here"} | ended
            rows = [row(f"{namespace}{each}", now, **columns) for each in range(number)]
            put(connection, TRAININGS, rows)
            documents = [{"uid": each["uid"], "kind": "trainjob", "content": b"x" * 10_000} for each in rows]
            put(connection, DOCUMENTS, documents)

    await database.run(fill)
    await Retention(Persistence(database, clock), RetentionOptions(size=size), "here", clock).look()
    found = Counter(each.namespace for each in await run_sync(History(database).trainings))
    assert found == (left if is_over else left | {"b": 30})


async def test_still_in_the_cluster(cluster: Cluster) -> None:
    """What was forgotten of a TrainJob that nobody deletes is not recorded again, also by another recorder."""
    job = cluster.submit()
    log = cluster.client.log(cluster.client.add(node_pod(job))["metadata"]["name"], "default", "node")
    report(log, 1)
    async with cluster.recorder():
        await cluster.until(lambda history: steps_of(history) == [1])
        log.end()
        cluster.client.add(node_pod(job, ended=True))
        cluster.end("demo")
        await cluster.until(lambda history: history.log_tails("uid-of-demo"))
        await cluster.until(lambda _: cluster.database.read(partial(metric_progress, uid="uid-of-demo")).is_done)
    cluster.options = RetentionOptions(seconds=30 * DAY)
    await cluster.clock.advance(31 * DAY)
    reads = len(cluster.client.requests_of("log"))
    for _ in range(2):
        async with cluster.recorder():
            await cluster.until(lambda history: history.trainings()[0].forgotten)
            cluster.change("demo", note="changed")
            cluster.client.add(event("late", "demo", at="2026-02-02T00:00:00Z"))
            for _ in range(20):
                await cluster.clock.advance(0.5)
    assert len(cluster.client.requests_of("log")) == reads
    assert not await cluster.ask(lambda history: history.log_tails("uid-of-demo"))
    assert not await cluster.ask(lambda history: history.events("uid-of-demo"))
    assert not await cluster.ask(lambda history: history.document("uid-of-demo", "trainjob"))
    assert not await cluster.ask(steps_of)
    (record,) = await cluster.ask(lambda history: history.trainings())
    assert (record.name, record.state) == ("demo", "Complete")
    cluster.client.remove(TRAIN_JOBS, "demo", "default")
    async with cluster.recorder():
        await cluster.until(lambda history: history.trainings() == [])
