"""Manager: owns everything that runs (informers, controllers, other tasks) and stops all of it when one fails."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import anyio
import structlog

from trainer.kube.client import EVERYTHING, Client, Selection
from trainer.kube.clock import Clock, SystemClock, move_on_after
from trainer.kube.errors import CacheSyncError, KubeError, NotFoundError
from trainer.kube.health import HealthServer
from trainer.kube.informer import Informer
from trainer.kube.metrics import Metrics

if TYPE_CHECKING:
    from trainer.kube.controller import Controller
    from trainer.kube.resource import Resource

log = structlog.get_logger(__name__)

Runnable: TypeAlias = Callable[[], Awaitable[None]]
"""Runs until cancelled; returning early is fine, raising stops the manager."""


@dataclass(frozen=True, slots=True)
class ManagerOptions:
    """How a manager runs."""

    cache_sync_timeout: float = 120.0
    """Seconds until all informers must have their first list, else `run` raises `CacheSyncError`. Default: 120."""
    http_bind: tuple[str, int] | None = None
    """Host and port for /healthz, /readyz and /metrics. Default: None, no server."""


class Manager:
    """Runs controllers on shared informers; build it, register everything, then `run` it once."""

    def __init__(self, client: Client, *, clock: Clock | None = None, options: ManagerOptions | None = None) -> None:
        self.client = client
        self.clock = clock or SystemClock()
        self.metrics = Metrics()
        self._options = options or ManagerOptions()
        self._informers: dict[tuple[Resource, Selection], Informer] = {}
        self._controllers: dict[str, Controller] = {}
        self._runnables: list[tuple[str, Runnable]] = []
        self._tasks: anyio.abc.TaskGroup | None = None
        self._failure: Exception | None = None
        self._started = anyio.Event()

    def informer(self, resource: Resource, selection: Selection = EVERYTHING) -> Informer:
        """The informer of this selection: same arguments, same informer; starts at once when the manager runs."""
        informer = self._informers.get((resource, selection))
        if informer is None:
            informer = Informer(self.client, resource, selection, clock=self.clock)
            self._informers[resource, selection] = informer
            self._start(f"informer {resource.qualified_name}", informer.run)
        return informer

    def register(self, controller: Controller) -> None:
        """Run this controller; `Controller` calls it.

        Raises:
            ValueError: another controller has the name.
            RuntimeError: the manager runs already.
        """
        if controller.name in self._controllers:
            raise ValueError(f"there are two controllers named {controller.name!r}")
        if self._tasks is not None:
            raise RuntimeError(f"controller {controller.name!r} must be constructed before the manager runs")
        self._controllers[controller.name] = controller

    def add(self, runnable: Runnable, *, name: str) -> None:
        """Run a task next to the controllers, once the informers have synced."""
        self._runnables.append((name, runnable))
        if self._started.is_set():
            self._start(name, runnable)

    @property
    def is_ready(self) -> bool:
        """Whether the informers have synced and the controllers run."""
        return self._started.is_set()

    async def wait_for_start(self) -> None:
        """Wait until `is_ready`."""
        await self._started.wait()

    async def run(self) -> None:
        """Start informers, wait for their first lists, start controllers and runnables; run until cancelled.

        Raises:
            CacheSyncError: an informer did not sync in time.
            Exception: the first failure of a controller or runnable, after all the others have been stopped.
        """
        if self._tasks is not None:
            raise RuntimeError("a manager runs once")
        async with anyio.create_task_group() as self._tasks:
            if self._options.http_bind is not None:
                self._start("health server", HealthServer(self, *self._options.http_bind).run)
            for (resource, _), informer in tuple(self._informers.items()):
                self._start(f"informer {resource.qualified_name}", informer.run)
            self._start("manager", self._start_workers)
        if self._failure is not None:
            raise self._failure

    async def _start_workers(self) -> None:
        await self._wait_for_caches()
        for controller in self._controllers.values():
            self._start(f"controller {controller.name}", controller.run)
        for name, runnable in self._runnables:
            self._start(name, runnable)
        self._started.set()
        log.info("started manager", controllers=list(self._controllers), informers=len(self._informers))

    async def _wait_for_caches(self) -> None:
        informers = tuple(self._informers.values())
        async with move_on_after(self.clock, self._options.cache_sync_timeout):
            for informer in informers:
                await informer.wait_for_sync()
        late = [informer for informer in informers if not informer.has_synced]
        if late:
            raise CacheSyncError("; ".join(map(_sync_problem, late)))

    def _start(self, name: str, runnable: Runnable) -> None:
        if self._tasks is not None:
            self._tasks.start_soon(self._guard, name, runnable, name=name)

    async def _guard(self, name: str, runnable: Runnable) -> None:
        assert self._tasks is not None
        try:
            await runnable()
        except Exception as group:
            error = _sole_failure(group)
            if self._failure is not None:
                log.exception("failed while stopping", runnable=name)
                return
            log.error("failed, stopping everything", runnable=name, error=str(error))  # noqa: TRY400 - raised by run()
            self._failure = error
            self._tasks.cancel_scope.cancel()


def _sole_failure(error: Exception) -> Exception:
    """What task groups have wrapped, if it is a single exception."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        [error] = error.exceptions
    return error


def _sync_problem(informer: Informer) -> str:
    error, name = informer.last_error, informer.resource.qualified_name
    if isinstance(error, NotFoundError):
        return f"{name} is not served by the API server: install the {informer.resource.kind} CRD"
    if isinstance(error, KubeError):
        return f"{name} could not be listed: {error}"
    return f"{name} was not listed in time"
