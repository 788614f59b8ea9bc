"""A dashboard that runs, and somebody who asks it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import anyio
import pytest

from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.client import ObjectRequest
from trainer.kube.clock import Clock
from trainer.kube.errors import ForbiddenError
from trainer.kube.objects import Object
from trainer.kube.resource import Resource
from trainer.v1alpha1.client import SERVED
from trainer.v1alpha1.discovery import V2ALPHA1, Served
from trainer.workloads import JOBSETS
from trainer_dashboard.access.authenticator import LoopbackAuthenticator
from trainer_dashboard.past.past_trainings import PastTrainings
from trainer_dashboard.server import Dashboard, DashboardOptions
from trainer_dashboard.serving.bundle import Bundle, BundleFile
from trainer_kube_testing import FakeClient

_LONGEST_EVENT = 8 * 1024 * 1024
FILES = {"index.html": b"<!doctype html>", "assets/dashboard.js": b"1", "assets/index.css": b"a{}"}
PAGE = Bundle({path: BundleFile.of(content) for path, content in FILES.items()})
REVIEWS = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False
)


class UserClient(FakeClient):
    """The API server as somebody sees it who may not do everything."""

    def __init__(
        self,
        *objects: Object,
        resources: tuple[Resource, ...] = (TRAIN_JOBS, *SERVED.values()),
        clock: Clock | None = None,
    ) -> None:
        super().__init__(*objects, resources=[*dict.fromkeys(resources), JOBSETS], clock=clock)
        self.denied: set[str] = set()
        """Verbs, a space and the resource, with its namespace behind another space, such as `list trainjobs`."""
        self.reviews: list[Object] = []

    async def send(self, request: ObjectRequest) -> Object | None:
        """See `Client.send`."""
        if request.resource != REVIEWS:
            return await super().send(request)
        if "create selfsubjectaccessreviews" in self.denied:
            raise ForbiddenError(403, "you may not ask")
        assert isinstance(request.body, dict)
        asked = request.body["spec"]["resourceAttributes"]
        self.reviews.append(asked)
        parts = [asked["verb"], "/".join(filter(None, (asked["resource"], asked.get("subresource"))))]
        return request.body | {"status": {"allowed": " ".join(parts) not in self.denied}}


class Visitor:
    """Sends requests as the page does, unless it is told otherwise."""

    def __init__(self, dashboard: Dashboard, session: aiohttp.ClientSession, token: str = "") -> None:
        self.dashboard = dashboard
        self.session = session
        self.token = token
        self.code = ""
        """What the browser is opened with."""

    @asynccontextmanager
    async def ask(
        self, path: str, method: str = "GET", *, token: str | None = None, **options: Any
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """The answer to a request."""
        token = self.token if token is None else token
        headers = {"X-Requested-With": "trainer-dashboard"}
        headers |= {"Authorization": f"Bearer {token}"} if token else {}
        headers |= options.pop("headers", {})
        address = self.dashboard.address.rstrip("/") + path
        async with self.session.request(method, address, headers=headers, **options) as answer:
            yield answer

    async def json(self, path: str, method: str = "GET", **options: Any) -> tuple[int, Any]:
        """Status and content of an answer."""
        async with self.ask(path, method, **options) as answer:
            return answer.status, await answer.json()

    @asynccontextmanager
    async def stream(self, path: str) -> AsyncIterator[Events]:
        """The events of a stream."""
        async with self.ask(path) as answer:
            assert answer.status == 200
            assert answer.content_type == "text/event-stream"
            yield Events(answer)


class Events:
    """The events of a stream, in order."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self._answer = answer

    async def next(self, *names: str) -> Any:
        """The content of the next event, or of the next with one of these names."""
        while True:
            name, content = await self._read()
            if not names or name in names:
                return content

    async def all_until(self, last: str) -> AsyncIterator[tuple[str, Any]]:
        """Names and contents of all events, with the last one of this name."""
        name = ""
        while name != last:
            name, content = await self._read()
            yield name, content

    async def to_end(self) -> list[str]:
        """The names of all events until the server ends the stream."""
        names = []
        try:
            while True:
                names.append((await self._read())[0])
        except asyncio.IncompleteReadError:
            return names

    async def _read(self) -> tuple[str, Any]:
        with anyio.fail_after(20):
            while True:
                block = await self._answer.content.readuntil(b"\n\n", max_size=_LONGEST_EVENT)
                if not block.endswith(b"\n\n"):
                    raise asyncio.IncompleteReadError(block, None)
                fields = dict(line.split(": ", 1) for line in block.decode().splitlines() if ": " in line)
                if fields:
                    return fields["event"], json.loads(fields["data"])


@pytest.fixture
def client() -> UserClient:
    return UserClient()


@asynccontextmanager
async def visiting(
    client: UserClient,
    served: Served = V2ALPHA1,
    *,
    past: PastTrainings | None = None,
    **options: Any,
) -> AsyncIterator[Visitor]:
    """Somebody who visits a dashboard of this cluster."""
    authenticator = LoopbackAuthenticator(served.client(client))
    dashboard = Dashboard(
        served.client(client), served, DashboardOptions(**options), authenticator=authenticator, bundle=PAGE, past=past
    )
    async with running(dashboard, authenticator.token) as visitor:
        visitor.code = authenticator.code
        yield visitor


@asynccontextmanager
async def running(dashboard: Dashboard, token: str = "") -> AsyncIterator[Visitor]:
    """Somebody with a token who visits this dashboard while it runs."""
    listening = anyio.Event()

    async def started() -> None:
        listening.set()

    async with anyio.create_task_group() as tasks, aiohttp.ClientSession() as session:

        async def run() -> None:
            await dashboard.run(started=started)

        tasks.start_soon(run)
        await listening.wait()
        yield Visitor(dashboard, session, token)
        tasks.cancel_scope.cancel()


def train_job(name: str = "demo", *, namespace: str = "default", spec: Object | None = None, **status: Any) -> Object:
    """A TrainJob as a server returns it."""
    return {
        "apiVersion": TRAIN_JOBS.api_version,
        "kind": TRAIN_JOBS.kind,
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-of-{name}",
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {"runtimeRef": {"name": "plain"}} | (spec or {}),
        "status": status,
    }


def node_pod(job: str, index: int = 0, **status: Any) -> Object:
    """A pod of a training, whose container runs."""
    running = [{"name": "node", "restartCount": 0, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{job}-node-0-{index}-abcde",
            "namespace": "default",
            "uid": f"uid-of-{job}-{index}",
            "labels": {
                "jobset.sigs.k8s.io/jobset-name": job,
                "jobset.sigs.k8s.io/replicatedjob-name": "node",
                "jobset.sigs.k8s.io/job-index": "0",
                "batch.kubernetes.io/job-completion-index": str(index),
            },
            "ownerReferences": [{"kind": "Job", "name": f"{job}-node-0", "uid": "j", "controller": True}],
        },
        "spec": {"restartPolicy": "Never", "containers": [{"name": "node"}]},
        "status": {"phase": "Running", "containerStatuses": running} | status,
    }
