"""A manager that serves v1 jobs on a fake API server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from tests.configurations import bare
from trainer.api.kubeflow_v1 import JAX_JOBS, PYTORCH_JOBS
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.objects import Object, resource_version_of
from trainer.kube.resource import EVENTS, PODS, Resource
from trainer.manager import build_manager
from trainer.v1alpha1.client import SERVED
from trainer.v1alpha1.discovery import V2ALPHA1, Served
from trainer.workloads import JOBSETS
from trainer_kube_testing import FakeClient, ManualClock, RecordedRequest, settle
from trainer_v1_jobs.component import register

RESOURCES = (TRAIN_JOBS, TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES, JOBSETS, PYTORCH_JOBS, JAX_JOBS)


class Cluster:
    """A fake API server; tests play the user, JobSet and the kubelet."""

    def __init__(self, served: Served = V2ALPHA1) -> None:
        self.clock = ManualClock()
        self._served = served
        self._resources = {} if served is V2ALPHA1 else SERVED
        self.client = FakeClient(resources=[self.served(each) for each in RESOURCES], clock=self.clock)

    @asynccontextmanager
    async def managed(self) -> AsyncIterator[None]:
        """Run the manager; it has done all it can when the body starts."""
        configuration = bare(controllers={"v1": {"enabled": True}})
        client = self._served.client(self.client)
        manager = build_manager(client, configuration, served=self._served, components=[register], clock=self.clock)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(manager.run)
            await manager.wait_for_start()
            await settle()
            yield
            tasks.cancel_scope.cancel()

    async def put(self, *objects: Object) -> None:
        """Somebody else writes objects, and the manager does all that follows."""
        for obj in objects:
            self.client.add(obj)
        await self.pass_time(1)

    async def pass_time(self, seconds: float) -> None:
        """Time passes."""
        await self.clock.advance(seconds)
        await settle()

    async def change(self, resource: Resource, **spec: Any) -> None:
        """The user changes the spec of the only object of a kind."""
        obj = self.only(resource)
        await self.client.update(resource, obj | {"spec": obj["spec"] | spec})
        await self.pass_time(1)

    async def end(self, terminal: str, **condition: str) -> None:
        """JobSet says that it has ended."""
        conditions = [{"type": terminal, "status": "True", "reason": terminal, "message": "", **condition}]
        await self.put(self.only(JOBSETS) | {"status": {"terminalState": terminal, "conditions": conditions}})

    async def run_pods(self, phase: str = "Running", *, job: str = "node", count: int = 1) -> None:
        """The kubelet runs pods of the only JobSet, or they end."""
        jobset = self.only(JOBSETS)
        (template,) = [
            each["template"]["spec"]["template"] for each in jobset["spec"]["replicatedJobs"] if each["name"] == job
        ]
        name, labels = jobset["metadata"]["name"], template["metadata"]["labels"]
        await self.put(*(pod(name, job, index, phase, labels) for index in range(count)))

    def forget_workloads(self) -> None:
        """The garbage collector deletes what has no owner any more."""
        for resource in (JOBSETS, PODS):
            for obj in self.client.objects(resource):
                self.client.remove(resource, obj["metadata"]["name"], "default")

    def served(self, resource: Resource) -> Resource:
        """What the cluster serves for a resource of the model."""
        return self._resources.get(resource, resource)

    def objects(self, resource: Resource) -> list[Object]:
        """The stored objects of a kind."""
        return self.client.objects(self.served(resource))

    def only(self, resource: Resource) -> Object:
        """The only object of a kind."""
        (obj,) = self.objects(resource)
        return obj

    def conditions(self, resource: Resource = PYTORCH_JOBS) -> list[str]:
        """The conditions of the only job, those that are False with an exclamation mark."""
        found = (self.only(resource).get("status") or {}).get("conditions") or []
        return [each["type"] if each["status"] == "True" else f"!{each['type']}" for each in found]

    @property
    def warnings(self) -> list[tuple[str, str]]:
        """Reason and message of the warnings about v1 jobs, oldest first."""
        events = sorted(self.client.objects(EVENTS), key=lambda event: int(resource_version_of(event)))
        kinds = {PYTORCH_JOBS.kind, JAX_JOBS.kind}
        return [
            (event["reason"], event["message"])
            for event in events
            if event["type"] == "Warning" and event["involvedObject"]["kind"] in kinds
        ]

    @property
    def writes(self) -> list[RecordedRequest]:
        """The manager's requests that are not reads; `update` is the user's."""
        return [request for request in self.client.requests if request.verb not in {"get", "list", "watch", "update"}]


def pod(jobset: str, job: str, index: int, phase: str, labels: Object) -> Object:
    """A pod of a JobSet, with the labels of its template."""
    labels = labels | {
        "jobset.sigs.k8s.io/jobset-name": jobset,
        "jobset.sigs.k8s.io/replicatedjob-name": job,
        "jobset.sigs.k8s.io/job-index": "0",
        "batch.kubernetes.io/job-completion-index": str(index),
    }
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": f"{jobset}-{job}-0", "uid": "job", "controller": True}
    return {
        "apiVersion": "v1",
        "kind": PODS.kind,
        "metadata": {
            "name": f"{jobset}-{job}-0-{index}-abcde",
            "namespace": "default",
            "labels": labels,
            "ownerReferences": [owner],
        },
        "status": {"phase": phase},
    }


@pytest.fixture(params=[pytest.param(V2ALPHA1, id="v2alpha1"), pytest.param(Served("v1alpha1"), id="v1alpha1")])
def cluster(request: pytest.FixtureRequest) -> Cluster:
    """An empty cluster, of each version of TrainJobs."""
    return Cluster(request.param)


@pytest.fixture
def elastic_cluster() -> Cluster:
    """An empty cluster whose TrainJobs may change their size."""
    return Cluster()
