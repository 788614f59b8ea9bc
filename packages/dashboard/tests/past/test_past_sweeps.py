"""Past sweeps on the page: what is listed and shown of them, and to whom."""

from __future__ import annotations

from typing import Any

import pytest
from anyio.to_thread import run_sync
from sqlalchemy import update

from packages.dashboard.tests.conftest import UserClient
from packages.dashboard.tests.members import ClusterClient
from packages.dashboard.tests.past.test_past_trainings import owning, visiting_cluster
from packages.dashboard.tests.past_trainings import BEGIN, past_training, save, save_documents, save_sweep
from packages.dashboard.tests.sweeps import condition, record, sweep, trial
from trainer.api.optimization import TRIAL_LABEL
from trainer.kube.objects import Object
from trainer_dashboard.access.cluster_authenticator import PERMITTED
from trainer_dashboard.history.database import Database
from trainer_dashboard.history.schema import SWEEPS
from trainer_dashboard.past import past_sweeps
from trainer_dashboard.past.past_rows import past_time
from trainer_kube_testing import ManualClock

LIST = "/api/past/sweeps"
ONE = f"{LIST}/team/digits/uid-of-digits"
VALUES = ("0.01", "4", "sgd")


def complete(name: str = "digits", *, namespace: str = "team", at: str = "10", **status: Any) -> Object:
    """A sweep that ended so many minutes after its beginning."""
    ended = condition("Complete", reason="MaxTrialsReached")
    return sweep(name, namespace=namespace, conditions=[ended], completionTime=f"2026-01-01T00:{at}:00Z", **status)


def save_trial(database: Database, job: Object) -> None:
    uid, number = job["metadata"]["uid"], int(job["metadata"]["labels"][TRIAL_LABEL])
    of_sweep: dict[str, Any] = {"sweep_uid": "uid-of-digits", "sweep": "digits", "trial": number}
    of_sweep |= {"namespace": job["metadata"]["namespace"]}
    save(database, past_training(uid, name=job["metadata"]["name"], deleted=900.0, **of_sweep))
    save_documents(database, uid, trainjob=job)


