"""The dashboard of a cluster as a process: its page with TLS, its probes, and an end when the CRDs change."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

import anyio
from anyio.abc import TaskGroup

from trainer.api.optimization import OPTIMIZATION_JOBS
from trainer.kube.client import Client, RawClient
from trainer.kube.clock import Clock, SystemClock
from trainer.kube.errors import KubeError
from trainer.kube.manager.health import HealthChecks
from trainer.kube.manager.health_server import HealthServer
from trainer.kube.serving.certificates import FileCertificates, SelfSignedCertificates
from trainer.kube.serving.tls import ServingTls
from trainer.v1alpha1.discovery import find_served, watch_served
from trainer_dashboard.access.cluster_authenticator import ClusterAuthenticator, Proxy, UserClients
from trainer_dashboard.history.database import Database
from trainer_dashboard.past.past_trainings import PastTrainings
from trainer_dashboard.past.recording import Recording
from trainer_dashboard.server import Dashboard, DashboardOptions


class ClusterClient(Client, RawClient, UserClients, Protocol):
    """A client of the server's own account, which makes clients for its users."""

    namespace: str
    """That of the account."""
    server: str
    """The address of the API server."""


@dataclass(frozen=True, slots=True)
class ClusterServerOptions:
    """What is shown, where, and who may see it."""

    host: str = ""
    """Address to listen on. Default: all of them, since users come from elsewhere."""
    port: int = 8443
    """Of the page; 0 takes a free one. Default: 8443."""
    health_port: int = 8081
    """Of /healthz and /readyz, in plain HTTP; 0 takes a free one. Default: 8081."""
    namespace: str = ""
    """Only TrainJobs of this namespace. Default: of all, or of that of the account where it may not list all."""
    cluster: str = ""
    """What the page calls the cluster. Default: nothing."""
    is_secure: bool = True
    """Whether it is HTTPS. Default: yes; without it everybody on the way can read the tokens."""
    tls_directory: Path | None = None
    """Where tls.crt and tls.key are. Default: none, certificates are made in memory."""
    client_ca: Path | None = None
    """Authorities of the client certificate that all connections must show. Default: none is asked for."""
    proxy: Proxy | None = None
    """Whose headers say who asks. Default: nobody's."""


class ClusterServer:
    """Serves the dashboard and its probes while `run` does.

    Args:
        client: of the server's own account.
        options: what is shown, where, and who may see it.
        clock: for pauses and limits of time.
        database: of the history. Default: none, so that trainings that are gone are not shown.
        records: whether the history is recorded here. Default: it is not.
    """

    def __init__(
        self,
        client: ClusterClient,
        options: ClusterServerOptions,
        *,
        clock: Clock | None = None,
        database: Database | None = None,
        records: bool = False,
    ) -> None:
        self._database = database
        self._records = records
        self._client = client
        self._options = options
        self._clock = clock or SystemClock()
        self._dashboard: Dashboard | None = None
        self._live, self._ready = (HealthChecks(name, clock=self._clock) for name in ("healthz", "readyz"))
        self._ready.add("dashboard", self._check)
        checks = (self._live, self._ready)
        self._health = HealthServer(options.host, options.health_port, checks=checks, clock=self._clock)

    @property
    def address(self) -> str:
        """Where the page is; known when it has started."""
        assert self._dashboard is not None
        return self._dashboard.address

    @property
    def health_address(self) -> tuple[str, int]:
        """Where the probes are; known when it has started."""
        return self._health.address

    async def run(self, *, started: Callable[[], Awaitable[None]]) -> None:
        """Serve until cancelled; `started` is called when it listens.

        Raises:
            ConfigurationError: an address is in use or not ours, or there was no certificate in time.
            KubeError: the API server does not answer at the start.
            ServedVersionChangedError: the CRDs have changed; a new process works with them.
        """
        served = await find_served(self._client)
        tls = ServingTls(self._options.client_ca) if self._options.is_secure else None
        options = DashboardOptions(
            self._options.namespace,
            self._client.namespace,
            self._options.cluster,
            host=self._options.host,
            port=self._options.port,
            tls=tls.context if tls is not None else None,
        )
        authenticator = ClusterAuthenticator(
            self._client, self._client, served, clock=self._clock, proxy=self._options.proxy
        )
        client = served.client(self._client)
        past = recording = None
        if self._database is not None:
            past = PastTrainings(self._database, client, self._client.server)
            if self._records:
                sweeps = served.resource(OPTIMIZATION_JOBS)
                recording = Recording(client, self._database, self._client.server, self._clock, sweeps)
        dashboard = Dashboard(
            client,
            served,
            options,
            authenticator=authenticator,
            clock=self._clock,
            past=past,
            recording=recording,
        )
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._health.run)
            tasks.start_soon(watch_served, self._client, served, self._clock)
            if tls is not None:
                await self._show_certificate(tls, tasks)
            self._dashboard = dashboard
            tasks.start_soon(partial(dashboard.run, started=started))

    async def _show_certificate(self, tls: ServingTls, tasks: TaskGroup) -> None:
        directory = self._options.tls_directory
        certificates = (
            FileCertificates(directory, clock=self._clock)
            if directory is not None
            else SelfSignedCertificates(clock=self._clock)
        )
        tasks.start_soon(certificates.run, tls.install)
        tasks.start_soon(tls.follow_client_ca, self._clock)
        await tls.require_certificate(certificates, self._clock, what="certificate for the dashboard")

    async def _check(self) -> None:
        if self._dashboard is None:
            raise KubeError("the dashboard has no certificate yet")
        await self._dashboard.check()
