"""What a recorder writes, and that it writes it once."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import pytest
from anyio.lowlevel import checkpoint
from anyio.to_thread import run_sync
from structlog.testing import capture_logs

from packages.dashboard.tests.history.conftest import (
    TAG,
    Cluster,
    FailingDatabase,
    gang,
    jobset,
    node_pod,
    owned,
    recorded_cluster,
    train_job,
)
from packages.dashboard.tests.history.test_database import lose_session
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.errors import ForbiddenError, KubeError, NotFoundError, TransportError
from trainer.kube.objects import Object, name_of
from trainer.kube.resource import CONFIG_MAPS, HORIZONTAL_POD_AUTOSCALERS, PODS, Resource
from trainer.plugins import coscheduling
from trainer.progress.samples import MetricId
from trainer.workloads import JOBSETS
from trainer.workloads.scheduling_groups import POD_GROUPS
from trainer_dashboard.history import metric_writer, recorder
from trainer_dashboard.history.database import Database
from trainer_dashboard.history.errors import LostFileError, TakenOverError
from trainer_dashboard.history.log_tails import BYTES
from trainer_dashboard.history.notifications import Webhook
from trainer_dashboard.history.queries import History
from trainer_dashboard.history.records import mark_deleted, metric_progress
from trainer_kube_testing import FakeLog, ManualClock

RESOURCE_OF = {
    resource.kind: resource for resource in (CONFIG_MAPS, HORIZONTAL_POD_AUTOSCALERS, JOBSETS, coscheduling.POD_GROUPS)
}
LOSS = MetricId(is_eval=False, name="loss")


def report(log: FakeLog, *steps: int) -> None:
    for step in steps:
        message = {"currentStep": step, "trainMetrics": {"loss": step / 2}}
        log.write(f"step {step}\n{TAG} {json.dumps(message)}\n".encode())


def steps_of(history: History, uid: str = "uid-of-demo") -> list[float]:
    curve = history.curves(uid).by_metric.get(LOSS)
    return list(curve.steps) if curve is not None else []


async def test_life(cluster: Cluster) -> None:
    """A TrainJob is in the list from its beginning, with its state, and stays when it is deleted."""
    async with cluster.recorder():
        cluster.submit(trainer={"numNodes": 2, "env": [{"name": "HF_TOKEN", "value": "hf_secretsecretsecret"}]})
        record = (await cluster.until(lambda history: history.trainings()))[0]
        assert (record.namespace, record.name, record.state, record.nodes) == ("default", "demo", "Submitted", 2)
        assert (record.runtime_kind, record.runtime, record.runtime_version) == (
            "ClusterTrainingRuntime",
            "plain",
            "generation 3",
        )
        assert record.image == "example.com/train:1"
        cluster.end("demo", "Failed", trainerStatus={"progressPercentage": 45, "trainMetrics": {"loss": "0.25"}})
        await cluster.until(lambda history: history.trainings()[0].state == "Failed")
        cluster.client.remove(TRAIN_JOBS, "demo", "default")
        await cluster.until(lambda history: history.trainings()[0].deleted)
    record = (await cluster.ask(lambda history: history.trainings()))[0]
    assert (record.reason, record.message, record.progress) == ("Ended", "it is over", 45)
    assert [tuple(metric) for metric in record.metrics] == [("loss", "0.25", False)]
    assert record.ended == 1767226200
    assert record.runtime_version == "generation 3", "the runtime as it was first"
    job = await cluster.ask(lambda history: history.document(record.uid, "trainjob"))
    assert job is not None
    assert job["spec"]["trainer"]["env"] == [{"name": "HF_TOKEN", "value": "[redacted]"}]
    assert job["status"]["trainerStatus"]["trainMetrics"] == {"loss": "0.25"}
    runtime = await cluster.ask(lambda history: history.document(record.uid, "runtime"))
    assert runtime is not None
    assert runtime["spec"] == {"a": 1}
    rendered = await cluster.ask(lambda history: history.document(record.uid, "jobset"))
    assert rendered is not None
    assert rendered["spec"]["replicatedJobs"][0]["name"] == "node"


async def test_checkpoint_of_a_suspended_training(cluster: Cluster) -> None:
    """A training that saves a checkpoint because it is suspended, and is then deleted, is kept with that checkpoint."""
    cluster.submit()
    async with cluster.recorder():
        cluster.change("demo", state="Suspended")
        await cluster.until(lambda history: history.trainings() and history.trainings()[0].state == "Suspended")
        last = {"step": 85, "time": "2026-01-01T00:00:00Z", "path": "step-85"}
        cluster.change("demo", trainerStatus={"checkpoint": last, "lastUpdatedTime": last["time"]})
        for _ in range(40):
            await cluster.clock.advance(0.5)
        cluster.client.remove(TRAIN_JOBS, "demo", "default")
        await cluster.until(lambda history: history.trainings()[0].deleted)
    job = await cluster.ask(lambda history: history.document("uid-of-demo", "trainjob"))
    assert job is not None
    assert job["status"]["trainerStatus"]["checkpoint"] == last


def kinds_of(objects: list[Object]) -> list[str]:
    return [obj["kind"] for obj in objects]


@pytest.mark.parametrize("version", ["v1beta1", "v1alpha2"])
async def test_gang_of_kubernetes(clock: ManualClock, database: FailingDatabase, version: str) -> None:
    """The PodGroup is kept in the version that the cluster serves."""
    [served] = [each for each in POD_GROUPS if each.version == version]
    cluster = recorded_cluster(clock, database, served)
    job = train_job("demo")
    group = owned(job, served, "demo-trainer-0123456789", spec={"schedulingPolicy": {"gang": {"minCount": 2}}})
    for obj in (job, group, gang(job)[0]):
        cluster.client.add(obj)
    kind = "podgroup/demo-trainer-0123456789"
    async with cluster.recorder():
        await cluster.until(lambda history: history.document("uid-of-demo", kind) is not None)
    kept = await cluster.ask(lambda history: history.document("uid-of-demo", kind))
    assert kept is not None
    assert (kept["apiVersion"], kept["spec"]) == (f"scheduling.k8s.io/{version}", group["spec"])


async def test_rendered_objects(clock: ManualClock, database: FailingDatabase) -> None:
    """What the TrainJob controls is kept without secrets, what others have is not, and it stays when it is gone."""
    cluster = recorded_cluster(clock, database, coscheduling.POD_GROUPS)
    job = train_job("demo")
    own, rest = gang(job)
    tenant = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "of-the-tenant", "namespace": "default"}}
    for obj in (job, *rest, tenant, own):
        cluster.client.add(obj)

    def found(history: History) -> list[Object]:
        return history.objects("uid-of-demo")

    expected = ["TrainJob", "ClusterTrainingRuntime", "JobSet", "ConfigMap", "HorizontalPodAutoscaler", "PodGroup"]
    async with cluster.recorder():
        await cluster.until(lambda history: kinds_of(found(history)) == expected)
        kept = (await cluster.ask(found))[3]
        assert kept["data"] == {"hostfile": "node-0 slots=1", "password": "[redacted]"}
        requests = len(cluster.client.requests)
        cluster.change("demo", state="Running")
        await cluster.until(lambda history: history.trainings()[0].state == "Running")
        assert len(cluster.client.requests) == requests, "nothing is asked for again"
        large = {"data": {"hostfile": "x" * 100_000}}
        cluster.client.add(rest[0] | large | {"metadata": rest[0]["metadata"] | {"generation": 2}})
        cluster.client.add(own | {"metadata": own["metadata"] | {"generation": 2}})
        await cluster.until(lambda history: "data" not in found(history)[3])
        cluster.end("demo")
        for obj in (*rest, own):
            cluster.client.remove(RESOURCE_OF[obj["kind"]], obj["metadata"]["name"], "default")
        await cluster.until(lambda history: history.trainings()[0].ended)
    objects = await cluster.ask(found)
    assert kinds_of(objects) == expected
    assert objects[5]["spec"] == {"minMember": 2}
    requests = len(cluster.client.requests_of("get"))
    async with cluster.recorder():
        for _ in range(20):
            await clock.advance(0.5)
    asked = [request.resource.kind for request in cluster.client.requests_of("get")[requests:]]
    assert set(asked) <= {"Namespace"}
    assert "Secret" not in {request.resource.kind for request in cluster.client.requests}


@pytest.mark.parametrize(
    ("error", "is_kept"),
    [
        pytest.param(ForbiddenError(403, "no"), False, id="forbidden"),
        pytest.param(TransportError("x"), True, id="away"),
    ],
)
async def test_rendered_objects_that_cannot_be_read(cluster: Cluster, error: KubeError, is_kept: bool) -> None:
    """Without rights on a kind the rest is recorded; where the API server did not answer, it is asked again."""
    job = train_job("demo")
    own, (config_map, *_) = gang(job)
    for obj in (job, config_map, own):
        cluster.client.add(obj)
    fault = cluster.client.faults.fail(error, times=None, verb="get", resource=CONFIG_MAPS)
    async with cluster.recorder():
        await cluster.until(lambda history: history.document("uid-of-demo", "jobset"))
        fault.end()
        cluster.change("demo", state="Running")
        await cluster.until(lambda history: history.trainings()[0].state == "Running")
    kinds = kinds_of(await cluster.ask(lambda history: history.objects("uid-of-demo")))
    assert ("ConfigMap" in kinds) is is_kept


async def test_metrics_and_logs_across_restarts(cluster: Cluster) -> None:
    """Samples are there once and in order, whenever the recorder is restarted, and logs of all nodes at the end."""
    job = cluster.submit()
    pod = cluster.client.add(node_pod(job))
    log = cluster.client.log(pod["metadata"]["name"], "default", "node")
    log.write(f'{TAG} {{"parameters": {{"lr": "0.1"}}}}\n'.encode())
    report(log, 1, 2)
    async with cluster.recorder():
        await cluster.until(lambda history: steps_of(history) == [1, 2])
        assert await cluster.ask(lambda history: history.parameters("uid-of-demo")) == {"lr": "0.1"}
        report(log, 3)
        await cluster.until(lambda history: steps_of(history) == [1, 2, 3])
    report(log, 4)
    async with cluster.recorder():
        await cluster.until(lambda history: steps_of(history) == [1, 2, 3, 4])
        report(log, 5)
        log.end()
        cluster.client.add(node_pod(job, ended=True))
        other = cluster.client.add(node_pod(job, 1, ended=True))
        cluster.client.log(other["metadata"]["name"], "default", "node").write(b"on node 1\n")
        cluster.end("demo")
        await cluster.until(lambda history: steps_of(history) == [1, 2, 3, 4, 5])
        tails = await cluster.until(lambda history: (found := history.log_tails("uid-of-demo"))[1:] and found)
    assert [(tail.node, tail.is_primary, tail.is_training) for tail in tails] == [
        ("node-0", True, True),
        ("node-1", False, True),
    ]
    assert tails[1].lines[0].endswith(" on node 1")
    assert [line.split(" ", 1)[1] for line in tails[0].lines if "step" in line and TAG not in line][-1] == "step 5"
    requests = len(cluster.client.requests_of("log"))
    async with cluster.recorder():
        for _ in range(40):
            await cluster.clock.advance(0.5)
    assert len(cluster.client.requests_of("log")) == requests, "what is complete is not read again"
    assert await cluster.ask(steps_of) == [1, 2, 3, 4, 5]
    assert len(await cluster.ask(lambda history: history.trainings())) == 1


ACCURACY = MetricId(is_eval=True, name="accuracy")


def posted(second: int, step: int | None = None, **metrics: str) -> dict[str, Any]:
    """What the status says after a post; as ever, with the last evaluation."""
    steps = {} if step is None else {"currentStep": step}
    times = {"lastUpdatedTime": f"2026-01-01T00:00:{second:02}Z"}
    return {"trainerStatus": steps | times | {"trainMetrics": metrics, "evalMetrics": {"accuracy": "0.5"}}}


def samples_of(history: History, metric: MetricId = LOSS) -> list[tuple[float, float, float]]:
    curve = history.curves("uid-of-demo").by_metric.get(metric)
    return [] if curve is None else list(zip(curve.times, curve.steps, curve.values, strict=True))


async def test_posted_metrics(cluster: Cluster) -> None:
    """Metrics that are posted to the status server are a series, once and in order, whenever the recorder restarts."""
    start = 1767225600
    job = cluster.submit()
    cluster.client.log(cluster.client.add(node_pod(job))["metadata"]["name"], "default", "node")
    async with cluster.recorder():
        cluster.change("demo", **posted(1, 10, loss="0.5", text="much", far="inf"))
        await cluster.until(lambda history: samples_of(history) == [(start + 1, 10, 0.5)])
        cluster.change("demo", **posted(2, 20, loss="0.25"), state="Running")
        await cluster.until(lambda history: len(samples_of(history)) == 2)
        cluster.change("demo", **posted(2, 20, loss="0.25"), state="Stalled")
        for _ in range(40):
            await cluster.clock.advance(0.5)
    cluster.change("demo", **posted(3, loss="0.125"))
    async with cluster.recorder():
        await cluster.until(lambda history: len(samples_of(history)) == 3)
        cluster.change("demo", **posted(3, loss="0.125"), other="changed")
        cluster.end("demo", **posted(4, 30, loss="0.125"))
        await cluster.until(lambda history: len(samples_of(history)) == 4)
    assert await cluster.ask(samples_of) == [
        (start + 1, 10, 0.5),
        (start + 2, 20, 0.25),
        (start + 3, -1, 0.125),
        (start + 4, 30, 0.125),
    ]
    assert await cluster.ask(lambda history: samples_of(history, ACCURACY)) == [(start + 1, 10, 0.5)]
    assert set((await cluster.ask(lambda history: history.curves("uid-of-demo"))).by_metric) == {LOSS, ACCURACY}


async def test_posted_and_in_the_log(cluster: Cluster) -> None:
    """Of a metric that the log has, the samples of the log count; other metrics have those of the status."""
    job = cluster.submit()
    log = cluster.client.log(cluster.client.add(node_pod(job))["metadata"]["name"], "default", "node")
    async with cluster.recorder():
        cluster.change("demo", **posted(1, 1, loss="0.5", other="7"))
        await cluster.until(samples_of)
        report(log, 1, 2)
        await cluster.until(lambda history: steps_of(history) == [1, 2])
        cluster.change("demo", **posted(2, 2, loss="1", other="8"))
        await cluster.until(lambda history: len(samples_of(history, MetricId(is_eval=False, name="other"))) == 2)
    assert await cluster.ask(steps_of) == [1, 2]


async def test_another_run(cluster: Cluster) -> None:
    """A training whose pod was made again has the samples of its last run."""
    job = cluster.submit()
    first = cluster.client.add(node_pod(job, suffix="first"))
    report(cluster.client.log(first["metadata"]["name"], "default", "node"), 1, 2, 3)
    async with cluster.recorder():
        await cluster.until(lambda history: steps_of(history) == [1, 2, 3])
        cluster.client.remove(PODS, first["metadata"]["name"], "default")
        second = cluster.client.add(node_pod(job, suffix="second"))
        report(cluster.client.log(second["metadata"]["name"], "default", "node"), 2, 3)
        await cluster.until(lambda history: steps_of(history) == [2, 3])


async def test_deleted_while_it_runs(cluster: Cluster) -> None:
    """The last lines of a training that is deleted are read while its pods are about to go."""
    job = cluster.submit()
    pod = cluster.client.add(node_pod(job))
    log = cluster.client.log(pod["metadata"]["name"], "default", "node")
    report(log, 1)
    async with cluster.recorder():
        await cluster.until(lambda history: steps_of(history) == [1])
        cluster.client.remove(TRAIN_JOBS, "demo", "default")
        await cluster.until(lambda history: history.trainings()[0].deleted)
        cluster.client.add(node_pod(job, deletionTimestamp="2026-01-01T00:00:30Z"))
        cluster.client.remove(JOBSETS, "demo", "default")
        tails = await cluster.until(lambda history: history.log_tails("uid-of-demo"))
    assert tails[0].lines[0].endswith(" step 1")


async def test_deleted_while_it_is_written(cluster: Cluster) -> None:
    """The deletion of a TrainJob whose state has just been written is written as well."""

    async def delete(transaction: Callable[[Any], object]) -> None:
        if getattr(transaction, "func", None) is metric_progress:
            cluster.database.before = None
            cluster.client.remove(TRAIN_JOBS, "demo", "default")
            for _ in range(20):
                await checkpoint()

    async with cluster.recorder():
        cluster.database.before = delete
        cluster.submit()
        cluster.end("demo")
        await cluster.until(lambda history: history.trainings())
        await cluster.until(lambda history: history.trainings()[0].deleted)


async def test_deleted_while_nobody_records(cluster: Cluster) -> None:
    """A training that is gone after a restart is said to be, and one of the same name is another."""
    cluster.submit(uid="first")
    async with cluster.recorder():
        await cluster.until(lambda history: history.trainings())
    cluster.client.remove(TRAIN_JOBS, "demo", "default")
    cluster.client.remove(JOBSETS, "demo", "default")
    cluster.submit(uid="second")
    async with cluster.recorder():
        await cluster.until(lambda history: len(history.trainings()) == 2)
    gone = {record.uid: record.deleted is not None for record in await cluster.ask(lambda h: h.trainings())}
    assert gone == {"first": True, "second": False}


def event(name: str, about: str, at: str = "2026-01-01T00:00:05Z", **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "uid": f"uid-of-{name}"}
    shape = {"apiVersion": "v1", "kind": "Event", "metadata": metadata, "type": "Warning", "reason": "Failed"}
    return shape | {"involvedObject": {"kind": "Pod", "name": about}, "lastTimestamp": at, "message": "why"} | fields


async def test_events(cluster: Cluster) -> None:
    """Events about a TrainJob and its pods are kept, those of before its creation and of others are not."""
    cluster.submit()
    async with cluster.recorder():
        cluster.client.add(event("a", "demo-node-0-0-abcde"))
        cluster.client.add(event("b", "demo", at="2025-12-31T00:00:00Z"))
        cluster.client.add(event("c", "other-node-0"))
        cluster.client.add(event("d", "demo", at="2026-01-01T00:00:09Z", message="x" * 5000))
        found = await cluster.until(lambda history: (e := history.events("uid-of-demo"))[1:] and e)
        cluster.client.add(event("a", "demo-node-0-0-abcde", at="2026-01-01T00:01:00Z"))
        await cluster.until(lambda history: history.events("uid-of-demo")[0].last == "2026-01-01T00:01:00")
    assert [(each.object, each.last) for each in found] == [
        ("Pod demo", "2026-01-01T00:00:09"),
        ("Pod demo-node-0-0-abcde", "2026-01-01T00:00:05"),
    ]
    assert len(found[0].message) == 1024


async def test_creator(cluster: Cluster) -> None:
    """Who has made a TrainJob is found by annotation, or else the program by its managed fields."""
    job = cluster.submit("by-somebody")
    job["metadata"]["annotations"] = {"field.cattle.io/creatorId": "u-1"}
    cluster.client.add(job)
    job = cluster.submit("by-program")
    job["metadata"]["managedFields"] = [
        {"manager": "trainer", "subresource": "status", "time": "2025-01-01T00:00:00Z"},
        {"manager": "kubectl-create", "time": "2026-01-01T00:00:00Z"},
    ]
    cluster.client.add(job)
    async with cluster.recorder():
        await cluster.until(lambda history: len(history.trainings()) == 2)
    creators = {record.name: record.creator for record in await cluster.ask(lambda h: h.trainings())}
    assert creators == {"by-somebody": "u-1", "by-program": "kubectl-create"}


async def test_creator_of_what_is_gone(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A TrainJob that is deleted before the recorder asks who has made it is recorded without, and is no warning."""
    get = cluster.client.get

    async def gone(resource: Resource, name: str, *arguments: Any, **options: Any) -> Object:
        if resource == TRAIN_JOBS and name == "demo":
            raise NotFoundError(404, "not found")
        return await get(resource, name, *arguments, **options)

    monkeypatch.setattr(cluster.client, "get", gone)
    with capture_logs() as logs:
        async with cluster.recorder():
            cluster.submit("demo")
            await cluster.until(lambda history: len(history.trainings()) == 1)
    assert not [record.creator for record in await cluster.ask(lambda history: history.trainings()) if record.creator]
    assert [entry for entry in logs if entry["log_level"] == "warning"] == []


