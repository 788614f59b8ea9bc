"""`python -m benchmarks.growing.api_server`: the fake API server behind HTTP, and the life of TrainJobs in it."""

from __future__ import annotations

import asyncio
import uuid

import anyio
import anyio.lowlevel
import msgspec
from aiohttp import web

from benchmarks.converging import load as objects
from benchmarks.server.fake_reads import json_response, serve_read
from benchmarks.worker import obey
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube import resource as builtin
from trainer.kube.client import ObjectRequest, PatchType, Verb
from trainer.kube.clock import SystemClock, timestamp
from trainer.kube.errors import ApiError
from trainer.kube.logs.logs import configure_logging
from trainer.kube.objects import Object, is_condition_true, name_of, uid_of
from trainer.kube.resource import CONFIG_MAPS, Resource
from trainer.workloads import JOBSETS
from trainer_kube_testing import FakeClient

NAMESPACE = "default"
_OURS = (TRAIN_JOBS, TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES, JOBSETS)
_BUILT_IN = tuple(value for value in vars(builtin).values() if isinstance(value, Resource))
_VERBS = {"GET": Verb.GET, "POST": Verb.CREATE, "PUT": Verb.UPDATE, "PATCH": Verb.PATCH, "DELETE": Verb.DELETE}
_APPLY = "application/apply-patch+yaml"
_POLL_SECONDS = 0.02
_AT_ONCE = 32


class ApiServer:
    """Serves whatever a manager asks for, and plays the users and the JobSet controller."""

    def __init__(self) -> None:
        self._objects = FakeClient(objects.runtime(NAMESPACE), resources=_OURS)
        self._resources = {each.path(): each for each in (*_OURS, *_BUILT_IN)}
        self._created = 0

    async def start(self) -> object:
        """Serve; answers with the port."""
        app = web.Application(client_max_size=1 << 24)
        app.router.add_route("*", "/{path:.*}", self._answer)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        return {"port": runner.addresses[0][1]}

    async def live(self, jobs: int) -> object:
        """Create so many further TrainJobs, and complete their JobSets, until all are complete."""
        names = [f"job-{self._created + number:05}" for number in range(jobs)]
        self._created += jobs
        for start in range(0, jobs, _AT_ONCE):
            await self._live(names[start : start + _AT_ONCE])
        return {}

    async def multiply(self, jobs: int) -> object:
        """Have so many TrainJobs in all, each with what belongs to it, as if they had lived as the first one has."""
        source = next(iter(self._objects.objects(TRAIN_JOBS)))
        name = name_of(source)
        found = [
            obj
            for resource in (TRAIN_JOBS, JOBSETS, CONFIG_MAPS)
            for obj in self._objects.objects(resource)
            if name in name_of(obj)
        ]
        text, uids = msgspec.json.encode(found), [uid_of(obj).encode() for obj in found]
        for number in range(self._created, jobs):
            copy = text.replace(name.encode(), f"job-{number:05}".encode())
            for uid in uids:
                copy = copy.replace(uid, str(uuid.uuid4()).encode())
            for obj in msgspec.json.decode(copy):
                self._objects.add(obj)
            if number % 100 == 0:
                self._objects.compact()
                await anyio.lowlevel.checkpoint()
        self._created = max(jobs, self._created)
        return {}

    async def _live(self, names: list[str]) -> None:
        for name in names:
            await self._objects.create(TRAIN_JOBS, objects.train_job(NAMESPACE, name))
        while any(self._objects.find(JOBSETS, name, NAMESPACE) is None for name in names):  # noqa: ASYNC110
            await anyio.sleep(_POLL_SECONDS)
        status = {"status": objects.completed(timestamp(SystemClock().now()))}
        for name in names:
            await self._objects.patch(
                JOBSETS, name, status, NAMESPACE, patch_type=PatchType.MERGE, subresource="status"
            )
        while not all(map(self._is_complete, names)):  # noqa: ASYNC110
            await anyio.sleep(_POLL_SECONDS)

    def _is_complete(self, name: str) -> bool:
        job = self._objects.find(TRAIN_JOBS, name, NAMESPACE)
        return job is not None and is_condition_true(job, "Complete")

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self._objects.requests.clear()
        try:
            return await self._serve(request)
        except ApiError as error:
            status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": error.code}
            return json_response(status | {"reason": error.status_reason, "message": str(error)}, error.code)

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        place = _Place.of(request.path)
        resource = self._resources.get(place.collection)
        if resource is None:
            return json_response({"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404}, 404)
        if request.method == "GET" and not place.name:
            return await serve_read(self._objects, resource, request, place.namespace or None)
        verb = Verb.APPLY if request.content_type == _APPLY else _VERBS[request.method]
        body: Object = msgspec.json.decode(await request.read() or b"{}")
        metadata = body.get("metadata") or {}
        answer = await self._objects.send(
            ObjectRequest(
                verb,
                resource,
                place.name or metadata.get("name", ""),
                place.namespace,
                subresource=place.subresource or None,
                body=body,
                field_manager=request.query.get("fieldManager", "trainer"),
                force="force" in request.query,
            )
        )
        return json_response(answer or {"kind": "Status", "status": "Success"})


class _Place(msgspec.Struct, frozen=True):
    """What a path names."""

    collection: str
    """The path of all objects of the resource, in all namespaces."""
    namespace: str
    name: str
    subresource: str

    @classmethod
    def of(cls, path: str) -> _Place:
        parts = path.strip("/").split("/")
        root, rest = (parts[:2], parts[2:]) if parts[0] == "api" else (parts[:3], parts[3:])
        namespace = ""
        if len(rest) > 2 and rest[0] == "namespaces":
            namespace, rest = rest[1], rest[2:]
        plural, name, subresource = (*rest, "", "", "")[:3]
        return cls(f"/{'/'.join(root)}/{plural}", namespace, name, subresource)


async def main() -> None:
    """Obey until standard input ends."""
    configure_logging(json=True, level="warning")
    server = ApiServer()
    await obey({"start": server.start, "live": server.live, "multiply": server.multiply})


if __name__ == "__main__":
    asyncio.run(main())
