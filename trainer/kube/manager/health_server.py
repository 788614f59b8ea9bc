"""Health server: /healthz and /readyz for the kubelet, in plain HTTP and for everybody.

Paths and parameters are those of the Kubernetes API server: `/healthz/NAME` asks for one check, `?verbose` lists all,
`?exclude=NAME` leaves one out. There is nothing else to see here; see `trainer.kube.manager.metrics_server`.
"""

from __future__ import annotations

from collections.abc import Collection

import anyio
from aiohttp import web

from trainer.kube.clock import Clock
from trainer.kube.manager.health import HealthChecks, line_of
from trainer.kube.metrics import Metrics
from trainer.kube.serving.http_server import HttpServer, HttpServerOptions

_FINISH = 1.0
"""Seconds that answers under way have when the server stops."""


class HealthServer:
    """Serves checks under their names.

    Args:
        host: address to listen on; "": all addresses of IPv4 and IPv6.
        port: 0 takes a free one; see `address`.
        checks: those of each kind of probe.
        clock: for limits of time.
        metrics: where the series of the server go; default: nowhere.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        checks: Collection[HealthChecks],
        clock: Clock,
        metrics: Metrics | None = None,
    ) -> None:
        self._checks = {kind.name: kind for kind in checks}
        options = HttpServerOptions(host, port)
        self._server = HttpServer("health", self._answer, options, clock=clock, metrics=metrics or Metrics())

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
            ConfigurationError: the address is in use or not ours.
        """
        await self._server.run(anyio.sleep_forever, grace=_FINISH)

    async def _answer(self, request: web.BaseRequest) -> web.Response:
        kind, _, name = request.path.removeprefix("/").partition("/")
        checks = self._checks.get(kind)
        if checks is None:
            return _text(404, "there is nothing at this path\n")
        if request.method not in {"GET", "HEAD"}:
            return _text(405, f"probes are asked with GET, not {request.method}\n", Allow="GET, HEAD")
        if not name:
            exclude = [name for name in request.query.getall("exclude", []) if name]
            passed, text = await checks.report(exclude, verbose="verbose" in request.query)
            return _text(200 if passed else 500, text)
        if name not in checks:
            return _text(404, f"there is no {kind} check {name!r}\n")
        if await checks.failures([name]):
            return _text(500, f"{line_of(name, has_failed=True)}\n")
        return _text(200, "ok")


def _text(status: int, text: str, **headers: str) -> web.Response:
    return web.Response(status=status, text=text, headers={"X-Content-Type-Options": "nosniff", **headers})
