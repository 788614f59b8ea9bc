"""What is kept of sweeps and of which trainings are their trials, for how long, and what is said of their ends."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from anyio.to_thread import run_sync
from sqlalchemy import Connection

from packages.dashboard.tests.history.conftest import Cluster, FailingDatabase, recorded_cluster, train_job
from packages.dashboard.tests.history.test_notifications import Receiver, until
from packages.dashboard.tests.history.test_queries import row
from trainer.api.metric_curve import CURVE
from trainer.api.optimization import ASSIGNMENT, OPTIMIZATION_JOBS, SWEEP_LABEL, TRIAL_LABEL
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.errors import ForbiddenError
from trainer.kube.objects import Object
from trainer_dashboard.history.comparison import Difference, compare
from trainer_dashboard.history.database import Database
from trainer_dashboard.history.errors import HistoryError
from trainer_dashboard.history.notifications import Webhook
from trainer_dashboard.history.persistence import Persistence
from trainer_dashboard.history.queries import Cursor, Filter, History
from trainer_dashboard.history.retention import DAY, Retention, RetentionOptions
from trainer_dashboard.history.schema import SWEEPS, TRAININGS
from trainer_dashboard.history.statements import put
from trainer_dashboard.history.sweep_queries import SweepHistory, SweepRecord
from trainer_kube_testing import ManualClock

SECRET = "hunter2hunter2"
BEGIN = "2026-01-01T00:00:00Z"
END = "2026-01-01T00:10:00Z"
SPEC = {
    "objectives": [{"metric": "val_loss", "direction": "Minimize"}],
    "searchAlgorithm": {"tpe": {"seed": 7}},
    "parameters": [{"name": "lr", "searchSpace": {"uniform": {"min": "0.1", "max": "1"}}}],
    "numTrials": 4,
}
RESULT = {
    "trainJobName": "search-trial-2",
    "value": "0.25",
    "parameters": [{"name": "lr", "value": "0.2"}, {"name": "api_key", "value": "hunter2hunter2"}],
}
COUNTS = {"running": 0, "succeeded": 2, "failed": 1, "pruned": 1}


@pytest.fixture
def cluster(clock: ManualClock, database: FailingDatabase) -> Cluster:
    return recorded_cluster(clock, database, OPTIMIZATION_JOBS)


def optimization_job(name: str = "search", created: str = BEGIN, **status: Any) -> Object:
    metadata = {"name": name, "namespace": "default", "uid": f"uid-of-{name}", "creationTimestamp": created}
    template = {"spec": {"trainer": {"env": [{"name": "HF_TOKEN", "value": "hf_secretsecretsecret"}]}}}
    names = {"apiVersion": OPTIMIZATION_JOBS.api_version, "kind": OPTIMIZATION_JOBS.kind, "metadata": metadata}
    return names | {"spec": SPEC | {"trainJobTemplate": template}, "status": status}


def ended(kind: str = "Complete", reason: str = "MaxTrialsReached") -> Object:
    condition = {"type": kind, "status": "True", "reason": reason, "message": "4 trials", "lastTransitionTime": END}
    return {"conditions": [condition]}


def trial(number: int, rate: str, sweep: str = "search", **annotations: str) -> Object:
    job = train_job(f"{sweep}-trial-{number}")
    owner = {"apiVersion": OPTIMIZATION_JOBS.api_version, "kind": OPTIMIZATION_JOBS.kind, "controller": True}
    job["metadata"] |= {
        "ownerReferences": [owner | {"name": sweep, "uid": f"uid-of-{sweep}"}],
        "labels": {SWEEP_LABEL: sweep, TRIAL_LABEL: str(number)},
        "annotations": {ASSIGNMENT: json.dumps([{"name": "lr", "value": rate}]), **annotations},
    }
    return job


def sweeps_of(history: History) -> list[SweepRecord]:
    return SweepHistory(history).sweeps()


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param({}, ("Submitted", "", None, None, "", ""), id="new"),
        pytest.param(
            {"state": "Running", "trialCounts": {"running": 2, "succeeded": 1}, "result": RESULT},
            ("Running", "", None, 1, "search-trial-2", "0.25"),
            id="running",
        ),
        pytest.param(
            ended() | {"state": "Complete", "trialCounts": COUNTS, "completionTime": END, "result": RESULT},
            ("Complete", "MaxTrialsReached", 600.0, 2, "search-trial-2", "0.25"),
            id="complete",
        ),
        pytest.param(
            ended("Failed", "NoTrialSucceeded"),
            ("Failed", "NoTrialSucceeded", 600.0, None, "", ""),
            id="conditions",
        ),
        pytest.param(
            {"conditions": [{"type": "Created", "status": "False", "reason": "TrainJobsCreationFailed"}]},
            ("Blocked", "TrainJobsCreationFailed", None, None, "", ""),
            id="blocked",
        ),
        pytest.param(
            {"trialCounts": {"succeeded": "many"}, "result": [], "startTime": "soon"},
            ("Submitted", "", None, 0, "", ""),
            id="nonsense",
        ),
    ],
)
async def test_row(cluster: Cluster, status: Object, expected: tuple[object, ...]) -> None:
    """A sweep is in the list with what its status says; of what a CRD does not keep, with what conditions say."""
    cluster.client.add(optimization_job(**status))
    async with cluster.recorder():
        record = (await cluster.until(sweeps_of))[0]
    found = (record.state, record.reason, record.seconds, record.succeeded, record.best, record.value)
    assert found == expected
    assert (record.metric, record.direction, record.algorithm, record.trials) == ("val_loss", "Minimize", "tpe", 4)


async def test_restarts(cluster: Cluster) -> None:
    """Over ten restarts of the recorder a sweep and its trials are there once, and as they were last."""
    for number in range(1, 11):
        cluster.client.add(trial(number, f"0.{number}"))
        counts = {"running": 1, "succeeded": number - 1}
        cluster.client.add(optimization_job(state="Running", trialCounts=counts))
        async with cluster.recorder():
            await cluster.until(sweeps_of)
            if number % 3 == 0:  # what changes at the end is written as well
                cluster.client.add(optimization_job(state="Running", trialCounts=counts | {"succeeded": number}))
    cluster.client.add(optimization_job(**ended(), state="Complete", result=RESULT))
    cluster.client.remove(TRAIN_JOBS, "search-trial-3", "default")
    async with cluster.recorder():
        await cluster.until(lambda history: sweeps_of(history)[0].state == "Complete")
        cluster.client.remove(OPTIMIZATION_JOBS, "search", "default")
        await cluster.until(lambda history: sweeps_of(history)[0].deleted)
    assert len(await cluster.ask(sweeps_of)) == 1
    trials = await cluster.ask(lambda history: SweepHistory(history).trials(sweeps_of(history)[0]))
    assert [(each.sweep, each.trial, each.assignment) for each in trials] == [
        ("search", number, {"lr": f"0.{number}"}) for number in range(1, 11)
    ]
    assert [each.trial for each in trials if each.deleted] == [3]
    kept = await cluster.ask(lambda history: SweepHistory(history).object_of("uid-of-search"))
    assert kept["spec"]["trainJobTemplate"]["spec"]["trainer"]["env"][0]["value"] == "[redacted]"
    assert kept["status"]["result"]["parameters"][1]["value"] == "[redacted]"
    jobs = await cluster.ask(lambda history: SweepHistory(history).train_jobs(sweeps_of(history)[0]))
    assert [job["metadata"]["name"] for job in jobs] == [f"search-trial-{number}" for number in range(1, 11)]


async def test_deleted_meanwhile(cluster: Cluster) -> None:
    """A sweep that is deleted while no recorder runs is gone with the next start, and one that was not read is not."""
    cluster.client.add(optimization_job())
    async with cluster.recorder():
        await cluster.until(sweeps_of)
    fault = cluster.client.faults.fail(ForbiddenError(403, "no"), times=None, resource=OPTIMIZATION_JOBS)
    async with cluster.recorder():
        cluster.client.add(train_job("other"))
        await cluster.until(lambda history: history.trainings(Filter(name="other")))
        assert (await cluster.ask(sweeps_of))[0].deleted is None
    fault.end()
    cluster.client.remove(OPTIMIZATION_JOBS, "search", "default")
    async with cluster.recorder():
        await cluster.until(lambda history: sweeps_of(history)[0].deleted)


async def test_what_trials_are(cluster: Cluster) -> None:
    """Trials are those that an OptimizationJob controls, whatever others have as labels; they stay so when it goes."""
    stranger = train_job("stranger")
    stranger["metadata"] |= {"labels": {SWEEP_LABEL: "search", TRIAL_LABEL: "9"}}
    orphan = trial(1, "0.1")
    for job in (stranger, orphan, trial(2, "0.2", sweep="other")):
        cluster.client.add(job)
    odd = trial(3, "0.3")
    odd["metadata"]["labels"][TRIAL_LABEL] = "x" * 100
    odd["metadata"]["annotations"][ASSIGNMENT] = "[" * 100_000
    cluster.client.add(odd)
    async with cluster.recorder():
        await cluster.until(lambda history: len(history.trainings()) == 4)
        cluster.client.add(orphan | {"metadata": orphan["metadata"] | {"ownerReferences": [], "labels": {"a": "b"}}})
        await cluster.until(
            lambda history: "a" in (history.document("uid-of-search-trial-1", "trainjob") or {})["metadata"]["labels"]
        )
    found = await cluster.ask(lambda history: history.trainings(Filter(sweep="search")))
    assert {(each.name, each.trial) for each in found} == {("search-trial-1", 1), ("search-trial-3", None)}
    compared = await cluster.ask(
        lambda history: compare(history, history.training("search-trial-1"), history.training("other-trial-2"))
    )
    assert compared.parameters == (Difference("lr", "0.1", "0.2"),)


async def test_secret_parameters(cluster: Cluster) -> None:
    """A parameter that is secret by its name is kept nowhere, and the others of its trial are."""
    parameters = [
        {"name": "lr", "searchSpace": {}},
        {"name": "api_key", "searchSpace": {"categorical": {"choices": [SECRET]}}},
    ]
    job = optimization_job(trials=[{"number": 1, "state": "Succeeded", "parameterValues": ["0.1", SECRET]}])
    cluster.client.add(job | {"spec": job["spec"] | {"parameters": parameters}})
    assigned = json.dumps([{"name": "lr", "value": "0.1"}, {"name": "api_key", "value": SECRET}])
    cluster.client.add(trial(1, "0.1", **{ASSIGNMENT: assigned}))
    async with cluster.recorder():
        await cluster.until(lambda history: sweeps_of(history) and history.trainings())
    sweep = await cluster.ask(lambda history: SweepHistory(history).object_of("uid-of-search"))
    (record,) = await cluster.ask(lambda history: history.trainings())
    (train_job,) = await cluster.ask(lambda history: SweepHistory(history).train_jobs(sweeps_of(history)[0]))
    assert SECRET not in json.dumps([sweep, train_job, record.assignment])
    assert sweep["status"]["trials"][0]["parameterValues"] == ["0.1", "[redacted]"]
    assert record.assignment == {"lr": "0.1", "api_key": "[redacted]"}


@pytest.mark.parametrize("version", ["v1alpha1", "v2alpha1"])
async def test_versions(clock: ManualClock, database: FailingDatabase, version: str) -> None:
    """Sweeps are those of the version that the cluster serves."""
    served = msgspec.structs.replace(OPTIMIZATION_JOBS, version=version)
    cluster = recorded_cluster(clock, database, served)
    cluster.client.add(optimization_job(**ended()) | {"apiVersion": served.api_version})
    async with cluster.recorder(optimization_jobs=served):
        record = (await cluster.until(sweeps_of))[0]
    assert (record.state, record.ended) == ("Complete", 1767226200)


async def test_curves_alone_are_no_write(cluster: Cluster) -> None:
    """The document of a trial that runs is not written again for its curve, and the last curve is kept at its end."""

    def curve_of(history: History) -> str:
        job = history.document("uid-of-search-trial-1", "trainjob") or {"metadata": {"annotations": {CURVE: ""}}}
        return str(job["metadata"]["annotations"][CURVE])

    cluster.client.add(trial(1, "0.1", **{CURVE: "first"}) | {"status": {"state": "Running"}})
    async with cluster.recorder():
        await cluster.until(lambda history: curve_of(history) == "first")
        cluster.client.add(trial(1, "0.1", **{CURVE: "second"}) | {"status": {"state": "Running"}})
        for _ in range(10):
            await cluster.clock.advance(0.5)
        assert await cluster.ask(curve_of) == "first"
        cluster.client.add(trial(1, "0.1", **{CURVE: "last"}) | {"status": {"state": "Running"}})
        cluster.end("search-trial-1")
        await cluster.until(lambda history: curve_of(history) == "last")


@pytest.mark.parametrize(
    ("status", "lines"),
    [
        pytest.param(
            ended() | {"result": RESULT},
            [
                "OptimizationJob default/search is complete",
                "the best trial is search-trial-2 with val_loss 0.25 (lr=0.2, api_key=[redacted])",
                "trainer get sweep search -n default",
            ],
            id="complete",
        ),
        pytest.param(
            ended("Failed", "MaxFailedTrialsReached"),
            [
                "OptimizationJob default/search has failed: MaxFailedTrialsReached: 4 trials",
                "trainer get sweep search -n default",
            ],
            id="failed",
        ),
    ],
)
async def test_notification(cluster: Cluster, status: Object, lines: list[str]) -> None:
    """The webhook gets the end of a sweep once over restarts, nothing of its trials, and nothing that was before."""
    receiver = Receiver()
    cluster.client.add(optimization_job("before", **ended()))
    async with receiver.listening():
        webhook = Webhook(receiver.url)
        async with cluster.recorder(webhook=webhook):
            await cluster.until(sweeps_of)
            cluster.client.add(optimization_job(state="Running"))
            cluster.client.add(trial(1, "0.1"))
            await cluster.until(lambda history: len(sweeps_of(history)) == 2 and history.trainings())
            cluster.end("search-trial-1", "Failed")
        cluster.client.add(optimization_job(**status))
        for _ in range(2):
            async with cluster.recorder(webhook=webhook):
                await until(cluster, lambda: receiver.texts)
                for _ in range(40):
                    await cluster.clock.advance(0.5)
    assert [text.splitlines() for text in receiver.texts] == [lines]


async def test_notification_of_trials(cluster: Cluster) -> None:
    """Who wants it is notified of each trial as well, and of a sweep that came and ended while no recorder ran."""
    receiver = Receiver()
    async with receiver.listening():
        webhook = Webhook(receiver.url, with_trials=True)
        async with cluster.recorder(webhook=webhook):
            cluster.client.add(train_job("first"))
            await cluster.until(lambda history: history.trainings())
        cluster.client.add(trial(1, "0.1"))
        cluster.end("search-trial-1")
        cluster.client.add(optimization_job(**ended()))
        async with cluster.recorder(webhook=webhook):
            await until(cluster, lambda: len(receiver.texts) == 2)
    assert {text.splitlines()[0] for text in receiver.texts} == {
        "TrainJob default/search-trial-1 has succeeded",
        "OptimizationJob default/search is complete",
    }


def sweep_row(uid: str, created: float = 0.0, **columns: Any) -> dict[str, Any]:
    empty: dict[str, Any] = {column.name: None if column.nullable else "" for column in SWEEPS.c}
    fixed = {"uid": uid, "created": created, "cluster": "here", "namespace": "a", "name": uid, "content": b""}
    return empty | fixed | columns


KEPT = {"running", "there"}


@pytest.mark.parametrize(
    ("options", "trials", "sweeps"),
    [
        pytest.param(
            RetentionOptions(), {"old", "left", "of running"}, {"over", "running", "alone", "there"}, id="default"
        ),
        pytest.param(RetentionOptions(seconds=7 * DAY), {"of running"}, KEPT, id="age"),
        pytest.param(RetentionOptions(seconds=9.5 * DAY), {"left", "of running"}, {*KEPT, "over"}, id="some"),
        pytest.param(RetentionOptions(size=5_500), {"of running"}, {*KEPT, "alone"}, id="size"),
        pytest.param(RetentionOptions(size=1), set(), {*KEPT, "alone"}, id="not even that"),
    ],
)
async def test_retention(
    database: Database, clock: ManualClock, options: RetentionOptions, trials: set[str], sweeps: set[str]
) -> None:
    """Trials of a sweep that runs stay longest; a sweep that is gone goes with its last trial, or by its own age."""
    now = clock.now().timestamp()

    def over(days: float) -> dict[str, Any]:
        return {"ended": now - days * DAY, "deleted": now - days * DAY}

    def fill(connection: Connection) -> None:
        trainings = [
            row("old", 0, cluster="here", sweep_uid="over", **over(10)),
            row("left", 0, cluster="here", sweep_uid="over", **over(9)),
            row("of running", 0, cluster="here", sweep_uid="running", **over(20)),
        ]
        put(connection, TRAININGS, trainings)
        there = {"ended": now - 20 * DAY}
        rows = [sweep_row("over", **over(9)), sweep_row("running"), sweep_row("alone", **over(20))]
        put(connection, SWEEPS, [*rows, sweep_row("there", **there), sweep_row("elsewhere", **over(20), cluster="x")])

    await database.run(fill)
    retention = Retention(Persistence(database, clock), options, "here", clock)
    for _ in range(2):
        await retention.look()
    history = History(database)
    assert {each.uid for each in await run_sync(history.trainings)} == trials
    assert {each.uid for each in await run_sync(SweepHistory(history).sweeps)} == {*sweeps, "elsewhere"}


@pytest.mark.parametrize(
    ("which", "found"),
    [
        pytest.param(Filter(), ["c", "b", "a"], id="all"),
        pytest.param(Filter(state="Failed"), ["b"], id="state"),
        pytest.param(Filter(words=("LOSS",)), ["c"], id="metric"),
        pytest.param(Filter(cluster="here", before=2.0), ["b", "a"], id="cluster and time"),
        pytest.param(Filter(namespaces=frozenset({"x"})), [], id="namespace"),
    ],
)
def test_filters(database: Database, which: Filter, found: list[str]) -> None:
    """Filters of trainings select sweeps, which come page by page."""
    rows = [sweep_row("a"), sweep_row("b", 1.0, state="Failed"), sweep_row("c", 2.0, metric="val_loss")]
    database.write(lambda connection: put(connection, SWEEPS, rows))
    history, after = SweepHistory(History(database)), None
    listed: list[str] = []
    while page := history.sweeps(which, limit=1, after=after):
        listed += [each.uid for each in page]
        after = Cursor(page[-1].created, page[-1].uid)
    assert listed == found
    assert history.sweep("a/c").uid == "c"
    with pytest.raises(HistoryError, match="no sweep x/c: trainer history sweeps lists them"):
        history.sweep("x/c")
