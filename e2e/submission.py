"""Submitting many objects, all at once or on and on while something goes wrong."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import anyio

from e2e.cluster import Cluster
from e2e.waiting import until
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.client import Client
from trainer.kube.errors import AlreadyExistsError, ApiError, KubeError
from trainer.kube.objects import Object, name_of
from trainer.kube.resource import Resource
from trainer.kube.rest.connection import ConnectionOptions, connect

_RETRY = 0.2


@dataclass(slots=True)
class Submitted:
    """Which objects were created so far, and how long that took."""

    accepted: list[str] = field(default_factory=list)
    """Names, in the order of the answers."""
    refused: dict[str, str] = field(default_factory=dict)
    """Answers of the API server, by name."""
    seconds: list[float] = field(default_factory=list)
    """How long each accepted creation took, with its retries."""

    def wait_for_more(self, count: int) -> None:
        """Wait until so many more have been accepted."""
        known = len(self.accepted)
        until(lambda: len(self.accepted) >= known + count, f"{count} more TrainJobs are accepted")

    async def create(self, client: Client, obj: Object, resource: Resource = TRAIN_JOBS) -> None:
        """Create one, again and again while the server is away."""
        began = time.monotonic()
        while True:
            try:
                await client.create(resource, obj)
            except AlreadyExistsError:  # by an attempt whose answer was lost
                break
            except ApiError as error:
                self.refused[name_of(obj)] = str(error)
                return
            except KubeError:
                await anyio.sleep(_RETRY)
            else:
                break
        self.seconds.append(time.monotonic() - began)
        self.accepted.append(name_of(obj))


def submit(cluster: Cluster, objects: Sequence[Object], *, at_once: int = 32) -> Submitted:
    """Create TrainJobs in the namespace, so many at the same time."""
    submitted = Submitted()
    pending = iter([_in(cluster, obj) for obj in objects])

    async def work(client: Client) -> None:
        for obj in pending:
            await submitted.create(client, obj)

    async def run() -> None:
        async with connect(ConnectionOptions(kubeconfig=cluster.kubeconfig)) as client, anyio.create_task_group() as t:
            for _ in range(at_once):
                t.start_soon(work, client)

    anyio.run(run)
    return submitted


@contextmanager
def submitting(
    cluster: Cluster, make: Callable[[int], Object], *, pause: float = 0.1, resource: Resource = TRAIN_JOBS
) -> Iterator[Submitted]:
    """Create one object after the other until the context closes; those under way are waited for.

    Args:
        cluster: where; names the namespace.
        make: the object of this number.
        pause: seconds between two.
        resource: of the objects. Default: TrainJobs.
    """
    submitted, stop = Submitted(), threading.Event()

    async def run() -> None:
        number = 0
        async with connect(ConnectionOptions(kubeconfig=cluster.kubeconfig)) as client:
            while not stop.is_set():
                number += 1
                await submitted.create(client, _in(cluster, make(number)), resource)
                await anyio.sleep(pause)

    thread = threading.Thread(target=anyio.run, args=(run,))
    thread.start()
    try:
        yield submitted
    finally:
        stop.set()
        thread.join()


def _in(cluster: Cluster, obj: Object) -> Object:
    return obj | {"metadata": obj["metadata"] | {"namespace": cluster.namespace}}
