"""Reconciling twice equals reconciling once, whatever happens in between."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.controllers.conftest import Cluster
from tests.framework.samples import runtime_object, train_job_object
from tests.plugins.test_jobset_pod_problems import CRASHING, CULPRIT, READY, RESTARTING, pod, waiting
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from trainer.workloads import JOBSETS
from trainer_kube_testing import settle

SPECS = st.fixed_dictionaries(
    {},
    optional={
        "suspend": st.booleans(),
        "labels": st.dictionaries(st.sampled_from(["a", "b"]), st.sampled_from(["1", "2"])),
        "trainer": st.fixed_dictionaries(
            {}, optional={"numNodes": st.integers(1, 3), "numProcPerNode": st.integers(1, 2), "image": st.just("new")}
        ),
    },
)
COUNTS = st.fixed_dictionaries({name: st.integers(0, 1) for name in ("ready", "active", "failed", "suspended")})
PODS = st.sampled_from(
    [
        *(waiting(reason, name=name) for reason in ("ErrImagePull", "ImagePullBackOff", "X") for name in ("a", "b")),
        pod("a", phase="Running"),
        pod("b", phase="Failed"),
        CRASHING,
        CULPRIT,
    ]
)
STEPS = st.one_of(
    st.tuples(st.just("spec"), SPECS),
    st.tuples(st.just("run"), COUNTS),
    st.tuples(st.just("end"), st.sampled_from(["Completed", "Failed"])),
    st.tuples(st.just("pod"), PODS),
    st.tuples(st.just("restart"), st.booleans()),
    st.tuples(st.sampled_from(["delete jobset", "delete runtime", "add runtime"]), st.none()),
)


async def play(cluster: Cluster, step: str, value: Any) -> None:
    """What users and the JobSet controller do."""
    match step:
        case "spec":
            await cluster.change(cluster.train_job, **value)
        case "run" if cluster.jobsets:
            await cluster.run_jobset(**value)
        case "end" if cluster.jobsets:
            await cluster.run_jobset(value)
        case "pod":
            await cluster.put(value)
        case "restart" if cluster.jobsets:
            await cluster.run_jobset("", RESTARTING if value else READY)
        case "delete jobset" if cluster.jobsets:
            await cluster.client.delete(JOBSETS, "demo", "default")
        case "delete runtime" if cluster.client.objects(CLUSTER_TRAINING_RUNTIMES):
            await cluster.client.delete(CLUSTER_TRAINING_RUNTIMES, "blueprint")
        case "add runtime":
            await cluster.put(runtime_object())
    await settle()


async def scenario(spec: Mapping[str, Any], steps: list[tuple[str, Any]]) -> None:
    """After every step, looking again and starting again change nothing."""
    cluster = Cluster()
    async with cluster.managed():
        await cluster.put(train_job_object(**spec))
        for step, value in steps:
            await play(cluster, step, value)
            await cluster.clock.advance(10)
            cluster.forget_requests()
            await cluster.resync()
            assert cluster.writes == [], step
    cluster.forget_requests()
    async with cluster.managed():
        assert cluster.writes == []


@settings(max_examples=40, deadline=None)
@given(spec=SPECS, steps=st.lists(STEPS, max_size=6))
def test_twice_is_once(spec: dict[str, Any], steps: list[tuple[str, Any]]) -> None:
    """A reconcile with nothing to do sends no request."""
    anyio.run(scenario, spec, steps)
