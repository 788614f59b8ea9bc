"""The manager counts a disrupted pod once, whatever watches pods."""

from __future__ import annotations

import anyio

from tests.configurations import bare
from tests.controllers.metrics.test_disruptions import EVICTION, pod
from tests.framework.samples import runtime_object, train_job_object
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.resource import PODS
from trainer.manager import build_manager
from trainer.workloads import JOBSETS
from trainer_kube_testing import FakeClient, ManualClock, settle


async def test_a_pod_that_several_plugins_watch_counts_once() -> None:
    """The informer of pods is shared, and so is what counts them."""
    clock = ManualClock()
    kinds = (TRAIN_JOBS, TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES, JOBSETS, PODS)
    client = FakeClient(runtime_object(), resources=kinds, clock=clock)
    manager = build_manager(client, bare(), clock=clock)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(manager.run)
        await manager.wait_for_start()
        await client.create(TRAIN_JOBS, train_job_object())
        await client.create(PODS, pod().decode())
        await settle()
        evicted = pod("Failed", target=EVICTION, code=1).decode()
        name = evicted["metadata"]["name"]
        await client.patch(PODS, name, {"status": evicted["status"]}, "default", subresource="status")
        await settle()
        tasks.cancel_scope.cancel()
    counts = [
        (sample.labels["reason"], sample.value)
        for family in manager.metrics.registry.collect()
        for sample in family.samples
        if sample.name == "trainer_pods_disrupted_total"
    ]
    assert counts == [(EVICTION, 1)]
