"""Databases of both kinds, and a cluster that is recorded."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest
from anyio.to_thread import run_sync
from sqlalchemy import Connection, create_engine, text

from tests.postgresql import MISSING, postgresql_programs, postgresql_server
from trainer.api.jobset_labels import COMPLETION_INDEX, JOB_INDEX, JOBSET_NAME, JOBSET_UID, REPLICATED_JOB
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.objects import Object
from trainer.kube.resource import CONFIG_MAPS, HORIZONTAL_POD_AUTOSCALERS, Resource
from trainer.plugins import coscheduling, volcano
from trainer.workloads import JOBSETS
from trainer_dashboard.history.database import Database
from trainer_dashboard.history.errors import HistoryError
from trainer_dashboard.history.queries import History
from trainer_dashboard.history.recorder import Recorder
from trainer_dashboard.history.retention import RetentionOptions
from trainer_kube_testing import FakeClient, ManualClock

_T = TypeVar("_T")
RESOURCES = (TRAIN_JOBS, JOBSETS, TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES)
TAG = "[trainer.kubeflow.org/v2alpha1/trainjob/trainerStatus]"


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """The URL of a server."""
    programs = postgresql_programs()
    if programs is None:
        pytest.skip(MISSING)
    with postgresql_server(programs) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a database without tables."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/state/history.db"
    server: str = request.getfixturevalue("postgresql")
    return _new_database(server)


def _new_database(server: str) -> str:
    name = f"t{uuid.uuid4().hex}"
    admin = create_engine(server.replace("postgresql:", "postgresql+psycopg:").replace("NAME", "postgres"))
    with admin.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    admin.dispose()
    return server.replace("NAME", name)


@pytest.fixture
def database(url: str) -> Iterator[FailingDatabase]:
    """A database with tables."""
    opened = FailingDatabase(url)
    opened.migrate()
    yield opened
    opened.close()


@pytest.fixture
def server_url(postgresql: str) -> str:
    """The URL of a database of PostgreSQL without tables, for what SQLite has not."""
    return _new_database(postgresql)


@pytest.fixture
def server_database(server_url: str) -> Iterator[FailingDatabase]:
    """The same with tables."""
    opened = FailingDatabase(server_url)
    opened.migrate()
    yield opened
    opened.close()


class FailingDatabase(Database):
    """A database that is away while the test says so, and that may call something before each transaction."""

    is_away = False
    failures = 0
    before: Callable[[Callable[[Connection], object]], Awaitable[None]] | None = None

    async def run(self, transaction: Callable[[Connection], _T]) -> _T:
        """See `Database`."""
        if self.before is not None:
            await self.before(transaction)
        if self.is_away:
            self.failures += 1
            raise HistoryError("away")
        return await super().run(transaction)


@dataclass
class Cluster:
    """A cluster whose TrainJobs the test makes."""

    client: FakeClient
    clock: ManualClock
    database: FailingDatabase
    options: RetentionOptions = field(default_factory=RetentionOptions)

    @asynccontextmanager
    async def recorder(self, **options: Any) -> AsyncIterator[None]:
        """A recorder, from when it knows all that exists."""
        recorder = Recorder(self.client, self.database, self.options, clock=self.clock, **options)
        started = anyio.Event()

        async def announce() -> None:
            started.set()

        async def run() -> None:
            await recorder.run(started=announce)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            while not started.is_set():
                await self.clock.advance(0.5)
            yield
            tasks.cancel_scope.cancel()

    async def ask(self, question: Callable[[History], _T]) -> _T:
        """An answer from the history."""
        return await run_sync(question, History(self.database))

    async def until(self, condition: Callable[[History], _T], within: float = 30, step: float = 0.5) -> _T:
        """Move the clock until something is in the history, and return the answer."""
        deadline = self.clock.monotonic() + within
        while True:
            if answer := await self.ask(condition):
                return answer
            assert self.clock.monotonic() < deadline, f"it was {answer!r}"
            await self.clock.advance(step)

    def submit(self, name: str = "demo", *, uid: str = "", **spec: Any) -> Object:
        """A TrainJob with its JobSet."""
        job = self.client.add(train_job(name, uid=uid, **spec))
        self.client.add(jobset(job))
        return job

    def change(self, name: str, *, namespace: str = "default", **status: Any) -> None:
        """Change the status of a TrainJob."""
        job = self.client.find(TRAIN_JOBS, name, namespace)
        assert job is not None
        self.client.add(job | {"status": (job.get("status") or {}) | status})

    def end(self, name: str, kind: str = "Complete", **status: Any) -> None:
        """End a TrainJob."""
        condition = {"type": kind, "status": "True", "reason": "Ended", "message": "it is over\nlast line"}
        condition["lastTransitionTime"] = "2026-01-01T00:10:00Z"
        self.change(name, conditions=[condition], state=kind, **status)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def cluster(clock: ManualClock, database: FailingDatabase) -> Cluster:
    """A cluster with a runtime."""
    return recorded_cluster(clock, database)


def recorded_cluster(clock: ManualClock, database: FailingDatabase, *kinds: Resource) -> Cluster:
    """A cluster with a runtime, which serves some more kinds."""
    client = FakeClient(clock=clock, resources=[*RESOURCES, *kinds])
    client.add({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", "uid": "cluster-uid"}})
    runtime = {"apiVersion": CLUSTER_TRAINING_RUNTIMES.api_version, "kind": CLUSTER_TRAINING_RUNTIMES.kind}
    client.add(runtime | {"metadata": {"name": "plain", "uid": "r", "generation": 3}, "spec": {"a": 1}})
    return Cluster(client, clock, database)


def train_job(name: str, *, uid: str = "", namespace: str = "default", **spec: Any) -> Object:
    """A TrainJob as a server returns it."""
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": uid or f"uid-of-{name}",
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    return {
        "apiVersion": TRAIN_JOBS.api_version,
        "kind": TRAIN_JOBS.kind,
        "metadata": metadata,
        "spec": {"runtimeRef": {"name": "plain"}} | spec,
    }


def owned(job: Object, resource: Resource, name: str, **parts: Any) -> Object:
    """An object that a TrainJob controls."""
    metadata = {"name": name, "namespace": job["metadata"]["namespace"], "uid": f"uid-of-{name}"}
    metadata["ownerReferences"] = [owner_of(job)]
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata} | parts


def owner_of(job: Object) -> Object:
    """The reference to a TrainJob that controls something."""
    names = {"name": job["metadata"]["name"], "uid": job["metadata"]["uid"]}
    return {"apiVersion": job["apiVersion"], "kind": job["kind"], "controller": True} | names


def gang(job: Object) -> tuple[Object, list[Object]]:
    """A JobSet whose pods are in gangs of each scheduler and mount ConfigMaps, and what else the TrainJob controls."""
    name = job["metadata"]["name"]
    volumes = [
        {"name": "hosts", "configMap": {"name": f"{name}-mpi-hostfile"}},
        {"name": "both", "projected": {"sources": [{"configMap": {"name": "of-the-tenant"}}]}},
        {"name": "key", "secret": {"secretName": f"{name}-key"}},
    ]
    spec = {"containers": [{"name": "node", "image": "example.com/train:1"}], "volumes": volumes}
    gangs: dict[str, Object] = {
        "node": {"metadata": {"labels": {coscheduling.POD_GROUP_LABEL: name}}, "spec": spec},
        "of-volcano": {"metadata": {"annotations": {volcano.GROUP_NAME_ANNOTATION: name}}, "spec": spec},
        "of-kubernetes": {"spec": spec | {"schedulingGroup": {"podGroupName": f"{name}-trainer-0123456789"}}},
    }
    replicated = [{"name": each, "template": {"spec": {"template": template}}} for each, template in gangs.items()]
    return jobset(job, replicatedJobs=replicated), [
        owned(job, CONFIG_MAPS, f"{name}-mpi-hostfile", data={"hostfile": "node-0 slots=1", "password": "hunter2"}),
        owned(job, coscheduling.POD_GROUPS, name, spec={"minMember": 2}),
        owned(job, HORIZONTAL_POD_AUTOSCALERS, name, spec={"maxReplicas": 3}),
    ]


def jobset(job: Object, **spec: Any) -> Object:
    """The JobSet of a TrainJob."""
    metadata = job["metadata"]
    owner = owner_of(job)
    containers = [{"name": "node", "image": "example.com/train:1"}]
    replicated = {"name": "node", "template": {"spec": {"template": {"spec": {"containers": containers}}}}}
    return {
        "apiVersion": JOBSETS.api_version,
        "kind": JOBSETS.kind,
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "uid": f"jobset-of-{metadata['uid']}",
            "generation": 1,
            "ownerReferences": [owner],
        },
        "spec": {"replicatedJobs": [replicated]} | spec,
    }


def node_pod(job: Object, index: int = 0, *, suffix: str = "abcde", ended: bool = False, **more: Any) -> Object:
    """A pod of a training, whose container runs or has ended."""
    metadata = job["metadata"]
    name = metadata["name"]
    at = "2026-01-01T00:00:00Z"
    state = (
        {"terminated": {"exitCode": 0, "startedAt": at, "finishedAt": at}} if ended else {"running": {"startedAt": at}}
    )
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{name}-node-0-{index}-{suffix}",
            "namespace": metadata["namespace"],
            "uid": f"uid-of-{name}-{index}-{suffix}",
            "creationTimestamp": at,
            "labels": {
                JOBSET_NAME: name,
                JOBSET_UID: f"jobset-of-{metadata['uid']}",
                REPLICATED_JOB: "node",
                JOB_INDEX: "0",
                COMPLETION_INDEX: str(index),
            },
            "ownerReferences": [{"kind": "Job", "name": f"{name}-node-0", "uid": "j", "controller": True}],
        }
        | more,
        "spec": {"restartPolicy": "Never", "containers": [{"name": "node"}]},
        "status": {
            "phase": "Succeeded" if ended else "Running",
            "containerStatuses": [{"name": "node", "restartCount": 0, "state": state}],
        },
    }