async def test_taken_over(clock: ManualClock, server_database: FailingDatabase, server_url: str) -> None:
    """A recorder whose session was lost, and whose cluster another one records by now, ends with an error."""
    cluster = recorded_cluster(clock, server_database)
    other = await run_sync(Database, server_url)
    lock = other.recording("cluster-uid")

    async def record() -> None:
        async with cluster.recorder():
            await run_sync(lose_session, server_database)
            await run_sync(lock.__enter__)
            cluster.submit()
            for _ in range(100):
                await clock.advance(0.5)

    with pytest.raises(ExceptionGroup) as caught:
        await record()
    assert caught.group_contains(TakenOverError)
    assert await cluster.ask(lambda history: history.trainings()) == []
    await run_sync(lock.__exit__, None, None, None)
    await run_sync(other.close)


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
async def test_lost_file(cluster: Cluster) -> None:
    """A recorder that has nothing to write finds out within some seconds that its file is lost, and ends."""
    file = cluster.database.file
    assert file is not None

    async def record() -> None:
        async with cluster.recorder():
            await run_sync(file.write_bytes, b"x" * 10_000)
            for _ in range(15):
                await cluster.clock.advance(1)

    with pytest.raises(ExceptionGroup) as caught:
        await record()
    assert caught.group_contains(LostFileError)


