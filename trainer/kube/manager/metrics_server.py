"""Metrics server: /metrics, and what `Manager.serve` adds, for those whom the API server allows to see it.

Every replica serves, whether it leads or not. By default it is HTTPS, callers show a bearer token, and the API server
is asked whose it is and whether they may `get` the path: give them a ClusterRole

    rules:
      - {nonResourceURLs: [/metrics], verbs: [get]}

| a caller | gets |
|---|---|
| without a bearer token, or with a wrong one | 401 |
| who may not | 403, whether there is something at the path or not |
| of whom the API server does not say | 503 |
"""

from __future__ import annotations

from dataclasses import dataclass, field

import anyio
import anyio.to_thread
from aiohttp import web

from trainer.kube.access import BearerGate
from trainer.kube.logger import get_logger
from trainer.kube.manager.manager import Manager
from trainer.kube.manager.supervisor import Group
from trainer.kube.metrics.exposition import Exposition
from trainer.kube.metrics.servers import ExpirySeries
from trainer.kube.serving.certificates import CertificateSource, SelfSignedCertificates
from trainer.kube.serving.http_server import HttpServer, HttpServerOptions
from trainer.kube.serving.tls import ServingTls, TlsOptions

log = get_logger(__name__)

_FINISH = 1.0
"""Seconds that answers under way have when the server stops."""
_AT_ONCE = 4
"""Answers that are made at a time; more would not be made faster."""
_READS = {"GET", "HEAD"}


@dataclass(frozen=True, slots=True)
class MetricsServerOptions:
    """Where metrics are served, and to whom."""

    host: str = ""
    """Address to listen on. Default: "", all addresses of IPv4 and IPv6, since Prometheus comes from elsewhere."""
    port: int = 8443
    """Port; 0 takes a free one, see `MetricsServer.address`. Default: 8443, as in controller-runtime's manifests."""
    secure: bool = True
    """Whether it is HTTPS. Default: True; without it everybody on the way can read the tokens."""
    authorize: bool = True
    """Whether callers must show a token and be allowed to get the path. Default: True; else everybody may who reaches
    the port."""
    tls: TlsOptions = field(default_factory=TlsOptions)
    """What is spoken with clients. Default: those of its class."""


class MetricsServer:
    """Serves the metrics of a manager, and what `Manager.serve` adds; adds itself to the manager.

    Nothing waits for it: a manager works before anybody can see how.

        MetricsServer(manager, MetricsServerOptions(port=8443))

    Args:
        manager: runs it; its clock, metrics, handlers and `api_reader` are used.
        options: see its class.
        certificates: where the certificate comes from; may be that of a webhook server, too. Default: self-signed
            ones, made in memory.
    """

    def __init__(
        self,
        manager: Manager,
        options: MetricsServerOptions | None = None,
        *,
        certificates: CertificateSource | None = None,
    ) -> None:
        self._options = options or MetricsServerOptions()
        self._clock = manager.clock
        self._handlers = manager.handlers
        self._exposition = Exposition(manager.metrics)
        gate = BearerGate(manager.api_reader, clock=manager.clock)
        self._gate = gate if self._options.authorize else None
        self._turns = anyio.CapacityLimiter(_AT_ONCE)
        expires = manager.metrics.series(ExpirySeries).of("metrics")
        self._tls = ServingTls(options=self._options.tls, expires=expires) if self._options.secure else None
        self._certificates = certificates or SelfSignedCertificates(clock=manager.clock)
        context = self._tls.context if self._tls is not None else None
        http = HttpServerOptions(self._options.host, self._options.port, tls=context)
        self._server = HttpServer("metrics", self._answer, http, clock=manager.clock, metrics=manager.metrics)
        manager.add(self.run, name="metrics server", group=Group.HTTP_SERVERS)

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens; known when it has started."""
        return self._server.address

    async def wait_for_start(self) -> None:
        """Wait until it listens."""
        await self._server.started.wait()

    async def run(self) -> None:
        """Serve until cancelled.

        Raises:
            ConfigurationError: there was no certificate in time, or the address is in use or not ours.
        """
        async with anyio.create_task_group() as tasks:
            if self._tls is not None:
                tasks.start_soon(self._certificates.run, self._tls.install)
                await self._tls.require_certificate(self._certificates, self._clock, what="certificate for metrics")
            await self._server.run(anyio.sleep_forever, grace=_FINISH)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if self._gate is not None:
            authorization = request.headers.get("Authorization", "")
            refusal = await self._gate.refusal(authorization, request.method, request.path)
            if refusal is not None:
                headers = {"WWW-Authenticate": refusal.challenge} if refusal.challenge else {}
                return _text(refusal.status, refusal.text, **headers)
        if request.method not in _READS:
            return _text(405, f"there is only something to get here, not to {request.method}", Allow="GET, HEAD")
        async with self._turns:
            if request.path == "/metrics":
                accept = request.headers.get("Accept", "")
                body, content_type = await anyio.to_thread.run_sync(self._exposition.render, accept)
                return web.Response(body=body, headers={"Content-Type": content_type})
            handler = self._handlers.get(request.path)
            return await handler(request) if handler is not None else _text(404, "there is nothing at this path")


def _text(status: int, text: str, **headers: str) -> web.Response:
    return web.Response(status=status, text=f"{text}\n", headers={"X-Content-Type-Options": "nosniff", **headers})