async def test_list(client: UserClient, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sweeps that have ended or are gone are listed page by page, that which was over last first, as live ones are."""
    monkeypatch.setattr(past_sweeps, "PAGE", 2)
    await run_sync(save_sweep, database, complete("first", at="10"))
    await run_sync(
        save_sweep, database, complete("last", at="30", result={"trainJobName": "last-trial-2", "value": "1"})
    )
    await run_sync(lambda: save_sweep(database, sweep("stopped", namespace="team"), deleted=1200.0))
    await run_sync(save_sweep, database, sweep("running", namespace="team"))
    await run_sync(lambda: save_sweep(database, complete("other"), cluster="another"))
    async with owning(client, database) as visitor:
        _, content = await visitor.json(LIST)
        assert [each["name"] for each in content["sweeps"]] == ["last", "stopped"]
        assert content["namespaces"] == ["team"]
        _, following = await visitor.json(f"{LIST}?after={content['next']}")
        assert ([each["name"] for each in following["sweeps"]], following["next"]) == (["first"], "")
        _, filtered = await visitor.json(f"{LIST}?state=Complete&q=val_loss&name=first")
        assert [each["name"] for each in filtered["sweeps"]] == ["first"]
    last, stopped = content["sweeps"]
    assert (last["best"]["number"], last["numTrials"], last["deleted"]) == (2, 20, None)
    assert (stopped["state"], stopped["deleted"]) == ("Submitted", "2026-01-01T00:20:00Z")


async def test_one(client: UserClient, database: Database) -> None:
    """A sweep comes with its trials, also those whose TrainJobs nobody has seen, none of another namespace."""
    done = complete(trials=[record(2, VALUES, value="0.25"), record(3, VALUES, "Pruned", value="0.5")])
    await run_sync(save_sweep, database, done)
    names = ("lr", "layers", "optimizer")
    await run_sync(
        save_trial, database, trial(2, dict(zip(names, VALUES, strict=True)), [(1, 0.5), (9, 0.25)], of=done)
    )
    foreign = trial(4, {"lr": "1"}, [(1, 0.0)], of=sweep(namespace="elsewhere"))
    await run_sync(save_trial, database, foreign)
    async with owning(client, database) as visitor:
        status, content = await visitor.json(ONE)
        assert status == 200, content
        for path in ("team/digits/other", "team/other/uid-of-digits", "elsewhere/digits/uid-of-digits"):
            assert await visitor.json(f"{LIST}/{path}") == (404, {"error": "the history has no such sweep"})
    assert (content["sweep"]["aggregate"], content["sweep"]["ended"]) == ("Min", "2026-01-01T00:10:00Z")
    assert [(each["number"], each["state"], each["points"]) for each in content["trials"]] == [
        (2, "Succeeded", [[1, 0.5], [9, 0.25]]),
        (3, "Pruned", []),
    ]
    assert [(each["uid"], each["isThere"], each["ended"]) for each in content["trials"]] == [
        ("uid-of-digits-trial-2", False, past_time(BEGIN + 900)),
        ("", False, None),
    ]
    assert content["trials"][1]["parameters"] == [*VALUES]
    assert (content["importance"]["method"], content["problems"]) == ("", [])


async def test_damaged(client: UserClient, database: Database) -> None:
    """A damaged sweep is listed by its row, and its page says what is wrong."""
    await run_sync(save_sweep, database, complete())
    await run_sync(database.write, lambda connection: connection.execute(update(SWEEPS).values(content=b"x")))
    async with owning(client, database) as visitor:
        _, content = await visitor.json(LIST)
        assert [(each["name"], each["state"]) for each in content["sweeps"]] == [("digits", "Complete")]
        assert await visitor.json(ONE) == (500, {"error": "what the history has of this sweep is damaged"})


@pytest.mark.parametrize(
    ("granted", "namespace", "found"),
    [
        pytest.param("list optimizationjobs", "*", ["digits", "theirs"], id="all"),
        pytest.param("list optimizationjobs", "team", ["digits"], id="own"),
        pytest.param("list trainjobs", "*", [], id="only trainings"),
    ],
)
async def test_list_of_a_user(
    cluster: ClusterClient, clock: ManualClock, database: Database, granted: str, namespace: str, found: list[str]
) -> None:
    """A user sees sweeps, and names of namespaces, where they may list OptimizationJobs."""
    for obj in (complete(), complete("theirs", namespace="secret-team")):
        await run_sync(save_sweep, database, obj)
    cluster.grant(granted, namespace=namespace)
    async with visiting_cluster(cluster, clock, database) as visitor:
        _, content = await visitor.json(LIST)
        assert sorted(each["name"] for each in content["sweeps"]) == found
        assert len(content["namespaces"]) == len(found)
        status, refused = await visitor.json(f"{LIST}?namespace=elsewhere")
        if namespace != "*" or not found:
            problem = "you may not list OptimizationJobs in the namespace elsewhere"
            assert (status, refused) == (403, {"error": problem})


async def test_rights_of_a_user(cluster: ClusterClient, clock: ManualClock, database: Database) -> None:
    """A sweep needs the right to get it in its namespace, and what its TrainJobs have said that to list these."""
    done = complete(trials=[record(2, VALUES, value="0.25")])
    await run_sync(save_sweep, database, done)
    await run_sync(save_trial, database, trial(2, {"lr": "0.01"}, [(1, 0.5)], of=done))
    async with visiting_cluster(cluster, clock, database) as visitor:
        for rules, status, points in (
            (["list optimizationjobs", "list trainjobs"], 403, None),
            (["get optimizationjobs"], 200, []),
            (["get optimizationjobs", "list trainjobs"], 200, [[1, 0.5]]),
        ):
            cluster.rules.clear()
            cluster.grant(*rules, namespace="team")
            await clock.advance(PERMITTED + 1)
            answered, content = await visitor.json(ONE)
            assert answered == status
            if points is not None:
                assert content["trials"][0]["points"] == points
                assert bool(content["problems"]) is (not points)


async def test_one_namespace(client: UserClient, database: Database) -> None:
    """A dashboard of one namespace shows the past of no other one."""
    await run_sync(save_sweep, database, complete())
    async with owning(client, database, namespace="other") as visitor:
        assert (await visitor.json(ONE))[0] == 404
        assert (await visitor.json(f"{LIST}?namespace=team"))[0] == 404
        assert (await visitor.json(LIST))[1]["sweeps"] == []
