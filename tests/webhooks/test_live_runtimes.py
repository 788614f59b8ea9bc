"""Runtimes that the cache has, and those that only the API server has."""

from __future__ import annotations

from typing import Any

import pytest

from tests.webhooks.bad_inputs import CREATED
from tests.webhooks.blueprints import blueprint, job
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES, Runtime
from trainer.api.trainjob import TRAIN_JOBS, TrainJob
from trainer.framework.runtimes.alternatives import Alternatives, alternatives
from trainer.framework.runtimes.default_gang import DefaultGang
from trainer.framework.runtimes.runtimes import (
    FoundRuntime,
    RuntimeNotFoundError,
    Runtimes,
    make_snapshot,
    read_runtime,
    runtime_place,
)
from trainer.kube.objects import Object, ObjectKey
from trainer.kube.resource import Resource
from trainer.webhooks.live_runtimes import LiveRuntimes
from trainer_kube_testing import FakeClient

RESOURCES = (TRAIN_JOBS, TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES)


class Cache(Runtimes):
    """Runtimes that are known without a request."""

    def __init__(self, runtime: Object | None = None, *, is_snapshot: bool = False) -> None:
        self._runtime = runtime
        self._is_snapshot = is_snapshot
        self.asked: list[bool] = []

    def present(self, resource: Resource, key: ObjectKey) -> Runtime | None:
        """See `Runtimes.present`."""
        return None if self._runtime is None else read_runtime(resource, self._runtime)

    async def find(self, train_job: TrainJob, *, built_on: str = "", is_built: bool = False) -> FoundRuntime:
        """See `Runtimes.find`."""
        self.asked.append(is_built)
        resource, key = runtime_place(train_job)
        if self._runtime is None:
            raise RuntimeNotFoundError(
                resource.kind, key, alternatives(key.name, ["plan", "secret"], "TrainingRuntime")
            )
        model = read_runtime(resource, self._runtime)
        return FoundRuntime(model, resource, self._runtime, is_snapshot=self._is_snapshot)


def sized(nodes: int, **fields: Any) -> Object:
    """The runtime `plain` with this number of nodes."""
    return blueprint(name="plain", policy={"numNodes": nodes}, **fields)


async def gang_of(obj: Object, cache: Cache, *stored: Object) -> str | None:
    """The gang scheduler of the runtime that is found, where the setting of the manager is volcano."""
    client, gang = FakeClient(*stored, resources=RESOURCES), DefaultGang(lambda: "volcano")
    runtime = await LiveRuntimes(cache, client, gang).of(TrainJob.from_object(obj))
    policy = runtime.spec.pod_group_policy
    return policy.source if policy is not None else None


async def nodes_of(obj: Object, cache: Cache, *stored: Object) -> tuple[int | None, int]:
    """Number of nodes of the runtime that was found, and how many requests it took."""
    client = FakeClient(*stored, resources=RESOURCES)
    runtime = await LiveRuntimes(cache, client).of(TrainJob.from_object(obj))
    assert runtime.spec.ml_policy is not None
    return runtime.spec.ml_policy.num_nodes, len(client.requests)


def built() -> Object:
    """A TrainJob whose Jobs exist."""
    return job(status=CREATED)


async def test_cache_first() -> None:
    """What the cache has costs no request."""
    assert await nodes_of(job(), Cache(sized(1)), sized(2)) == (1, 0)
    assert await nodes_of(built(), Cache(sized(1), is_snapshot=True), sized(2)) == (1, 0)


async def test_a_snapshot_counts_once_the_jobs_exist() -> None:
    """Before that, the runtime of today is what the TrainJob is going to be built on."""
    cache = Cache(sized(1), is_snapshot=True)
    await nodes_of(job(), cache)
    await nodes_of(built(), cache)
    assert cache.asked == [False, True]


async def test_just_applied() -> None:
    """A runtime that was applied a moment before its TrainJob is read from the API server."""
    assert await nodes_of(job(), Cache(), sized(2)) == (2, 1)


@pytest.mark.parametrize("cache", [pytest.param(Cache(), id="empty"), pytest.param(Cache(sized(1)), id="runtime-only")])
async def test_snapshot_that_is_not_cached(cache: Cache) -> None:
    """A TrainJob whose Jobs exist is never judged by the runtime of today, even before the cache is filled."""
    snapshot = make_snapshot(built(), CLUSTER_TRAINING_RUNTIMES, sized(5))

    assert await nodes_of(built(), cache, snapshot, sized(2)) == (5, 1)


async def test_snapshot_of_another_train_job() -> None:
    """A ConfigMap that belongs to somebody else is no snapshot."""
    other = built()
    other["metadata"]["uid"] = "uid-2"
    snapshot = make_snapshot(other, CLUSTER_TRAINING_RUNTIMES, sized(5))

    assert await nodes_of(built(), Cache(), snapshot, sized(2)) == (2, 2)


async def test_gang_of_the_setting() -> None:
    """A TrainJob that is not built yet is judged with it; one that is built keeps what it was built on."""
    assert await gang_of(job(), Cache(), sized(2)) == "volcano"
    assert await gang_of(job(), Cache(), sized(2, podGroupPolicy={"workload": {}})) == "workload"
    assert await gang_of(built(), Cache(), sized(2)) is None
    snapshot = make_snapshot(built(), CLUSTER_TRAINING_RUNTIMES, sized(5))
    assert await gang_of(built(), Cache(), snapshot, sized(2)) is None


async def test_nowhere() -> None:
    """A runtime of the cluster that does not exist is reported as such, with what there is."""
    with pytest.raises(RuntimeNotFoundError) as caught:
        await nodes_of(job(), Cache())
    assert caught.value.present == Alternatives("TrainingRuntime", "plan", ("plan", "secret"))


async def test_nowhere_in_the_namespace() -> None:
    """Whoever reaches the port can ask in the name of any namespace: what is in it is not listed."""
    with pytest.raises(RuntimeNotFoundError) as caught:
        await nodes_of(job(runtimeRef={"name": "plain", "kind": "TrainingRuntime"}), Cache())
    assert caught.value.present == Alternatives("TrainingRuntime")


@pytest.mark.parametrize("name", ["a/b", "..", "a%2fb", "<b>a</b>", "A"])
async def test_impossible_names(name: str) -> None:
    """A runtime that no cluster can have is missing like any other."""
    client = FakeClient(resources=RESOURCES)
    train_job = TrainJob.from_object(job(runtimeRef={"name": name}))
    with pytest.raises(RuntimeNotFoundError):
        await LiveRuntimes(Cache(), client).of(train_job)
