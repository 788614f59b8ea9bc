"""The pods/log endpoint."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest

from trainer.kube.errors import ApiError
from trainer.kube.objects import Object, ObjectKey
from trainer.kube.resource import PODS
from trainer_devcluster.apiserver.backend import Backend
from trainer_devcluster.apiserver.container_logs import POLL_INTERVAL
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceRegistry
from trainer_devcluster.apiserver.reads.pod_logs import (
    ContainerRunLog,
    choose_attempt,
    choose_container,
    log_parameters,
)
from trainer_devcluster.apiserver.storage.storage import Partition, Storage
from trainer_devcluster.log_paths import log_path
from trainer_kube_testing.clock import ManualClock

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEY = ObjectKey("ns", "p")
RUNNING: Object = {"running": {}}
ENDED: Object = {"terminated": {"exitCode": 0}}
WAITING: Object = {"waiting": {"reason": "ContainerCreating"}}


def pod(*names: str, init: tuple[str, ...] = (), **status: Any) -> Object:
    """A pod with these containers; `status` is that of container c."""
    spec: Object = {"containers": [{"name": name} for name in names]}
    if init:
        spec["initContainers"] = [{"name": name} for name in init]
    statuses = [{"name": "c", **status}] if status else []
    metadata = {"name": "p", "namespace": "ns", "uid": "u"}
    return {"metadata": metadata, "spec": spec, "status": {"containerStatuses": statuses}}


@pytest.mark.parametrize(
    ("subject", "name", "expected"),
    [
        pytest.param(pod("c", "d"), "d", "d", id="named"),
        pytest.param(
            pod("c", "d"), "", "a container name must be specified for pod p, choose one of: [c d]", id="ambiguous"
        ),
        pytest.param(pod("c"), "x", "container x is not valid for pod p", id="unknown"),
    ],
)
def test_choice_of_the_container(subject: Object, name: str, expected: str) -> None:
    """One container has to be meant."""
    if len(expected) == 1:
        assert choose_container(subject, name) == expected
        return
    with pytest.raises(ApiError) as caught:
        choose_container(subject, name)
    assert (caught.value.code, caught.value.message) == (400, expected)


@pytest.mark.parametrize(
    ("subject", "previous", "expected"),
    [
        pytest.param(pod("c", restartCount=2, state=RUNNING, lastState=ENDED), True, 1, id="the run before"),
        pytest.param(
            pod("c", restartCount=0, state=WAITING),
            False,
            'container "c" in pod "p" is waiting to start: ContainerCreating',
            id="not started",
        ),
        pytest.param(pod("c"), False, 'container "c" in pod "p" is waiting to start - no logs yet', id="no status"),
        pytest.param(
            pod("c", restartCount=0, state=RUNNING),
            True,
            'previous terminated container "c" in pod "p" not found',
            id="no run before",
        ),
    ],
)
def test_choice_of_the_run(subject: Object, previous: bool, expected: int | str) -> None:
    """The present or last run is meant, or the one before it."""
    if isinstance(expected, int):
        assert choose_attempt(subject, "c", previous=previous) == expected
        return
    with pytest.raises(ApiError) as caught:
        choose_attempt(subject, "c", previous=previous)
    assert (caught.value.code, caught.value.message) == (400, expected)


@pytest.mark.parametrize(
    ("query", "code"),
    [
        pytest.param({"tailLines": "-1"}, 422, id="fewer lines than none"),
        pytest.param({"sinceSeconds": "-1"}, 422, id="from the future"),
        pytest.param({"sinceTime": "yesterday"}, 400, id="no time"),
        pytest.param({"limitBytes": "0"}, 422, id="no bytes"),
        pytest.param({"stream": "Stderr"}, 422, id="one of two streams"),
        pytest.param({"sinceSeconds": "1", "sinceTime": "2026-01-01T00:00:00Z"}, 422, id="two beginnings"),
    ],
)
def test_refused_parameters(query: dict[str, str], code: int) -> None:
    """Parameters that cannot be meant are refused."""
    with pytest.raises(ApiError) as caught:
        log_parameters(query, NOW)
    assert caught.value.code == code


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def backend(tmp_path: Path, clock: ManualClock) -> Backend:
    return Backend(Storage(), ResourceRegistry(), clock, tmp_path, "")


def store(backend: Backend, obj: Object) -> Object:
    partition = Partition.of(PODS)
    current = backend.storage.get(partition, KEY)
    if current is None:
        return backend.storage.create(partition, KEY, obj)
    return backend.storage.update(partition, KEY, obj, expected=current["metadata"]["resourceVersion"])


def append(backend: Backend, line: str, attempt: int = 0) -> None:
    path = log_path(backend.data_dir, "u", "c", attempt)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(f"2026-01-01T00:00:00Z stdout F {line}\n")


async def read(backend: Backend, query: dict[str, str]) -> str:
    stored = backend.storage.get(Partition.of(PODS), KEY)
    assert stored is not None
    source = ContainerRunLog(backend, stored, log_parameters(query, NOW))
    async with aclosing(source.chunks()) as chunks:
        return b"".join([chunk async for chunk in chunks]).decode()


async def test_limit_counts_bytes(backend: Backend) -> None:
    """The log is cut where the limit says."""
    append(backend, "0123456789")
    store(backend, pod("c", restartCount=0, state=RUNNING))
    assert await read(backend, {"limitBytes": "4"}) == "0123"


@asynccontextmanager
async def followed(backend: Backend, clock: ManualClock, query: dict[str, str]) -> AsyncIterator[Following]:
    """The log of the stored pod, with the server's part at work."""
    stored = backend.storage.get(Partition.of(PODS), KEY)
    assert stored is not None
    source = ContainerRunLog(backend, stored, log_parameters(query | {"follow": "1"}, NOW))
    async with anyio.create_task_group() as tasks, aclosing(source.chunks()) as chunks:
        tasks.start_soon(backend.log_growth.run, clock)
        with anyio.fail_after(10):
            yield Following(chunks, clock)
        tasks.cancel_scope.cancel()


