"""Kueue's integration of TrainJobs of v1alpha1, on our CRDs and on those of Kubeflow Trainer (Go).

e2e/test_kueue.py plays the same with processes; here the manager is away at the worst moments. Every change is held
against the webhooks.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from e2e.kueue_pod_sets import STEP, pod_sets, pod_sets_of_jobset
from tests.configurations import bare
from tests.webhooks.blueprints import StaticRuntimes
from tests.webhooks.nets import pipeline
from tests.webhooks.requests import request_of
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.objects import Object, find_condition
from trainer.manager import build_manager
from trainer.plugins import coscheduling
from trainer.plugins.workload.versions import V1BETA1
from trainer.v1alpha1.admission import V1Alpha1Admission
from trainer.v1alpha1.client import SERVED, decoded
from trainer.v1alpha1.discovery import Served
from trainer.workloads import JOBSETS
from trainer_kube_testing import FakeClient, ManualClock, settle

V1 = SERVED[TRAIN_JOBS]
KUEUE = "kueue.x-k8s.io/manager"
COUNTS = {"ready": 0, "succeeded": 0, "failed": 0, "active": 0, "suspended": 0}
PODS: Object = {
    "containers": [{"name": "node", "image": "i"}],
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"key": "gpu", "operator": "Exists"}],
}
JOB: Object = {
    "name": "node",
    "template": {"metadata": {"labels": {STEP: "trainer"}}, "spec": {"template": {"spec": PODS}}},
}
RUNTIME: Object = {
    "apiVersion": V1.api_version,
    "kind": "ClusterTrainingRuntime",
    "metadata": {"name": "own"},
    "spec": {"mlPolicy": {"numNodes": 1, "torch": {}}, "template": {"spec": {"replicatedJobs": [JOB]}}},
}


def entry(*jobs: Object) -> Object:
    """The runtime patch of Kueue; without Jobs it is that which it creates and leaves behind."""
    return {
        "manager": KUEUE,
        "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [*jobs]} if jobs else {}}},
    }


FLAVOR: Object = {
    "name": "node",
    "template": {
        "spec": {
            "template": {
                "metadata": {"labels": {"kueue.x-k8s.io/podset": "node"}},
                "spec": {
                    "nodeSelector": {"capacity": "spot"},
                    "tolerations": [{"key": "spot", "operator": "Exists"}],
                    "schedulingGates": [{"name": "kueue.x-k8s.io/topology"}],
                },
            }
        }
    },
}


class Cluster:
    """A cluster that serves v1alpha1; tests play Kueue and the JobSet controller."""

    def __init__(self, *, is_extended: bool) -> None:
        self.clock = ManualClock()
        self.client = FakeClient(RUNTIME, resources=(*SERVED.values(), JOBSETS), clock=self.clock)
        self._served = Served("v1alpha1", is_extended=is_extended)
        self._admission = V1Alpha1Admission(pipeline("v1alpha1"), StaticRuntimes([decoded(RUNTIME)]), self.clock)

    @asynccontextmanager
    async def managed(self, **sections: Any) -> AsyncIterator[None]:
        """Run the manager with further settings; it has done all it can when the body starts."""
        client = self._served.client(self.client)
        manager = build_manager(client, bare(**sections), served=self._served, clock=self.clock)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(manager.run)
            await manager.wait_for_start()
            await settle()
            yield
            tasks.cancel_scope.cancel()

    async def submit(self, **spec: Any) -> None:
        """What is stored of a TrainJob that Kueue's webhook has changed."""
        ref = {"name": "own", "kind": "ClusterTrainingRuntime", "apiGroup": "trainer.kubeflow.org"}
        fields = {"runtimeRef": ref, "trainer": {"numNodes": 2}, "suspend": True, "runtimePatches": [entry()]}
        metadata = {"name": "demo", "namespace": "default", "uid": "u"}
        obj = {"apiVersion": V1.api_version, "kind": "TrainJob", "metadata": metadata, "spec": fields | spec}
        assert (await self._admission.validate_train_job(replace(request_of(obj), resource=V1))).allowed
        self.client.add(obj)
        await settle()

    async def change(self, **spec: Any) -> None:
        """A request of Kueue."""
        old = self.train_job
        new = old | {"spec": old["spec"] | spec}
        answer = await self._admission.validate_train_job(replace(request_of(new, old), resource=V1))
        assert answer.allowed, answer.message
        await self.client.update(V1, new)
        await settle()

    async def run_jobset(self, terminal: str = "", **counts: int) -> None:
        """The JobSet controller writes the status of the JobSet."""
        counted = [{"name": "node"} | COUNTS | counts]
        self.client.add(self.jobset | {"status": {"replicatedJobsStatus": counted, "terminalState": terminal}})
        await settle()

    async def collect(self) -> None:
        """The garbage collector has deleted what a JobSet owned that waits for it."""
        if "foregroundDeletion" in self.jobset["metadata"].get("finalizers", ()):
            self.client.remove(JOBSETS, "demo", "default")
        await settle()

    @property
    def train_job(self) -> Object:
        """The only TrainJob."""
        (obj,) = self.client.objects(V1)
        return obj

    @property
    def jobset(self) -> Object:
        """The only JobSet."""
        (obj,) = self.client.objects(JOBSETS)
        return obj

    def runs_what_is_counted(self) -> bool:
        """Whether the JobSet has the pods for which quota is reserved."""
        return pod_sets_of_jobset(self.jobset) == pod_sets(self.train_job, RUNTIME)


