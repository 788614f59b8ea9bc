"""Manager: owns everything that runs in a controller process, starts and stops it in order, and ends it when one fails.

There is no warm-up group as in controller-runtime: the caches of a process that waits for leadership are synced, which
is what takes long, and its controllers read all there is from them when they start.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import anyio

from trainer.kube.cache.cache import Cache
from trainer.kube.cache.informer import Informer
from trainer.kube.cache.transform import Transform
from trainer.kube.client import Client
from trainer.kube.clock import Clock, SystemClock, move_on_after
from trainer.kube.election.leader_election import LeaderElectionOptions, LeaderElector
from trainer.kube.errors import CacheSyncError, KubeError
from trainer.kube.events.sender import EventSender
from trainer.kube.logger import get_logger
from trainer.kube.manager.health import Check, HealthChecks
from trainer.kube.manager.health_server import HealthServer
from trainer.kube.manager.loop_lag import LoopLagWatch
from trainer.kube.manager.managed_client import ManagedClient
from trainer.kube.manager.runnable_group import Run, Runnable
from trainer.kube.manager.supervisor import Group, Supervisor
from trainer.kube.metrics import Metrics
from trainer.kube.resource import Resource
from trainer.kube.selection import EVERYTHING, Selection
from trainer.kube.serving.http_server import Answer

__all__ = ["Group", "Manager", "ManagerOptions"]

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ManagerOptions:
    """How a manager runs."""

    cache_sync_timeout: float = 120.0
    """Seconds until all informers must have their first list, else `run` raises `CacheSyncError`. Default: 120."""
    graceful_shutdown_timeout: float | None = 30.0
    """Seconds that everything has to end when the manager stops; None or less than 0: forever, 0: no time.

    Default: 30, as in controller-runtime. The container needs a longer terminationGracePeriodSeconds: releasing the
    lease and writing the last events comes after it."""
    health_bind: tuple[str, int] | None = None
    """Host ("" is all addresses) and port for /healthz and /readyz, which are for everybody. Default: None, no server.
    Metrics have one of their own, `trainer.kube.manager.metrics_server`."""
    leader_election: LeaderElectionOptions | None = None
    """The lease without which nothing is written. Default: None, this process is the only one."""
    transforms: Mapping[Resource, Transform] = field(default_factory=dict)
    """Changes to the objects of a resource before they are cached, to drop unread fields. Default: none."""
    namespace_limits: Mapping[Resource, int] = field(default_factory=dict)
    """How many objects of a resource are cached in each namespace, of each selection. Default: all."""


class Registrable(Protocol):
    """The methods of a controller that a manager calls."""

    name: str

    async def run(self) -> None:
        """Work until stopped or cancelled."""

    def stop(self) -> None:
        """Begin no new work, and return from `run` once the present work is done."""


class Manager:
    """Runs controllers on shared informers; build it, register everything, then `run` it once.

    Attributes:
        client: for controllers: writes only while this process is the leader, and the cache shows what it wrote.
        api_reader: the client that the manager was given; for reads past the cache, and writes without leadership.
        cache: all informers.
        events: takes the events of `EventRecorder`s, and writes them also when this process does not lead.
        metrics: what a `MetricsServer` shows as /metrics.
        handlers: what it shows besides, by path; see `serve`.
        clock: the time of everything that the manager runs.
    """

    def __init__(
        self,
        client: Client,
        *,
        clock: Clock | None = None,
        options: ManagerOptions | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self.clock: Clock = clock or SystemClock()
        self.metrics = metrics or Metrics()
        self.api_reader = client
        self._options = options or ManagerOptions()
        self.cache = Cache(
            client,
            clock=self.clock,
            metrics=self.metrics,
            transforms=self._options.transforms,
            namespace_limits=self._options.namespace_limits,
        )
        self.events = EventSender(client, clock=self.clock, metrics=self.metrics)
        self._elector = self._make_elector()
        self.client: Client = ManagedClient(client, self.cache, self._elector)
        self._controllers: list[str] = []
        self._started = anyio.Event()
        self._supervisor = Supervisor(self.clock, self._options.graceful_shutdown_timeout)
        self._live = HealthChecks("healthz", clock=self.clock)
        self._ready = HealthChecks("readyz", clock=self.clock)
        self.handlers: dict[str, Answer] = {}
        self._add_own_parts()

    def informer(self, resource: Resource, selection: Selection = EVERYTHING, *, optional: bool = False) -> Informer:
        """The informer of this selection, see `Cache.informer`; starts at once when the manager runs."""
        return self.cache.informer(resource, selection, optional=optional)

    def register(self, controller: Registrable) -> None:
        """Run this controller; `Controller` calls it. At once, if the controllers run already.

        Raises:
            ValueError: another controller has the name.
            RuntimeError: the manager stops, or has been stopped.
        """
        if controller.name in self._controllers:
            raise ValueError(f"there are two controllers named {controller.name!r}")
        name, group = f"controller {controller.name}", Group.LEADER_ELECTION
        self.add(controller.run, name=name, group=group, stop=controller.stop)
        self._controllers.append(controller.name)

    def add(
        self,
        runnable: Run,
        *,
        name: str,
        group: Group = Group.LEADER_ELECTION,
        stop: Callable[[], None] | None = None,
        started: Run | None = None,
    ) -> None:
        """Run a task with those of its group; at once if they run already.

        Args:
            runnable: called once; it runs until cancelled. If it returns, nothing happens, if it raises, the manager
                stops.
            name: for logs and errors.
            group: decides when it starts and stops. Default: `LEADER_ELECTION`, with the controllers.
            stop: asks it to end by itself; then it is cancelled only after the grace period. Default: its own `stop`,
                if it has one.
            started: returns when it does its work; until then, or until `runnable` has returned, the next group waits.
                Default: nobody waits.

        Raises:
            RuntimeError: the manager stops, or has been stopped.
        """
        stop = stop or getattr(runnable, "stop", None)
        self._supervisor.add(group, Runnable(name, runnable, stop, started))

    def add_health_check(self, name: str, check: Check) -> None:
        """Have /healthz fail, after which the kubelet restarts the container, when this check raises.

        Raises:
            ValueError: the name is taken, or unfit for a path.
        """
        self._live.add(name, check)

    def add_ready_check(self, name: str, check: Check) -> None:
        """Have /readyz fail, so that the pod gets no requests, when this check raises.

        Raises:
            ValueError: the name is taken, or unfit for a path.
        """
        self._ready.add(name, check)

    def serve(self, path: str, handler: Answer) -> None:
        """Have a `MetricsServer` answer GET and HEAD requests for exactly this path; without one, it is not served.

        Whoever the API server lets get the path may ask, and every replica answers, whether it leads or not. A handler
        that raises is answered with 500 and logged, and ends nothing.

        Raises:
            ValueError: the path does not begin with /, or is taken.
        """
        if not path.startswith("/") or path in {"/metrics", *self.handlers}:
            raise ValueError(f"a path begins with / and is not taken, got {path!r}")
        self.handlers[path] = handler

    @property
    def is_ready(self) -> bool:
        """Whether the caches have synced and everything runs that needs no leadership."""
        return self._started.is_set()

    @property
    def is_leader(self) -> bool:
        """Whether this process may write; always, where there is no leader election."""
        return self._elector is None or self._elector.is_leader

    async def wait_for_start(self) -> None:
        """Wait until `is_ready`."""
        await self._started.wait()

    def stop(self) -> None:
        """End `run` in order, as cancelling it does; called again, cancel what still runs."""
        self._supervisor.stop()

    async def run(self) -> None:
        """Start everything group by group and run until cancelled or stopped, then stop it group by group.

        Raises:
            CacheSyncError: an informer did not sync in time.
            LeadershipLostError: the lease is, or could soon be, somebody else's; the process must end.
            ShutdownError: something did not end within the grace period.
            Exception: the first failure of a controller or runnable, after all the others have been stopped.
        """
        await self._supervisor.run(self._start)

    async def _start(self) -> None:
        for group in Group:
            if group is Group.LEASE and self._elector is not None:
                self._announce()
            await self._supervisor.start(group)
        if self._elector is None:
            self._announce()

    def _announce(self) -> None:
        self._started.set()
        log.info("started manager", controllers=self._controllers, informers=len(self.cache.informers))

    def _make_elector(self) -> LeaderElector | None:
        if self._options.leader_election is None:
            return None
        return LeaderElector(
            self.api_reader,
            self._options.leader_election,
            clock=self.clock,
            metrics=self.metrics,
            events=self.events,
        )

    def _add_own_parts(self) -> None:
        self.add(self.events.run, name="events", group=Group.EVENTS, stop=self.events.stop)
        if self._options.health_bind is not None:
            host, port = self._options.health_bind
            checks = self._live, self._ready
            server = HealthServer(host, port, checks=checks, clock=self.clock, metrics=self.metrics)
            self.add(server.run, name="health server", group=Group.HTTP_SERVERS, started=server.wait_for_start)
        watch = LoopLagWatch(self.metrics)
        self.add(watch.run, name="event loop watch", group=Group.HTTP_SERVERS)
        self.add_health_check("event-loop", watch.check)
        if self._elector is not None:
            self.add(self._elector.run, name="lease", group=Group.LEASE, started=self._elector.wait_for_leadership)
            self.add_health_check("leader-election", self._elector.check)
        self.add(self.cache.run, name="cache", group=Group.CACHES, started=self._wait_for_caches)
        self.add_ready_check("manager", self._check_running)
        self.add_ready_check("informers", self._check_informers)

    async def _wait_for_caches(self) -> None:
        async with move_on_after(self.clock, self._options.cache_sync_timeout):
            await self.cache.wait_for_sync()
        if not all(informer.has_synced for informer in self.cache.informers):
            raise CacheSyncError(self.cache.problem)

    async def _check_running(self) -> None:
        if self._supervisor.is_stopping:
            raise KubeError("the manager is stopping")
        if not self.is_ready:
            raise KubeError("the manager has not started yet")

    async def _check_informers(self) -> None:
        if (problem := self.cache.problem) is not None:
            raise KubeError(problem)
