"""Statuses that wait until the Jobs of other TrainJobs are created: whatever happens meanwhile, none is forgotten."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.controllers.conftest import Cluster
from tests.framework.samples import replicated_job, runtime_object, train_job_object
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, Runtime
from trainer.api.trainjob import TRAIN_JOBS, TrainJob
from trainer.framework.pipeline import Pipeline
from trainer.framework.plugin_api.component import Component
from trainer.kube.objects import Object, ObjectKey, controller_of, key_of, name_of
from trainer.kube.resource import CONFIG_MAPS, Resource
from trainer.workloads import JOBSETS
from trainer_kube_testing import settle

OTHERS = 30
"""More than are worked on at the same time."""
DEMO = ObjectKey("default", "demo")


class Crowd(Cluster):
    """The TrainJob `demo` and, unless the cluster is quiet, many others that come with it."""

    def find(self, resource: Resource) -> Object | None:
        """The object of `demo`."""
        return next((obj for obj in self.client.objects(resource) if key_of(obj) == DEMO), None)

    @property
    def train_job(self) -> Object:
        """The TrainJob `demo`."""
        obj = self.find(TRAIN_JOBS)
        assert obj is not None
        return obj

    @property
    def jobset(self) -> Object:
        """The JobSet of `demo`."""
        obj = self.find(JOBSETS)
        assert obj is not None
        return obj

    def outcome(self) -> Any:
        """What holds of `demo`; one that never showed that it was suspended does not show that it is no more."""
        train_job, jobset = self.find(TRAIN_JOBS), self.find(JOBSETS)
        status = (train_job or {}).get("status") or {}
        present = [each for each in status.get("conditions") or [] if each["status"] == "True"]
        conditions = {each["type"]: each["reason"] for each in present}
        suspend = jobset and (jobset.get("spec") or {}).get("suspend", False)
        return train_job and (train_job["metadata"]["uid"], status.get("state"), conditions), suspend


async def suspend(cluster: Crowd) -> None:
    await cluster.change(cluster.train_job, suspend=True)


async def resume(cluster: Crowd) -> None:
    await cluster.change(cluster.train_job, suspend=False)


async def delete(cluster: Crowd) -> None:
    await cluster.client.delete(TRAIN_JOBS, "demo", "default")
    for resource in (JOBSETS, CONFIG_MAPS):  # as the garbage collector does
        for obj in cluster.client.objects(resource):
            if (controller_of(obj) or {}).get("uid") == "uid-of-demo":
                await cluster.client.delete(resource, name_of(obj), "default")


async def replace(cluster: Crowd) -> None:
    await delete(cluster)
    obj = train_job_object()
    cluster.client.add(obj | {"metadata": obj["metadata"] | {"uid": "another"}})


async def run(cluster: Crowd) -> None:
    await cluster.run_jobset(active=1, ready=1)


async def complete(cluster: Crowd) -> None:
    condition = {"type": "Completed", "status": "True", "reason": "AllJobsCompleted", "message": "jobset completed"}
    await cluster.run_jobset("Completed", condition, succeeded=1)


async def fail(cluster: Crowd) -> None:
    await cluster.run_jobset("Failed", {"type": "Failed", "status": "True", "reason": "FailedJobs", "message": "x"})


async def delete_jobset(cluster: Crowd) -> None:
    await cluster.client.delete(JOBSETS, "demo", "default")


async def delete_runtime(cluster: Crowd) -> None:
    await cluster.client.delete(CLUSTER_TRAINING_RUNTIMES, "blueprint")


async def miss_deadline(cluster: Crowd) -> None:
    await cluster.clock.advance(61)


async def change_runtime(cluster: Crowd) -> None:
    await cluster.put(runtime_object(replicated_job("node", {"name": "trainer", "image": "newer"})))


async def delete_snapshot(cluster: Crowd) -> None:
    await cluster.client.delete(CONFIG_MAPS, "demo-runtime-snapshot", "default")


async def label_jobset(cluster: Crowd) -> None:
    metadata = cluster.jobset["metadata"]
    await cluster.put(cluster.jobset | {"metadata": metadata | {"labels": {"team": "a"}}})


async def nothing(_: Crowd) -> None:
    pass


async def played(
    happening: Callable[[Crowd], Awaitable[None]], *, is_quiet: bool = False, restarts: bool = False, **spec: Any
) -> Any:
    """The end of `demo` if this happens to it while its status waits, or when it is written in a quiet cluster."""
    cluster = Crowd()
    async with cluster.managed():
        hold = cluster.client.faults.hold(verb="apply", resource=JOBSETS)
        cluster.client.add(train_job_object(**spec))
        for number in range(0 if is_quiet else OTHERS):
            other = {"name": f"other-{number}", "namespace": "default", "uid": f"uid-{number}"}
            cluster.client.add(train_job_object() | {"metadata": other})
        await settle()
        hold.release(1)
        await settle()
        is_reported = "status" in cluster.train_job
        if not is_quiet:
            await happening(cluster)
            await settle()
        # Requests under way are answered in any case; who is stopped right then looks at nothing any more.
        hold.release()
        if not restarts:
            await settle()
        if is_quiet:
            await happening(cluster)
            await settle()
    async with cluster.managed():
        await settle()
    assert is_reported is (is_quiet or "activeDeadlineSeconds" in spec)
    # Nothing is left to do that only a look at it would find.
    cluster.forget_requests()
    async with cluster.managed():
        await settle()
    assert cluster.writes == []
    return cluster.outcome()


HAPPENINGS = [
    pytest.param(nothing, {}, id="nothing"),
    pytest.param(suspend, {}, id="suspended"),
    pytest.param(resume, {"suspend": True}, id="resumed"),
    pytest.param(delete, {}, id="deleted"),
    pytest.param(replace, {}, id="replaced"),
    pytest.param(run, {}, id="running"),
    pytest.param(complete, {}, id="complete"),
    pytest.param(fail, {}, id="failed"),
    pytest.param(delete_jobset, {}, id="jobset-deleted"),
    pytest.param(delete_runtime, {}, id="runtime-deleted"),
    pytest.param(miss_deadline, {"activeDeadlineSeconds": 60}, id="deadline"),
]


@pytest.mark.parametrize(("happening", "spec"), HAPPENINGS)
async def test_what_happens_while_a_status_waits(
    happening: Callable[[Crowd], Awaitable[None]], spec: dict[str, Any]
) -> None:
    """It ends as where the status was written at once, and another manager finds nothing left to do."""
    assert await played(happening, **spec) == await played(happening, is_quiet=True, **spec)


@pytest.mark.parametrize("happening", [nothing, suspend, complete, delete_jobset])
async def test_a_manager_that_stops_while_a_status_waits(happening: Callable[[Crowd], Awaitable[None]]) -> None:
    """It ends no otherwise where another manager goes on."""
    assert await played(happening, restarts=True) == await played(happening, is_quiet=True)


@pytest.mark.parametrize(
    ("early", "happening", "is_built_again"),
    [
        pytest.param(nothing, nothing, False, id="nothing"),
        pytest.param(nothing, suspend, True, id="suspended"),
        pytest.param(nothing, run, True, id="running"),
        pytest.param(nothing, label_jobset, True, id="jobset-changed"),
        pytest.param(nothing, change_runtime, True, id="runtime-changed"),
        pytest.param(nothing, delete_snapshot, True, id="snapshot-deleted"),
        pytest.param(nothing, complete, False, id="complete"),
    ],
)
async def test_builds(
    early: Callable[[Crowd], Awaitable[None]],
    happening: Callable[[Crowd], Awaitable[None]],
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_built_again: bool,
) -> None:
    """A status that has waited is written from what was built, unless anything has changed meanwhile."""
    builds: Counter[str] = Counter()
    build = Pipeline.build

    def count_builds(pipeline: Pipeline, train_job: TrainJob, runtime: Runtime) -> list[Component]:
        builds[train_job.metadata.name] += 1
        return build(pipeline, train_job, runtime)

    monkeypatch.setattr(Pipeline, "build", count_builds)
    cluster = Crowd()
    async with cluster.managed():
        hold = cluster.client.faults.hold(verb="apply", resource=JOBSETS)
        cluster.client.add(train_job_object())
        for number in range(OTHERS):
            other = {"name": f"other-{number}", "namespace": "default", "uid": f"uid-{number}"}
            cluster.client.add(train_job_object() | {"metadata": other})
        await settle()
        await early(cluster)
        hold.release(1)
        await settle()
        await happening(cluster)
        hold.release()
        await settle()
        await cluster.clock.advance(1)
    assert (builds["demo"] > 1) is is_built_again
    assert "status" in cluster.train_job
