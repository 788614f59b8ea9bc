"""Webhook server: HTTPS endpoints that the API server asks for admission."""

from __future__ import annotations

import asyncio
import logging
import os
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import structlog
from aiohttp import web

from trainer.kube.clock import move_on_after
from trainer.kube.errors import ConfigurationError, KubeError
from trainer.kube.manager.listening import listen_everywhere
from trainer.kube.manager.supervisor import Group
from trainer.kube.metrics.webhooks import WebhookSeries
from trainer.kube.webhook.body import BodyReader, HttpError, failure
from trainer.kube.webhook.endpoint import AdmissionEndpoint, Limits
from trainer.kube.webhook.serving_tls import ServingTls

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from trainer.kube.manager.manager import Manager
    from trainer.kube.webhook.admission import AdmissionHandler
    from trainer.kube.webhook.certificates import CertificateSource

log = structlog.get_logger(__name__)

_HANDSHAKE = 10.0
"""Seconds that a TLS handshake may take."""
_LINGER = 2.0
"""Seconds for which the rest of a body that nobody wants is read, so that the client sees the answer."""
_ANSWERS = 1.0
"""Seconds that written answers have to leave when the server stops."""
_BREAK_OFF = 0.01
"""Seconds that requests have to end when the server is cancelled; aiohttp takes 0 for ever."""