async def test_ended_while_the_database_is_away(cluster: Cluster) -> None:
    """What could not be written yet is written when the recorder is ended, if the database is there again."""
    job = cluster.submit()
    log = cluster.client.log(cluster.client.add(node_pod(job))["metadata"]["name"], "default", "node")
    report(log, 1)
    async with cluster.recorder():
        await cluster.until(lambda history: steps_of(history) == [1])
        cluster.database.is_away = True
        report(log, 2)
        cluster.submit("other")
        cluster.change("demo", state="Running")
        for _ in range(40):
            await cluster.clock.advance(0.5)
        assert cluster.database.failures > 2
        cluster.database.is_away = False
    assert await cluster.ask(steps_of) == [1, 2]
    states = {record.name: record.state for record in await cluster.ask(lambda history: history.trainings())}
    assert states == {"demo": "Running", "other": "Submitted"}


async def test_many_samples_while_the_database_is_away(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits of all trainings together is bounded: each of the namespace that has most loses every second sample,
    and never the last; other namespaces lose none."""
    monkeypatch.setattr(metric_writer, "WAITING_LIMIT", 100)
    names = ("one", "two", "three")
    logs = {}
    for name in (*names, "mine"):
        job = cluster.client.add(train_job(name, namespace="quiet" if name == "mine" else "default"))
        cluster.client.add(jobset(job))
        pod = cluster.client.add(node_pod(job))["metadata"]
        logs[name] = cluster.client.log(pod["name"], pod["namespace"], "node")
        report(logs[name], 0)
    async with cluster.recorder():
        for name in logs:
            await cluster.until(partial(steps_of, uid=f"uid-of-{name}"))
        cluster.database.is_away = True
        for step in range(1, 101):
            for name, log in logs.items():
                if name != "mine" or step % 5 == 0:
                    report(log, step)
            await cluster.clock.advance(1.1)
        cluster.database.is_away = False
    assert len(await cluster.ask(partial(steps_of, uid="uid-of-mine"))) == 21
    found = [await cluster.ask(partial(steps_of, uid=f"uid-of-{name}")) for name in names]
    assert 50 < sum(map(len, found)) <= 100 + len(names)
    assert {steps[-1] for steps in found} == {100}


async def test_logs_while_the_database_is_away(cluster: Cluster) -> None:
    """The last lines of a pod that is gone before the database is there again are kept."""
    job = cluster.submit()
    pod = cluster.client.add(node_pod(job))
    log = cluster.client.log(pod["metadata"]["name"], "default", "node")
    report(log, 1)
    async with cluster.recorder():
        await cluster.until(lambda history: steps_of(history) == [1])
        for _ in range(4):
            await cluster.clock.advance(0.5)
        cluster.database.is_away = True
        log.end()
        cluster.client.add(node_pod(job, ended=True))
        for _ in range(20):
            await cluster.clock.advance(0.5)
        cluster.client.remove(PODS, pod["metadata"]["name"], "default")
        cluster.database.is_away = False
        tails = await cluster.until(lambda history: history.log_tails("uid-of-demo"), within=120)
    assert tails[0].lines[0].endswith(" step 1")


async def test_deleted_while_the_recorder_starts(cluster: Cluster) -> None:
    """The deletion of a TrainJob is seen from when the recorder knows what there is."""
    cluster.submit()
    async with cluster.recorder():
        await cluster.until(lambda history: history.trainings())

    async def remove(transaction: object) -> None:
        if getattr(transaction, "func", None) is mark_deleted:
            cluster.client.remove(TRAIN_JOBS, "demo", "default")
            for _ in range(100):
                await checkpoint()

    cluster.database.before = remove
    async with cluster.recorder():
        await cluster.until(lambda history: history.trainings()[0].deleted)


async def test_log_that_cannot_be_read(cluster: Cluster) -> None:
    """Last lines that could not be read are read when something changes."""
    job = cluster.submit()
    pod = cluster.client.add(node_pod(job, ended=True))
    log = cluster.client.log(pod["metadata"]["name"], "default", "node")
    report(log, 1)
    log.end()
    fault = cluster.client.faults.fail(ForbiddenError(403, "no"), times=None, verb="log")
    with capture_logs() as logs:
        async with cluster.recorder():
            for _ in range(40):
                await cluster.clock.advance(0.5)
            assert [event["event"] for event in logs].count("could not read log") == 1
            fault.end()
            cluster.client.add(node_pod(job, ended=True, annotations={"a": "b"}))
            tails = await cluster.until(lambda history: history.log_tails("uid-of-demo"))
    assert tails[0].lines[0].endswith(" step 1")


async def test_log_that_stalls(cluster: Cluster) -> None:
    """A log of which nothing comes holds up no other one, is given up, and is read when something changes."""
    job = cluster.submit()
    logs = []
    for index in range(2):
        pod = cluster.client.add(node_pod(job, index, ended=True))
        logs.append(cluster.client.log(pod["metadata"]["name"], "default", "node"))
        report(logs[-1], index + 1)
        logs[-1].end()
    hold = cluster.client.faults.hold(verb="log", name="demo-node-0-1-abcde")

    def nodes(history: History) -> list[str]:
        return [tail.node for tail in history.log_tails("uid-of-demo")]

    with capture_logs() as events:
        async with cluster.recorder():
            await cluster.until(lambda history: nodes(history) == ["node-0"])
            for _ in range(30):
                await cluster.clock.advance(3)
            given_up = [event for event in events if event["event"] == "could not read log"]
            assert [(event["pod"], event["error"]) for event in given_up] == [
                ("demo-node-0-1-abcde", "it took too long")
            ]
            assert hold.waiting == 0
            hold.release()
            cluster.client.add(node_pod(job, 1, ended=True, annotations={"a": "b"}))
            await cluster.until(lambda history: nodes(history) == ["node-0", "node-1"])


async def test_log_with_long_lines(cluster: Cluster) -> None:
    """Of a log with very long lines some KiB are kept, in lines of bounded length."""
    job = cluster.submit()
    pod = cluster.client.add(node_pod(job, ended=True))
    log = cluster.client.log(pod["metadata"]["name"], "default", "node")
    for number in range(200):
        log.write(f"{number} {'x' * 100_000} end of {number}\n".encode())
    log.end()
    async with cluster.recorder():
        (tail,) = await cluster.until(lambda history: history.log_tails("uid-of-demo"))
    assert 0 < sum(map(len, tail.lines)) <= BYTES
    assert max(map(len, tail.lines)) <= 4096


async def test_names_of_metrics(cluster: Cluster) -> None:
    """Any name that a metric can have is listed, and control characters in it as Python writes them."""
    metrics = {"a\\u0000": "1", "b\0": "2", 'c"': "3"}
    cluster.submit()
    cluster.end("demo", trainerStatus={"trainMetrics": metrics})
    async with cluster.recorder():
        record = (await cluster.until(lambda history: history.trainings()))[0]
    assert [metric.name for metric in record.metrics] == ["a\\u0000", "b\\x00", 'c"']


async def test_without_rights(cluster: Cluster) -> None:
    """A recorder that may not watch pods and events records the rest."""
    cluster.submit()
    for resource in (PODS,):
        cluster.client.faults.fail(ForbiddenError(403, "no"), verb="list", resource=resource, times=1000)
    async with cluster.recorder():
        await cluster.until(lambda history: history.trainings())


def raising(original: Callable[..., Any]) -> Callable[..., Any]:
    """A function that raises where it is about the TrainJob `bad`."""

    def function(*arguments: Any, **options: Any) -> Any:
        for argument in arguments:
            obj = getattr(argument, "train_job", argument)
            if isinstance(obj, dict) and name_of(obj) == "bad":
                raise TypeError("a mistake of ours")
        return original(*arguments, **options)

    return function


async def test_streams_that_namespaces_share(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trainings that print nothing leave another namespace its stream, and lose nothing of what they print later."""
    monkeypatch.setattr(metric_writer, "STREAMS", 4)
    theirs = [cluster.submit(f"theirs-{number}") for number in range(8)]
    logs = [
        cluster.client.log(cluster.client.add(node_pod(job))["metadata"]["name"], "default", "node") for job in theirs
    ]
    report(logs[0], 1)
    async with cluster.recorder():
        await cluster.until(lambda history: steps_of(history, "uid-of-theirs-0") == [1])
        mine = cluster.client.add(train_job("mine", namespace="quiet"))
        cluster.client.add(jobset(mine))
        log = cluster.client.log(cluster.client.add(node_pod(mine))["metadata"]["name"], "quiet", "node")
        report(log, 1, 2, 3)
        await cluster.until(lambda history: steps_of(history, "uid-of-mine") == [1, 2, 3])
        log.end()
        cluster.client.add(node_pod(mine, ended=True))
        cluster.end("mine", namespace="quiet")
        for stream in logs:
            report(stream, 2, 3)
            stream.end()
        for job in theirs:
            cluster.client.add(node_pod(job, ended=True))
            cluster.end(job["metadata"]["name"])
        for number in range(8):
            expected = [1, 2, 3] if number == 0 else [2, 3]
            await cluster.until(lambda history: steps_of(history, f"uid-of-theirs-{number}") == expected)  # noqa: B023


async def test_events_of_another_namespace(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A flood of events drops none of another namespace; the newest are written once the database is there."""
    monkeypatch.setattr(recorder, "WAITING_EVENTS", 20)
    cluster.submit()
    mine = cluster.client.add(train_job("mine", namespace="quiet"))
    async with cluster.recorder():
        await cluster.until(lambda history: len(history.trainings()) == 2)
        cluster.database.is_away = True
        about = event("mine", "mine")
        about["metadata"]["namespace"] = about["involvedObject"]["namespace"] = mine["metadata"]["namespace"]
        cluster.client.add(about)
        for number in range(200):
            cluster.client.add(event(f"e{number}", "demo"))
        await cluster.clock.advance(0.5)
        cluster.database.is_away = False
    assert len(await cluster.ask(lambda history: history.events("uid-of-mine"))) == 1
    assert 10 <= len(await cluster.ask(lambda history: history.events("uid-of-demo"))) <= 40


async def test_namespaces_take_turns(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """What changes in one namespace is written before most of a thousand changes of another one."""
    written: list[str] = []
    async with cluster.recorder():
        for number in range(1000):
            cluster.client.add(train_job(f"theirs-{number}"))
        cluster.client.add(train_job("mine", namespace="quiet"))

        async def note(_: object) -> None:
            written[:] = [record.name for record in await cluster.ask(lambda history: history.trainings(limit=2000))]
            if "mine" in written:
                cluster.database.before = None

        cluster.database.before = note
        await cluster.until(lambda _: "mine" in written)
    assert len(written) <= 2 * 100


async def test_large_trainings_of_another_namespace(cluster: Cluster) -> None:
    """What changes in one namespace is written beside a few large TrainJobs of another one, and not after all."""
    large = {"runtimeRef": {"name": "plain"}, "trainer": {"args": ["x" * 400_000]}}
    written: list[str] = []
    async with cluster.recorder():
        for number in range(30):
            cluster.client.add(train_job(f"theirs-{number}") | {"spec": large})
        cluster.client.add(train_job("mine", namespace="quiet"))

        async def note(_: object) -> None:
            written[:] = [record.name for record in await cluster.ask(lambda history: history.trainings(limit=2000))]
            if "mine" in written:
                cluster.database.before = None

        cluster.database.before = note
        await cluster.until(lambda _: "mine" in written)
        await cluster.until(lambda history: len([*history.trainings(limit=2000)]) == 31)
    assert len(written) <= 5


@pytest.mark.parametrize(
    "place",
    [
        pytest.param("trainer_dashboard.history.records.row_of", id="row"),
        pytest.param("trainer_dashboard.history.recorder.text_about", id="notification"),
        pytest.param("trainer_dashboard.history.recorder.ended_logs", id="logs"),
        pytest.param("trainer_dashboard.history.inquiries.creator_of", id="creator"),
        pytest.param("trainer_dashboard.history.related_objects._named_by", id="related"),
    ],
)
async def test_mistake_about_one_training(cluster: Cluster, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """Whatever the work on one TrainJob raises, it is logged with its name, and the others are recorded."""
    module, _, name = place.rpartition(".")
    monkeypatch.setattr(place, raising(getattr(import_module(module), name)))
    webhook = Webhook("http://127.0.0.1:9/")
    with capture_logs() as logs:
        async with cluster.recorder(webhook=webhook):
            for name in ("bad", "good"):
                job = cluster.submit(name)
                cluster.client.add(node_pod(job, ended=True))
                cluster.end(name)
            for state in ("Complete", "Failed"):
                for name in ("bad", "good"):
                    cluster.end(name, state)
                await cluster.until(lambda history: {"good": state}.items() <= states_of(history).items())  # noqa: B023
            await cluster.until(lambda history: history.log_tails("uid-of-good"))
            await cluster.until(lambda history: history.document("uid-of-good", "jobset"))
    problems = [entry for entry in logs if entry["log_level"] == "error"]
    assert {entry["object"] for entry in problems} == {"default/bad"}


def states_of(history: History) -> dict[str, str]:
    return {record.name: record.state for record in history.trainings()}