@pytest.fixture(params=[True, False], ids=["our CRDs", "upstream's CRDs"])
def cluster(request: pytest.FixtureRequest) -> Cluster:
    """A cluster with a runtime."""
    return Cluster(is_extended=request.param)


async def test_a_life_in_a_queue(cluster: Cluster) -> None:
    """Start, stop, another start and the end; at each step the JobSet has the pods that Kueue counts."""
    async with cluster.managed():
        await cluster.submit()
        waiting = cluster.jobset["spec"]
        assert waiting["suspend"]
        assert cluster.runs_what_is_counted()
        for _ in range(2):
            await cluster.change(runtimePatches=[entry(FLAVOR)])
            assert cluster.jobset["spec"]["suspend"], "it is resumed by the second request"
            await cluster.change(suspend=False)
            assert not cluster.jobset["spec"]["suspend"]
            assert cluster.runs_what_is_counted()
            await cluster.run_jobset(active=1, ready=1)
            assert [job["active"] for job in cluster.train_job["status"]["jobsStatus"]] == [1]

            await cluster.change(suspend=True)
            assert cluster.jobset["spec"]["suspend"]
            await cluster.run_jobset(suspended=1)
            assert [job["active"] for job in cluster.train_job["status"]["jobsStatus"]] == [0]
            await cluster.change(runtimePatches=[entry()])
            await cluster.collect()
            assert cluster.jobset["spec"] == waiting
        await cluster.change(runtimePatches=[entry(FLAVOR)])
        await cluster.change(suspend=False)
        await cluster.run_jobset("Completed", succeeded=1)
        complete = find_condition(cluster.train_job, "Complete") or {}
        assert complete["status"] == "True"
        assert complete["message"]
        assert [job["succeeded"] for job in cluster.train_job["status"]["jobsStatus"]] == [1]


def flavor(pool: str) -> Object:
    """Where the pods of a Job run once they are admitted."""
    placed = {"nodeSelector": {"pool": pool}, "tolerations": [{"key": pool, "operator": "Exists"}]}
    return {"name": "node", "template": {"spec": {"template": {"spec": placed}}}}


async def test_another_flavor(cluster: Cluster) -> None:
    """The JobSet is made anew when the first flavor is taken back, so its Jobs have the second alone."""
    async with cluster.managed():
        await cluster.submit()
        await cluster.change(runtimePatches=[entry(flavor("a"))])
        await cluster.change(suspend=False)
        first = cluster.jobset["metadata"]["uid"]
        await cluster.run_jobset(active=1, ready=1)
        await cluster.change(suspend=True)
        await cluster.run_jobset(suspended=1)
        assert cluster.jobset["metadata"]["uid"] == first
        await cluster.change(runtimePatches=[entry()])
        await cluster.collect()
        anew = cluster.jobset["metadata"]["uid"]
        assert anew != first
        await cluster.change(runtimePatches=[entry(flavor("b"))])
        await cluster.change(suspend=False)
        assert cluster.jobset["metadata"]["uid"] == anew
        (job,) = cluster.jobset["spec"]["replicatedJobs"]
        pods = job["template"]["spec"]["template"]["spec"]
        assert pods["nodeSelector"] == {"disk": "ssd", "pool": "b"}
        assert [each["key"] for each in pods["tolerations"]] == ["b"], "JobSet adds them to those of the runtime"