@dataclass(frozen=True, slots=True)
class WebhookServerOptions:
    """Where a webhook server listens, and what it puts up with."""

    host: str = ""
    """Address to listen on. Default: "", all addresses of IPv4 and IPv6, since the API server comes from elsewhere."""
    port: int = 9443
    """Port; 0 takes a free one, see `WebhookServer.address`. Default: 9443, as in controller-runtime."""
    max_body_bytes: int = 7 * 1024 * 1024
    """Size of the largest request. Default: 7 MiB, as in controller-runtime: the object and the old object, each of up
    to 3 MiB, which is what an API server accepts, and what is around them."""
    read_timeout: float = 10.0
    """Seconds that a body may take to arrive. Default: 10; the API server sends it at once."""
    request_timeout: float = 10.0
    """Seconds for an answer, if the request does not say. Default: 10, as timeoutSeconds of a webhook."""
    idle_timeout: float = 120.0
    """Seconds after which an unused connection is closed. Default: 120; the API server closes its own after 90, and one
    that the server closes in the moment of its use costs a refusal."""
    max_concurrent: int = 100
    """Requests that are answered at a time; others wait as long as they can. Default: 100, some 700 MiB at worst."""
    client_ca: Path | None = None
    """File with the authorities, as PEM, one of which must have signed the client's certificate; read with each new
    certificate of the server. Default: None, anybody may ask; an API server shows a certificate only if it is
    configured to (Kubernetes documentation, "Authenticate apiservers")."""
    certificate_timeout: float = 120.0
    """Seconds until there must be a certificate, else the manager stops. Default: 120, as for the first lists."""

    def __post_init__(self) -> None:
        """Refuse what no server could work with.

        Raises:
            ValueError: names the field.
        """
        if not 0 <= self.port <= 65535:
            raise ValueError(f"port must be from 0 to 65535, got {self.port}")
        for name in ("max_body_bytes", "max_concurrent", "read_timeout", "request_timeout", "idle_timeout"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be more than 0, got {getattr(self, name)}")


class WebhookServer:
    """Serves webhooks with a manager: before its caches start, whether this process leads or not.

    It adds itself to the manager, with a ready check `webhook` that passes while it listens with a valid certificate.
    When the manager stops, requests under way are answered. TLS is 1.2 or 1.3, HTTP is 1.1.

        server = WebhookServer(manager, certificates=FileCertificates(Path("/certificates")))
        server.register("/validate-example-com-v1-widget", "validate.widget.example.com", validate)

    Args:
        manager: runs it; its clock and metrics are used.
        certificates: where the certificate comes from; runs as long as the server.
        options: see there.
    """

    def __init__(
        self, manager: Manager, *, certificates: CertificateSource, options: WebhookServerOptions | None = None
    ) -> None:
        self._options = options or WebhookServerOptions()
        self._certificates = certificates
        self._clock = manager.clock
        self._series = manager.metrics.series(WebhookSeries)
        self._endpoints: dict[str, AdmissionEndpoint] = {}
        reader = BodyReader(self._clock, max_bytes=self._options.max_body_bytes, timeout=self._options.read_timeout)
        concurrency = anyio.CapacityLimiter(self._options.max_concurrent)
        self._limits = Limits(reader, concurrency, self._options.request_timeout)
        self._tls = ServingTls(self._options.client_ca)
        self._preparing = anyio.CancelScope()
        self._started = anyio.Event()
        self._stopping = anyio.Event()
        self._active = 0
        self._quiet = anyio.Event()
        self.address: tuple[str, int] = self._options.host, self._options.port
        """Where it listens; known when it has started."""
        manager.add(self.run, name="webhook server", group=Group.WEBHOOKS, stop=self.stop, started=self.wait_for_start)
        manager.add_ready_check("webhook", self.check)

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
            name, handler, clock=self._clock, limits=self._limits, metrics=self._series.for_webhook(path)
        )

    async def wait_for_start(self) -> None:
        """Wait until it listens."""
        await self._started.wait()

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
        if not self._started.is_set():
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
            with self._preparing:
                await self._wait_for_certificate()
            if not self._stopping.is_set():
                async with self._listening():
                    await self._stopping.wait()
            tasks.cancel_scope.cancel()

    async def _wait_for_certificate(self) -> None:
        async with move_on_after(self._clock, self._options.certificate_timeout) as limit:
            await self._tls.wait_for_certificate()
        if limit.cancelled_caught:
            waited = f"{self._options.certificate_timeout:g} s"
            raise ConfigurationError(f"no serving certificate within {waited}: {self._certificates.problem}")

    @asynccontextmanager
    async def _listening(self) -> AsyncIterator[None]:
        http = web.Server(
            self._serve,
            access_log=None,
            keepalive_timeout=self._options.idle_timeout,
            lingering_time=_LINGER,
            # A compressed body could grow without bounds; API servers send none.
            auto_decompress=False,
            logger=_PeerLogger(logging.getLogger(__name__), {}),
        )
        # Cancelled within, asyncio would forget the socket, which would go on listening.
        with anyio.CancelScope(shield=True):
            listener = await self._listen(http)
        try:
            self.address = listener.sockets[0].getsockname()[:2]
            log.info("serving webhooks", address=f"{self.address[0]}:{self.address[1]}", paths=sorted(self._endpoints))
            self._started.set()
            yield
            listener.close()
            # Connections that have just been accepted begin with their first request.
            await anyio.lowlevel.checkpoint()
            http.pre_shutdown()
            await self._wait_until_quiet()
            await http.shutdown(_ANSWERS)
        finally:
            listener.close()
            with anyio.CancelScope(shield=True):
                await http.shutdown(_BREAK_OFF)

    async def _listen(self, http: web.Server) -> asyncio.Server:
        tls: dict[str, Any] = {"ssl": self._tls.context, "ssl_handshake_timeout": _HANDSHAKE}
        loop, host, port = asyncio.get_running_loop(), self._options.host, self._options.port
        try:
            if host:
                return await loop.create_server(http, host, port, **tls)
            return await loop.create_server(http, sock=listen_everywhere(port), **tls)
        except OSError as error:
            where = f"{host or 'all addresses'}, port {port}"
            reason = os.strerror(error.errno) if error.errno is not None and error.errno > 0 else str(error)
            raise ConfigurationError(
                f"webhooks cannot be served on {where}: {reason}; choose another address"
            ) from error

    async def _wait_until_quiet(self) -> None:
        while self._active:
            self._quiet = anyio.Event()
            await self._quiet.wait()

    async def _serve(self, request: web.BaseRequest) -> web.Response:
        endpoint = self._endpoints.get(request.path)
        if endpoint is None:
            return failure(HttpError(404, "NotFound", f"there is no webhook at {request.path}"))
        if request.method != "POST":
            error = HttpError(405, "MethodNotAllowed", f"webhooks answer POST, not {request.method}")
            return failure(error, headers={"Allow": "POST"})
        self._active += 1
        try:
            return await endpoint.answer(request)
        finally:
            self._active -= 1
            self._quiet.set()


class _PeerLogger(logging.LoggerAdapter[logging.Logger]):
    """What aiohttp logs with a traceback is what peers have sent, since `_serve` raises nothing."""

    def exception(self, msg: object, *args: object, exc_info: object = None, **_: object) -> None:
        log.warning("could not read webhook request", problem=str(msg) % args, error=str(exc_info))
