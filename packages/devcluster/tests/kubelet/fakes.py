"""Stand-ins for the API server's side of a pod worker."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

import anyio
import anyio.lowlevel

from trainer.kube.backoff import Backoff
from trainer.kube.clock import Clock, SystemClock
from trainer.kube.events.recorder import EventRecorder, Occurrence
from trainer.kube.objects import Object, name_of, uid_of
from trainer.kube.resource import Resource
from trainer_devcluster.kubelet.environment import ConfigReader
from trainer_devcluster.kubelet.errors import PodGoneError
from trainer_devcluster.kubelet.network.pod_network import PodAddressing
from trainer_devcluster.kubelet.options import KubeletOptions
from trainer_devcluster.kubelet.pod_api import PodApi, PodHost
from trainer_devcluster.kubelet.pod_names import HostsFiles
from trainer_devcluster.kubelet.pod_worker import PodWorker
from trainer_devcluster.kubelet.service_account_tokens import PodToken, TokenSource


class OpenRunner(Protocol):
    """Fixture that opens a pod network."""

    def __call__(self, mode: str, clock: Clock | None = None) -> AbstractAsyncContextManager[PodRunner]:
        """Run pods in this mode as long as the context lasts."""


LIMIT = 30.0
"""Seconds after which a wait counts as failed; nothing here takes more than a second or two."""

NO_PAUSE = Backoff(initial=0.01, maximum=0.01)


def make_pod(name: str, *containers: Object, namespace: str = "default", **spec: Any) -> Object:
    """A pod that is bound to the node; keyword arguments become fields of its spec."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{namespace}-{name}"},
        "spec": {"nodeName": "laptop", "restartPolicy": "Never", "containers": list(containers)} | spec,
    }


def shell(script: str, name: str = "main", **fields: Any) -> Object:
    """A container that runs a shell script."""
    return {"name": name, "image": "example", "command": ["sh", "-c", script], **fields}


def mounting(**paths: str) -> list[Object]:
    """volumeMounts: a path for each volume."""
    return [{"name": name, "mountPath": path} for name, path in paths.items()]


