"""What is counted in the life of TrainJobs, through a manager on a fake API server."""

from __future__ import annotations

import anyio
import pytest

from tests.controllers.conftest import Cluster
from tests.framework.samples import runtime_object, train_job_object
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS, TrainJob
from trainer.api.trainjob_status import ConditionReason
from trainer.controllers.metrics.trainjobs import TrainJobMetrics
from trainer.framework.status.status import Ensured, Observation, next_status
from trainer.kube.errors import ConflictError
from trainer.kube.manager.manager import Manager
from trainer.kube.objects import Object
from trainer_kube_testing import settle

_ENDS = {
    "Complete": {"type": "Completed", "status": "True", "reason": "AllJobsCompleted", "message": "completed"},
    "Failed": {"type": "Failed", "status": "True", "reason": "FailedJobs", "message": "a job failed"},
}
_GROUP = {"namespace": "default", "runtime": "blueprint", "framework": "torch"}


def labelled(framework: str = "torch") -> Object:
    """The runtime with the label of its framework."""
    obj = runtime_object()
    return obj | {"metadata": obj["metadata"] | {"labels": {"trainer.kubeflow.org/framework": framework}}}


def value(cluster: Cluster, name: str, **labels: str) -> float:
    """The value of one series, 0 if there is none."""
    return cluster.metrics.registry.get_sample_value(name, labels) or 0.0


def counter(cluster: Cluster, name: str, **labels: str) -> float:
    return value(cluster, f"trainer_trainjobs_{name}_total", **(_GROUP | labels))


def times(cluster: Cluster, name: str, **labels: str) -> tuple[float, float]:
    """How often a time was measured, and the sum of all."""
    labels = {"framework": "torch"} | labels
    series = f"trainer_trainjob_{name}_seconds"
    return value(cluster, f"{series}_count", **labels), value(cluster, f"{series}_sum", **labels)


def population(cluster: Cluster) -> dict[tuple[str, str, str, str], float]:
    """The gauge as a whole."""
    return {
        (labels["namespace"], labels["runtime"], labels["framework"], labels["state"]): sample.value
        for family in cluster.metrics.registry.collect()
        if family.name == "trainer_trainjobs" and family.type == "gauge"
        for sample in family.samples
        for labels in (sample.labels,)
    }


async def submit(cluster: Cluster, obj: Object | None = None) -> None:
    await cluster.client.create(TRAIN_JOBS, obj or train_job_object())
    await settle()


async def end(cluster: Cluster, state: str) -> None:
    await cluster.run_jobset("Completed" if state == "Complete" else "Failed", _ENDS[state])


@pytest.fixture(autouse=True)
def _labelled(cluster: Cluster) -> None:
    cluster.client.add(labelled())


@pytest.mark.parametrize("state", ["Complete", "Failed"])
async def test_a_life_is_counted_once(cluster: Cluster, state: str) -> None:
    """Each change of state and each milestone of a TrainJob is counted when its status is written, and only then."""
    async with cluster.managed():
        await submit(cluster)
        assert (counter(cluster, "created"), times(cluster, "time_to_jobset")) == (1, (1, 0))
        assert population(cluster) == {("default", "blueprint", "torch", "Created"): 1}
        await cluster.clock.advance(20)
        await cluster.run_jobset(ready=1)
        assert times(cluster, "queue") == (1, 20)
        assert population(cluster) == {("default", "blueprint", "torch", "Running"): 1}
        await cluster.clock.advance(100)
        await end(cluster, state)
        await cluster.resync()
        assert times(cluster, "run", result=state) == (1, 100)
        assert population(cluster) == {("default", "blueprint", "torch", state): 1}
        assert counter(cluster, "completed") == (state == "Complete")
        assert counter(cluster, "failed", reason="FailedJobs") == (state == "Failed")
        assert (counter(cluster, "created"), times(cluster, "time_to_jobset")) == (1, (1, 0))
        await cluster.client.delete(TRAIN_JOBS, "demo", "default")
        await settle()
        assert population(cluster) == {}


@pytest.mark.parametrize("state", ["", "Failed"])
async def test_series_begin_with_nothing_after_a_restart(cluster: Cluster, state: str) -> None:
    """Also for the group of a TrainJob that a new leader finds half-way or ended."""
    async with cluster.managed():
        await submit(cluster)
        if state:
            await end(cluster, state)
    async with cluster.managed():
        assert_present(cluster)
        get = cluster.metrics.registry.get_sample_value
        assert get("trainer_trainjobs_failed_total", _GROUP | {"reason": "FailedJobs"}) == 0


def assert_present(cluster: Cluster) -> None:
    get = cluster.metrics.registry.get_sample_value
    assert get("trainer_trainjobs_created_total", _GROUP) is not None
    assert get("trainer_trainjobs_completed_total", _GROUP) == 0
    assert get("trainer_trainjobs_failed_total", _GROUP | {"reason": "FailedJobs"}) == 0
    assert get("trainer_trainjob_queue_seconds_count", {"framework": "torch"}) == 0
    assert get("trainer_trainjob_time_to_jobset_seconds_count", {"framework": "torch"}) is not None
    for state in ("Complete", "Failed"):
        assert get("trainer_trainjob_run_seconds_count", {"framework": "torch", "result": state}) == 0


