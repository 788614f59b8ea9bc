"""A namespace that makes thousands of objects takes neither series nor events from another one."""

from __future__ import annotations

import pytest

from tests.controllers.conftest import Cluster
from tests.framework.samples import runtime_object, train_job_object
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.objects import Object
from trainer.kube.resource import EVENTS

INVENTED = 2050
"""TrainJobs whose runtimes do not exist: more than a metric has label sets."""


def of(namespace: str, job: str, **runtime: str) -> Object:
    """A TrainJob that names this runtime."""
    obj = train_job_object(job, runtimeRef=runtime or {"name": "blueprint"})
    return obj | {"metadata": obj["metadata"] | {"namespace": namespace, "uid": f"uid-of-{namespace}-{job}"}}


def series(cluster: Cluster, name: str) -> dict[tuple[str, str], float]:
    """Values of a metric by namespace and runtime."""
    found: dict[tuple[str, str], float] = {}
    for family in cluster.metrics.registry.collect():
        for sample in family.samples:
            if sample.name == name:
                key = (sample.labels["namespace"], sample.labels["runtime"])
                found[key] = found.get(key, 0) + sample.value
    return found


async def submit_last(cluster: Cluster, obj: Object) -> None:
    """Create a TrainJob, and return when every TrainJob has a status and no event waits."""
    await cluster.client.create(TRAIN_JOBS, obj)
    pending = cluster.metrics.registry.get_sample_value
    while pending("trainer_kube_events_pending") or not all(map(has_status, cluster.client.objects(TRAIN_JOBS))):
        # First statuses of a burst wait for what the JobSets say.
        await cluster.clock.advance(0.25)


def has_status(obj: Object) -> bool:
    return "status" in obj


async def test_invented_runtimes(cluster: Cluster) -> None:
    """They are one series of that namespace, and the next namespace has its own, with all its events."""
    for number in range(INVENTED):
        cluster.client.add(of("attacker", f"job-{number}", name=f"invented-{number}"))
    async with cluster.managed():
        mine = of("victim", "mine")
        await submit_last(cluster, mine | {"spec": mine["spec"] | {"suspend": True}})
        for metric in ("trainer_trainjobs", "trainer_trainjobs_created_total"):
            assert series(cluster, metric) == {("attacker", "none"): INVENTED, ("victim", "blueprint"): 1}, metric
        events = [event for event in cluster.client.objects(EVENTS) if event["metadata"]["namespace"] == "victim"]
        assert [event["reason"] for event in events] == ["Suspended"]


@pytest.mark.parametrize("kind", ["runtimes", "frameworks"])
async def test_real_runtimes(cluster: Cluster, kind: str) -> None:
    """Whoever may write TrainingRuntimes has a hundred series for them, and the rest as one of that namespace."""
    for number in range(300):
        labels = {"trainer.kubeflow.org/framework": f"f{number}"} if kind == "frameworks" else {}
        metadata = {"name": f"r{number}", "namespace": "attacker", "labels": labels}
        cluster.client.add(runtime_object() | {"kind": "TrainingRuntime", "metadata": metadata})
        cluster.client.add(of("attacker", f"job-{number}", kind="TrainingRuntime", name=f"r{number}"))
    async with cluster.managed():
        await submit_last(cluster, of("victim", "mine"))
        for metric in ("trainer_trainjobs", "trainer_trainjobs_created_total"):
            found = series(cluster, metric)
            assert found["victim", "blueprint"] == 1
            assert (len(found), found["attacker", "other"]) == (102, 200), metric
        frameworks = {
            sample.labels["framework"]
            for family in cluster.metrics.registry.collect()
            for sample in family.samples
            if "framework" in sample.labels
        }
        assert frameworks <= {"none", "other"}