class FakePodApi(PodApi):
    """Remembers what was written about pods, events included."""

    def __init__(self) -> None:
        self.statuses: dict[str, list[Object]] = {}
        self.events: list[tuple[str, str, str]] = []
        self.deleted: list[str] = []
        self.failures: list[Exception] = []
        self._changed = anyio.Event()

    async def write_status(self, pod: Object, status: Object) -> None:
        """See `PodApi.write_status`."""
        await anyio.lowlevel.checkpoint()
        if self.failures:
            raise self.failures.pop(0)
        if uid_of(pod) in self.deleted:
            raise PodGoneError("gone")
        self.statuses.setdefault(name_of(pod), []).append(status)
        self._notify()

    async def finish_deletion(self, pod: Object) -> None:
        """See `PodApi.finish_deletion`."""
        await anyio.lowlevel.checkpoint()
        self.deleted.append(uid_of(pod))
        self._notify()

    def submit(self, occurrence: Occurrence) -> None:
        """See `EventSink.submit`."""
        self.events.append((occurrence.type, occurrence.reason, occurrence.message))
        self._notify()

    def status(self, name: str) -> Object:
        """The last status of a pod; empty before the first."""
        return (self.statuses.get(name) or [{}])[-1]

    def reasons(self) -> list[str]:
        """Reasons of all events so far."""
        return [reason for _, reason, _ in self.events]

    async def wait_until(self, holds: Callable[[], bool]) -> None:
        """Wait until something written makes this true."""
        with anyio.fail_after(LIMIT):
            while not holds():
                await self._changed.wait()

    async def wait_for_phase(self, name: str, phase: str) -> Object:
        """Wait until a pod is in this phase, and return its status."""
        await self.wait_until(lambda: self.status(name).get("phase") == phase)
        return self.status(name)

    def _notify(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


class FakeConfigReader(ConfigReader):
    """ConfigMaps, Secrets and claims by kind and name, in any namespace."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], Object] = {}

    def add(self, kind: str, name: str, **fields: Any) -> None:
        """Let an object exist."""
        self.objects[kind, name] = {"kind": kind, "metadata": {"name": name}, **fields}

    async def read(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """See `ConfigReader.read`."""
        await anyio.lowlevel.checkpoint()
        return self.objects.get((resource.kind, name))


class FakeTokenSource(TokenSource):
    """Issues tokens that are numbers, and expire after the time that was asked for."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.requests: list[tuple[str, str, int]] = []
        self.failures: list[Exception] = []

    async def request(self, pod: Object, audience: str, seconds: int) -> PodToken:
        """See `TokenSource.request`."""
        await anyio.lowlevel.checkpoint()
        if self.failures:
            raise self.failures.pop(0)
        self.requests.append((name_of(pod), audience, seconds))
        return PodToken(f"token-{len(self.requests)}", self.clock.now() + timedelta(seconds=seconds))


class PodRunner:
    """Runs pods on a network without an API server."""

    def __init__(self, network: PodAddressing, data_dir: Path, clock: Clock | None = None) -> None:
        self.api = FakePodApi()
        self.reader = FakeConfigReader()
        self.data_dir = data_dir
        options = KubeletOptions(data_dir, restart_backoff=NO_PAUSE, retry_backoff=NO_PAUSE)
        self.host = PodHost(
            options=options,
            api=self.api,
            recorder=EventRecorder(self.api, "kubelet"),
            reader=self.reader,
            tokens=FakeTokenSource(clock or SystemClock()),
            api_server=None,
            network=network,
            hosts_files=HostsFiles(network.hosts_preamble),
            clock=clock or SystemClock(),
            allocatable={"cpu": "2", "memory": "4096Mi"},
        )

    @asynccontextmanager
    async def run(self, *pods: Object) -> AsyncIterator[list[PodWorker]]:
        """Run pods until the context ends, as a kubelet does until it is stopped."""
        workers = [PodWorker(pod, self.host) for pod in pods]
        async with anyio.create_task_group() as tasks:
            for worker in workers:
                tasks.start_soon(worker.run)
            yield workers
            tasks.cancel_scope.cancel()

    async def run_to_end(self, pod: Object) -> Object:
        """Run a pod until it has finished; its last status."""
        async with self.run(pod):
            await self.api.wait_until(lambda: self.api.status(name_of(pod)).get("phase") in {"Succeeded", "Failed"})
        return self.api.status(name_of(pod))

    def log(self, pod: Object, container: str = "main", restart_count: int = 0) -> str:
        """What a container has printed."""
        path = self.data_dir / "pods" / uid_of(pod) / container / f"{restart_count}.log"
        lines = path.read_text().splitlines()
        return "".join(
            text + ("\n" if tag == "F" else "") for _, _, tag, text in (line.split(" ", 3) for line in lines)
        )


def processes_with(marker: str) -> list[str]:
    """PIDs of processes with this text in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and marker.encode() in (entry / "cmdline").read_bytes():
                found.append(entry.name)
        except OSError:
            continue
    return found


async def eventually(holds: Callable[[], bool]) -> None:
    """Poll until something outside this process has made this true."""
    with anyio.fail_after(LIMIT):
        while not holds():  # noqa: ASYNC110 - no event tells of it
            await anyio.sleep(0.02)


async def wait_for_log(runner: PodRunner, pod: Object, text: str) -> None:
    """Wait until a container has printed this."""

    def printed() -> bool:
        try:
            return text in runner.log(pod)
        except FileNotFoundError:
            return False

    await eventually(printed)


def terminated(status: Object, kind: str = "containerStatuses") -> Object:
    """The terminated state of the first container."""
    state: Object = status[kind][0]["state"]["terminated"]
    return state
