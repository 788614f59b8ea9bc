"""`python -m benchmarks.following.cluster`: TrainJobs and their pods, and how late a status tells of a message."""

from __future__ import annotations

import asyncio
from functools import partial

import msgspec
from aiohttp import web

from benchmarks.following.load import Load
from benchmarks.server.fake_reads import json_response, serve_read
from benchmarks.server.objects import pod
from benchmarks.worker import obey
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube import Object
from trainer.kube.resource import PODS
from trainer.workloads import JOBSETS
from trainer_kube_testing import FakeClient

NAMESPACE = "default"


class Cluster:
    """Serves TrainJobs, JobSets and pods, and notes what is written to the status of TrainJobs."""

    def __init__(self) -> None:
        self._load = Load()
        self._objects = FakeClient(resources=[TRAIN_JOBS, JOBSETS])
        self._shown: dict[str, int] = {}
        """Last message that each status shows."""
        self._delays: list[float] = []
        self._writes = 0

    def app(self) -> web.Application:
        """The requests of the manager: lists, watches, and applies of statuses."""
        app = web.Application()
        for resource in (TRAIN_JOBS, JOBSETS, PODS):
            app.router.add_get(resource.path(), partial(serve_read, self._objects, resource))
        app.router.add_patch(TRAIN_JOBS.path(NAMESPACE, "{name}", "status"), self._apply)
        return app

    async def _apply(self, request: web.Request) -> web.Response:
        """Store a status, then note it."""
        obj = msgspec.json.decode(await request.read())
        manager = request.query["fieldManager"]
        answer = await self._objects.apply(
            TRAIN_JOBS, obj, field_manager=manager, force="force" in request.query, subresource="status"
        )
        self._objects.requests.clear()
        if status := (obj.get("status") or {}).get("trainerStatus"):
            self._note(obj["metadata"]["name"], status["currentStep"])
        return json_response(answer)

    def _note(self, name: str, newest: int) -> None:
        """This status now shows the message of that moment, and with it all that came since the one before."""
        now, interval = self._load.milliseconds(), 1000 * self._load.lines_per_message / self._load.lines_per_second
        self._writes += 1
        last = self._shown.get(name, newest - interval)
        moment = float(newest)
        while moment > last + interval / 2:
            self._delays.append((now - moment) / 1000)
            moment -= interval
        self._shown[name] = newest

    async def prepare(self, load: object) -> object:
        """Make TrainJobs with JobSets and pods that wait for their images."""
        self._load = msgspec.convert(load, Load)
        for number in range(self._load.jobs):
            job, jobset, waiting = _objects(number)
            for obj in (job, jobset, waiting | {"status": {"phase": "Pending"}}):
                self._objects.add(obj)
        return {}

    async def start_pods(self) -> object:
        """Let all pods run."""
        for number in range(self._load.jobs):
            self._objects.add(_objects(number)[2])
        return {}

    async def report(self) -> object:
        """Delays from line to status, and writes, since the last report."""
        report = {"delays": sorted(self._delays), "writes": self._writes}
        self._delays, self._writes = [], 0
        return report


def _objects(number: int) -> tuple[Object, Object, Object]:
    running: Object = {"apiVersion": "v1", "kind": "Pod"} | pod(number)
    name, uid = running["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-name"], f"00000000-0000-4000-8000-{number:012}"
    running["metadata"]["namespace"] = NAMESPACE
    metadata = {"name": name, "namespace": NAMESPACE, "creationTimestamp": "2026-01-01T00:00:00Z"}
    job = {
        "apiVersion": TRAIN_JOBS.api_version,
        "kind": TRAIN_JOBS.kind,
        "metadata": metadata | {"uid": uid},
        "spec": {"runtimeRef": {"name": "torch-distributed"}, "trainer": {"numNodes": 1, "args": ["--epochs=10"]}},
    }
    owner = {
        "apiVersion": TRAIN_JOBS.api_version,
        "kind": TRAIN_JOBS.kind,
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    template = {"metadata": {"labels": {}}, "spec": running["spec"]}
    replicated = {"name": "node", "replicas": 1, "template": {"spec": {"parallelism": 1, "template": template}}}
    jobset = {
        "apiVersion": JOBSETS.api_version,
        "kind": JOBSETS.kind,
        "metadata": metadata | {"ownerReferences": [owner]},
        "spec": {"replicatedJobs": [replicated]},
    }
    return job, jobset, running


async def serve() -> None:
    """Serve on a free port of the loopback interface."""
    cluster = Cluster()
    runner = web.AppRunner(cluster.app(), access_log=None, handler_cancellation=True, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]

    async def prepare(load: object) -> object:
        await cluster.prepare(load)
        return {"url": f"http://{host}:{port}"}

    await obey({"prepare": prepare, "start_pods": cluster.start_pods, "report": cluster.report})
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(serve())