@dataclass
class Following:
    """Somebody who follows a log, while time passes."""

    chunks: AsyncGenerator[bytes, None]
    clock: ManualClock

    async def next(self) -> bytes | None:
        """The next piece; None at the end."""
        pieces: list[bytes | None] = []

        async def read() -> None:
            pieces.append(await anext(self.chunks, None))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            while not pieces:
                await anyio.sleep(0.001)  # a thread reads the file
                await self.clock.advance(POLL_INTERVAL)
        return pieces[0]


async def test_following_before_the_first_line(backend: Backend, clock: ManualClock) -> None:
    """A container that has written nothing yet has no file, and is heard as soon as it has one."""
    store(backend, pod("c", restartCount=0, state=RUNNING))
    async with followed(backend, clock, {}) as log, anyio.create_task_group() as tasks:

        async def append_later() -> None:
            await clock.wait_for_sleepers()
            append(backend, "first")

        tasks.start_soon(append_later)
        assert await log.next() == b"first\n"


async def test_many_followers(backend: Backend, clock: ManualClock) -> None:
    """Those whose log has not grown are left alone, and one who leaves does not disturb the others."""
    append(backend, "first")
    store(backend, pod("c", restartCount=0, state=RUNNING))
    async with followed(backend, clock, {}) as staying, followed(backend, clock, {}) as leaving:
        assert await leaving.next() == b"first\n"
        with anyio.move_on_after(0.02):
            await leaving.next()
        assert await staying.next() == b"first\n"
        append(backend, "second")
        assert await staying.next() == b"second\n"


async def test_following_a_flood(backend: Backend, clock: ManualClock) -> None:
    """What is written faster than it is looked at is read on without waiting for the next look."""
    append(backend, "first")
    store(backend, pod("c", restartCount=0, state=RUNNING))
    async with followed(backend, clock, {}) as log:
        assert await log.next() == b"first\n"
        line = "x" * 999
        append(backend, "\n".join([line] + [f"2026-01-01T00:00:00Z stdout F {line}"] * 1999))
        received = await log.next()
        looked = clock.monotonic()
        while received is not None and received.count(b"\n") < 2000:
            received += await anext(log.chunks)
        assert received == f"{line}\n".encode() * 2000
        assert clock.monotonic() == looked
