"""Webhook server: HTTPS endpoints that the API server asks for admission."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import anyio
from aiohttp import web

from trainer.kube.errors import KubeError
from trainer.kube.logger import get_logger
from trainer.kube.manager.manager import Manager
from trainer.kube.manager.supervisor import Group
from trainer.kube.metrics.servers import ExpirySeries, WebhookSeries
from trainer.kube.serving.certificates import CertificateSource
from trainer.kube.serving.connection import ConnectionLimits
from trainer.kube.serving.http_server import HttpServer, HttpServerOptions
from trainer.kube.serving.sparse_log import SparseLog
from trainer.kube.serving.tls import ServingTls, TlsOptions, common_names
from trainer.kube.webhook.admission import AdmissionHandler
from trainer.kube.webhook.body import HttpError, failure
from trainer.kube.webhook.endpoint import AdmissionEndpoint
from trainer.kube.webhook.turns import Turns

log = get_logger(__name__)
_LIMITS = ConnectionLimits(max_connections=500, idle_timeout=120.0)
"""An API server opens a connection for each request under way. It closes unused ones after 90 seconds; one that the
server closes in the moment of its use costs a refusal."""


@dataclass(frozen=True, slots=True)
class WebhookServerOptions:
    """Where a webhook server listens, and to whom."""

    host: str = ""
    """Address to listen on. Default: "", all addresses of IPv4 and IPv6, since the API server comes from elsewhere."""
    port: int = 9443
    """Port; 0 takes a free one, see `WebhookServer.address`. Default: 9443, as in controller-runtime."""
    tls: TlsOptions = field(default_factory=TlsOptions)
    """What is spoken with clients. Default: those of its class."""
    client_ca: Path | None = None
    """File with the authorities, as PEM, one of which must have signed the client's certificate; read again when it
    changes. Default: None, anybody may ask; an API server shows a certificate only if it is configured to (Kubernetes
    documentation, "Authenticate apiservers")."""
    client_names: frozenset[str] = frozenset()
    """Common names, one of which the client's certificate must have; for authorities that sign others as well. Default:
    none, every certificate will do."""

    def __post_init__(self) -> None:
        """Refuse what no server could work with.

        Raises:
            ValueError: names the field.
        """
        if self.client_names and self.client_ca is None:
            raise ValueError("client_names needs client_ca, without which clients show no certificate")


class WebhookServer:
    """Serves webhooks with a manager: before its caches start, whether this process leads or not.

    It adds itself to the manager, with a ready check `webhook` that passes while it listens with a valid certificate.
    When the manager stops, requests under way are answered. TLS is 1.2 or 1.3, HTTP is 1.1.

        server = WebhookServer(manager, certificates=FileCertificates(Path("/certificates")))
        server.register("/validate-example-com-v1-widget", "validate.widget.example.com", validate)

    Args:
        manager: runs it; its clock and metrics are used.
        certificates: where the certificate comes from; runs as long as the server.
        options: see its class.
    """

    def __init__(
        self, manager: Manager, *, certificates: CertificateSource, options: WebhookServerOptions | None = None
    ) -> None:
        self._options = options or WebhookServerOptions()
        self._certificates = certificates
        self._clock = manager.clock
        self._series = manager.metrics.series(WebhookSeries)
        self._endpoints: dict[str, AdmissionEndpoint] = {}
        self._turns = Turns(self._clock)
        expires = manager.metrics.series(ExpirySeries).of("webhooks")
        self._tls = ServingTls(self._options.client_ca, self._options.tls, expires)
        self._refused_clients = SparseLog("refused client certificate", clock=self._clock)
        http = HttpServerOptions(self._options.host, self._options.port, _LIMITS, self._tls.context)
        self._server = HttpServer("webhooks", self._answer, http, clock=manager.clock, metrics=manager.metrics)
        self._preparing = anyio.CancelScope()
        self._stopping = anyio.Event()
        manager.add(self.run, name="webhook server", group=Group.WEBHOOKS, stop=self.stop, started=self.wait_for_start)
        manager.add_ready_check("webhook", self.check)

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens; known when it has started."""
        return self._server.address

    def register(self, path: str, name: str, handler: AdmissionHandler) -> None:
        """Have a handler answer the requests to a path; also while the server runs.

        Args:
            path: as in `clientConfig` of the webhook, without a query; label `webhook` of the metrics.
            name: of the webhook, for messages and the log.
            handler: see `AdmissionHandler`.

        Raises:
            ValueError: the path does not begin with /, or is taken.
        """
        if not path.startswith("/") or "?" in path:
            raise ValueError(f"the path of a webhook begins with / and has no query: {path!r}")
        if path in self._endpoints:
            raise ValueError(f"there are two webhooks at {path!r}")
        self._endpoints[path] = AdmissionEndpoint(
            name, handler, clock=self._clock, turns=self._turns, metrics=self._series.for_webhook(path)
        )

    async def wait_for_start(self) -> None:
        """Wait until it listens."""
        await self._server.started.wait()

    def stop(self) -> None:
        """Take no new connections, and have `run` return when the requests under way are answered."""
        self._stopping.set()
        self._preparing.cancel()

    async def check(self) -> None:
        """Ready check.

        Raises:
            KubeError: it does not listen, or with a certificate that nobody accepts; says why.
        """
        if self._stopping.is_set():
            raise KubeError("the webhook server is stopping")
        if not self._server.started.is_set():
            raise KubeError(f"the webhook server has not started yet: {self._certificates.problem or 'it is about to'}")
        expiry = self._tls.expiry
        if expiry is not None and expiry <= self._clock.now():
            reason = self._certificates.problem or "there is no newer one"
            raise KubeError(f"the serving certificate has expired on {expiry.isoformat()}: {reason}")

    async def run(self) -> None:
        """Serve until stopped or cancelled; call it once.

        Raises:
            ConfigurationError: there was no certificate in time, or the address is in use or not ours.
        """
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._certificates.run, self._tls.install)
            tasks.start_soon(self._tls.follow_client_ca, self._clock)
            with self._preparing:
                await self._tls.require_certificate(self._certificates, self._clock, what="serving certificate")
            if not self._stopping.is_set():
                await self._server.run(self._stopping.wait)
            tasks.cancel_scope.cancel()

    async def _answer(self, request: web.BaseRequest) -> web.Response:
        allowed, shown = self._options.client_names, common_names(request)
        if allowed and allowed.isdisjoint(shown):
            self._refused_clients.warning(common_names=", ".join(shown))
            text = "the certificate of the client has another common name than those that may ask"
            return failure(HttpError(403, "Forbidden", text))
        endpoint = self._endpoints.get(request.path)
        if endpoint is None:
            return failure(HttpError(404, "NotFound", f"there is no webhook at {request.path}"))
        if request.method != "POST":
            error = HttpError(405, "MethodNotAllowed", f"webhooks answer POST, not {request.method}")
            return failure(error, headers={"Allow": "POST"})
        return await endpoint.answer(request)
