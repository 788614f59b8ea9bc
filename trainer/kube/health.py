"""HTTP endpoint of a manager for the kubelet's probes and for Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import anyio
import structlog
from aiohttp import web
from prometheus_client.exposition import choose_encoder

if TYPE_CHECKING:
    from trainer.kube.metrics import Metrics

log = structlog.get_logger(__name__)


class Observed(Protocol):
    """What the endpoint asks of a manager."""

    metrics: Metrics

    @property
    def is_ready(self) -> bool:
        """Whether it does its work."""


class HealthServer:
    """Serves /healthz (the event loop turns), /readyz (the manager has started) and /metrics."""

    def __init__(self, observed: Observed, host: str, port: int) -> None:
        self._observed = observed
        self._host = host
        self._port = port

    async def run(self) -> None:
        """Serve until cancelled.

        Raises:
            OSError: the address is in use or not ours.
        """
        application = web.Application()
        application.add_routes(
            [
                web.get("/healthz", self._healthz),
                web.get("/readyz", self._readyz),
                web.get("/metrics", self._metrics),
            ]
        )
        runner = web.AppRunner(application, access_log=None)
        await runner.setup()
        try:
            await web.TCPSite(runner, self._host, self._port).start()
            log.info("serving health and metrics", address=runner.addresses[0])
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await runner.cleanup()

    async def _healthz(self, _request: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def _readyz(self, _request: web.Request) -> web.Response:
        if self._observed.is_ready:
            return web.Response(text="ok")
        return web.Response(status=500, text="[-]informers failed: not synced")

    async def _metrics(self, request: web.Request) -> web.Response:
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        body = await anyio.to_thread.run_sync(encode, self._observed.metrics.registry)
        return web.Response(body=body, headers={"Content-Type": content_type})