@pytest.mark.parametrize(("first", "then"), [("none", "auto"), ("workload", "none"), ("coscheduling", "workload")])
async def test_another_gang_scheduling(cluster: Cluster, first: str, then: str) -> None:
    """What waits in a queue or runs keeps its gang, or none, when its JobSet is made anew for another flavor."""
    for kind in (V1BETA1.pod_groups, V1BETA1.workloads, coscheduling.POD_GROUPS):
        cluster.client.serve(kind)
    groups = V1BETA1.pod_groups if first == "workload" else coscheduling.POD_GROUPS

    async with cluster.managed(gangScheduling=first):
        await cluster.submit()
    waiting = cluster.jobset["spec"]
    built = [each["spec"] for each in cluster.client.objects(groups)]
    assert len(built) == (first != "none")
    async with cluster.managed(gangScheduling=then):
        assert cluster.jobset["spec"] == waiting
        await cluster.change(runtimePatches=[entry(flavor("a"))])
        await cluster.change(suspend=False)
        await cluster.run_jobset(active=1, ready=1)
    async with cluster.managed(gangScheduling=first):
        await cluster.change(suspend=True)
        await cluster.run_jobset(suspended=1)
    async with cluster.managed(gangScheduling=then):
        await cluster.change(runtimePatches=[entry()])
        await cluster.collect()
        assert cluster.jobset["spec"] == waiting
    kinds = (V1BETA1.pod_groups, coscheduling.POD_GROUPS)
    assert [each["spec"] for kind in kinds for each in cluster.client.objects(kind)] == built


async def test_another_number_of_nodes(cluster: Cluster) -> None:
    """The JobSet is made anew on the runtime that it was built on."""
    async with cluster.managed():
        await cluster.submit(suspend=False)
        await cluster.run_jobset(active=1, ready=1)
        newer = JOB | {"template": JOB["template"] | {"spec": {"template": {"spec": PODS | {"hostIPC": True}}}}}
        template = {"spec": {"replicatedJobs": [newer]}}
        cluster.client.add(RUNTIME | {"spec": RUNTIME["spec"] | {"template": template}})
        await cluster.change(suspend=True)
        assert cluster.jobset["spec"]["suspend"]
        await cluster.run_jobset(suspended=1)
        await cluster.change(trainer={"numNodes": 1}, suspend=False)
        assert cluster.jobset["metadata"]["deletionTimestamp"]
        await cluster.collect()
        assert [each.count for each in pod_sets_of_jobset(cluster.jobset)] == [1]
        (job,) = cluster.jobset["spec"]["replicatedJobs"]
        assert "hostIPC" not in job["template"]["spec"]["template"]["spec"]


async def test_the_deadline_does_not_run_in_the_queue(cluster: Cluster) -> None:
    """It counts from each start, also if the manager was away meanwhile."""
    async with cluster.managed():
        await cluster.submit(activeDeadlineSeconds=60)
        await cluster.clock.advance(120)
        await cluster.change(suspend=False)
        await cluster.clock.advance(50)
        await cluster.change(suspend=True)
        await cluster.clock.advance(120)
        await cluster.change(suspend=False)
        await cluster.clock.advance(50)
    async with cluster.managed():
        assert find_condition(cluster.train_job, "Failed") is None
        await cluster.clock.advance(20)
        assert (find_condition(cluster.train_job, "Failed") or {})["reason"] == "DeadlineExceeded"


async def test_multikueue(cluster: Cluster) -> None:
    """Nothing is made of it, and the status that another cluster has written stays, also after a restart."""
    status = {
        "conditions": [
            {
                "type": "Complete",
                "status": "True",
                "reason": "AllJobsCompleted",
                "message": "m",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }
        ],
        "jobsStatus": [{"name": "node"} | COUNTS | {"succeeded": 1}],
    }
    async with cluster.managed():
        await cluster.submit(managedBy="kueue.x-k8s.io/multikueue")
        assert "status" not in cluster.train_job
        await cluster.change(suspend=False)
        await cluster.client.update(V1, cluster.train_job | {"status": status}, subresource="status")
        await settle()
    async with cluster.managed():
        await cluster.change(suspend=True)
    assert cluster.train_job["status"] == status
    assert cluster.client.objects(JOBSETS) == []
    assert not [each for each in cluster.client.requests if each.verb in {"apply", "create"} and not each.dry_run]