async def test_a_blocked_trainjob_waits_until_it_is_fixed(cluster: Cluster) -> None:
    """A TrainJob is created once, without the framework of a runtime that is not there, and then waits for it."""
    async with cluster.managed():
        await submit(cluster, train_job_object(runtimeRef={"name": "later", "kind": "TrainingRuntime"}))
        assert population(cluster) == {("default", "none", "none", "Blocked"): 1}
        await cluster.clock.advance(30)
        await cluster.put(labelled("jax"))
        obj = labelled("jax")
        metadata = obj["metadata"] | {"name": "later", "namespace": "default"}
        await cluster.client.create(TRAINING_RUNTIMES, obj | {"kind": "TrainingRuntime", "metadata": metadata})
        await settle()
        assert population(cluster) == {("default", "default/later", "jax", "Created"): 1}
        assert counter(cluster, "created", runtime="none", framework="none") == 1
        assert times(cluster, "time_to_jobset", framework="jax") == (1, 30)


async def test_suspension(cluster: Cluster) -> None:
    """Ensured and resumption each wait for the JobSet; the queue lasts until the first run, however that came."""
    async with cluster.managed():
        await submit(cluster, train_job_object(suspend=True))
        assert times(cluster, "time_to_jobset") == (1, 0)
        await cluster.clock.advance(600)
        await cluster.change(cluster.train_job, suspend=False)
        assert times(cluster, "time_to_jobset") == (2, 0)
        await cluster.run_jobset(ready=1)
        assert times(cluster, "queue") == (1, 600)
        await cluster.change(cluster.train_job, suspend=True)
        await cluster.run_jobset(suspended=1)
        await cluster.change(cluster.train_job, suspend=False)
        await cluster.run_jobset(ready=1)
        assert times(cluster, "queue") == (1, 600)
        assert times(cluster, "time_to_jobset") == (3, 0)


@pytest.mark.parametrize(
    ("has_run", "queued"),
    [pytest.param(False, (1, 90), id="never-ran"), pytest.param(True, (0, 0), id="ran-before-it-was-suspended")],
)
async def test_a_restart_knows_what_has_run_before(
    cluster: Cluster, has_run: bool, queued: tuple[float, float]
) -> None:
    """The first run of a TrainJob that was created suspended counts once, before and after a restart."""
    async with cluster.managed():
        await submit(cluster, train_job_object(suspend=not has_run))
        await cluster.clock.advance(30)
        if has_run:
            await cluster.run_jobset(ready=1)
            await cluster.change(cluster.train_job, suspend=True)
    async with cluster.managed():
        await cluster.clock.advance(60)
        await cluster.change(cluster.train_job, suspend=False)
        await cluster.run_jobset(ready=1)
        assert times(cluster, "queue") == queued


async def test_a_status_that_is_written_later(cluster: Cluster) -> None:
    """The time to the JobSet ends when it is created, however much later the status is written."""
    manager = Manager(cluster.client, clock=cluster.clock)
    cluster.metrics, metrics = manager.metrics, TrainJobMetrics(manager)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(manager.run)
        await submit(cluster)
        train_job = TrainJob.from_object(cluster.train_job)
        await cluster.clock.advance(2)
        metrics.jobset_created(train_job)
        await cluster.clock.advance(5)
        made = Ensured(True, ConditionReason.JOBS_CREATION_SUCCEEDED, "made")
        for count, number in metrics.steps(train_job, next_status(train_job, Observation(made), "")):
            count(number)
        assert times(cluster, "time_to_jobset") == (1, 2)
        tasks.cancel_scope.cancel()


async def test_a_status_that_is_not_stored_counts_nothing(cluster: Cluster) -> None:
    """An end is counted with the write that succeeds, not with attempts."""
    async with cluster.managed():
        await submit(cluster)
        cluster.client.faults.fail(ConflictError(409, "no time"), verb="apply", resource=TRAIN_JOBS)
        await end(cluster, "Complete")
        assert counter(cluster, "completed") == 0
        await cluster.clock.advance(1)
        assert counter(cluster, "completed") == 1


@pytest.mark.parametrize("is_shown", [pytest.param(True, id="cache-first"), pytest.param(False, id="retry-first")])
async def test_a_status_whose_answer_is_lost_is_counted_once(cluster: Cluster, *, is_shown: bool) -> None:
    """A stored status is counted and its events are recorded when the cache shows it or another attempt succeeds."""
    async with cluster.managed():
        await submit(cluster)
        await cluster.clock.advance(20)
        await cluster.run_jobset(ready=1)
        await cluster.clock.advance(100)
        if not is_shown:
            cluster.client.faults.hold_watches(TRAIN_JOBS)
        cluster.client.faults.lose_answer(verb="apply", resource=TRAIN_JOBS)
        await end(cluster, "Failed")
        assert counter(cluster, "failed", reason="FailedJobs") == 0
        await cluster.clock.advance(1)
        cluster.client.faults.release_watches()
        await cluster.clock.advance(1)
        assert counter(cluster, "failed", reason="FailedJobs") == 1
        runs, seconds = times(cluster, "run", result="Failed")
        assert (runs, round(seconds)) == (1, 100)
        assert [reason for _, reason, _ in cluster.events].count("FailedJobs") == 1


async def test_the_framework_follows_the_runtime(cluster: Cluster) -> None:
    """The gauge shows the label that the runtime has now."""
    async with cluster.managed():
        await submit(cluster)
        await cluster.put(labelled("jax"))
        assert population(cluster) == {("default", "blueprint", "jax", "Created"): 1}
        await cluster.put(runtime_object())
        assert population(cluster) == {("default", "blueprint", "none", "Created"): 1}
        await cluster.client.delete(CLUSTER_TRAINING_RUNTIMES, "blueprint")
        await settle()
        assert population(cluster) == {("default", "none", "none", "Created"): 1}
