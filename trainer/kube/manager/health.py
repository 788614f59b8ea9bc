"""Health: named checks behind /healthz and /readyz, and the HTTP endpoint that serves them with /metrics and more.

Paths, parameters and texts are those of the Kubernetes API server and of controller-runtime, which people and probes
know: `/healthz/NAME` asks for one check, `?verbose` lists all, `?exclude=NAME` leaves one out. Why a check fails is in
the log and not in the answer, since anybody may ask.

There is no TLS and no authentication here, and no profiler: who may reach the port is for a NetworkPolicy to say, and
metrics of a controller name objects at most; whoever adds routes decides whether they are for everybody to see. Limits
on headers are those of aiohttp (8 KiB a line), stricter than Go's, but a client may take as long as it likes to send
them: aiohttp has no limit for that.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

import anyio
import anyio.to_thread
import structlog
from aiohttp import web

from trainer.kube.clock import Clock, SystemClock, move_on_after
from trainer.kube.manager.listening import listen_everywhere
from trainer.kube.manager.routes import Routes

if TYPE_CHECKING:
    from collections.abc import Collection

    from trainer.kube.metrics.exposition import Exposition

log = structlog.get_logger(__name__)

Check: TypeAlias = Callable[[], Awaitable[None]]
"""Returns if all is well, and raises an exception whose text says what is not."""

CHECK_TIMEOUT = 5.0
"""Seconds after which a check counts as failed; probes seldom wait longer."""

_KEEP_ALIVE = 90.0
"""Seconds that an idle connection stays open, as in controller-runtime."""

_FINISH = 1.0
"""Seconds that answers under way have when the server stops."""


async def ping() -> None:
    """The check that only shows that the event loop turns."""


class HealthChecks:
    """The checks of one kind of probe.

    Args:
        name: what is asked for, such as `healthz`; in the texts and the log.
        clock: for the limit of a check; default: that of the machine.
    """

    def __init__(self, name: str, *, clock: Clock | None = None) -> None:
        self.name = name
        self._clock = clock or SystemClock()
        self._checks: dict[str, Check] = {"ping": ping}
        self._failing: dict[str, str] = {}

    def add(self, name: str, check: Check) -> None:
        """Add a check.

        Raises:
            ValueError: there is one of this name, or the name cannot be part of a path.
        """
        if not name or "/" in name:
            raise ValueError(f"the name of a check becomes part of a path: {name!r} must not be empty or contain a /")
        if name in self._checks:
            raise ValueError(f"there are two {self.name} checks named {name!r}")
        self._checks[name] = check

    def __contains__(self, name: str) -> bool:
        return name in self._checks

    async def failures(self, names: Collection[str] | None = None) -> dict[str, str]:
        """Run checks at the same time, and return why they failed by name; what changes is logged.

        Args:
            names: which; default: all.
        """
        selected = tuple(self._checks if names is None else names)
        reasons: dict[str, str] = {}

        async def run(name: str) -> None:
            reason = await self._run(self._checks[name])
            if reason is not None:
                reasons[name] = reason
            self._note(name, reason)

        async with anyio.create_task_group() as tasks:
            for name in selected:
                tasks.start_soon(run, name)
        return reasons

    async def report(self, exclude: Collection[str], *, verbose: bool) -> tuple[bool, str]:
        """Run all checks but the excluded ones; whether they passed, and the text that says so."""
        failures = await self.failures([name for name in self._checks if name not in exclude])
        if not failures and not verbose:
            return True, "ok"
        lines = [_line(name, is_excluded=name in exclude, has_failed=name in failures) for name in self._checks]
        unknown = ", ".join(repr(name) for name in exclude if name not in self._checks)
        if unknown:
            lines.append(f"warn: some checks cannot be excluded: no matches for {unknown}")
        lines.append(f"{self.name} check {'failed' if failures else 'passed'}")
        return not failures, "\n".join(lines) + "\n"

    async def _run(self, check: Check) -> str | None:
        try:
            async with move_on_after(self._clock, CHECK_TIMEOUT) as limit:
                await check()
        except Exception as error:
            return str(error) or type(error).__name__
        return f"no answer within {CHECK_TIMEOUT:g} s" if limit.cancelled_caught else None

    def _note(self, name: str, reason: str | None) -> None:
        if reason is None:
            if self._failing.pop(name, None) is not None:
                log.info("health check passes again", probe=self.name, check=name)
        elif self._failing.get(name) != reason:
            if name not in self._failing:
                log.warning("health check failed", probe=self.name, check=name, reason=reason)
            self._failing[name] = reason


def _line(name: str, *, is_excluded: bool, has_failed: bool) -> str:
    if is_excluded:
        return f"[+]{name} excluded: ok"
    return f"[-]{name} failed: reason withheld" if has_failed else f"[+]{name} ok"


class HealthServer:
    """Serves /healthz, /readyz, /metrics and further routes.

    Args:
        host: address to listen on; "": all addresses of IPv4 and IPv6.
        port: 0 takes a free one; see `address`.
        checks: served under their names.
        metrics: served as /metrics.
        routes: what else is served; may grow while it runs. Default: nothing.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        checks: Collection[HealthChecks],
        metrics: Exposition,
        routes: Routes | None = None,
    ) -> None:
        self._host = host
        self._port = port
        self._checks = checks
        self._exposition = metrics
        self._routes = routes or Routes()
        self._started = anyio.Event()
        self.address: tuple[str, int] = host, port
        """Where it listens; known when it has started."""

    async def wait_for_start(self) -> None:
        """Wait until it listens."""
        await self._started.wait()

    async def run(self) -> None:
        """Serve until cancelled.

        Raises:
            OSError: the address is in use or not ours.
        """
        application = web.Application()
        application.router.add_get("/metrics", self._metrics)
        for checks in self._checks:
            self._route(application, checks)
        application.router.add_get("/{path:.*}", self._answer)
        runner = web.AppRunner(
            application, access_log=None, keepalive_timeout=_KEEP_ALIVE, shutdown_timeout=_FINISH, handle_signals=False
        )
        await runner.setup()
        try:
            # Cancelled within, asyncio would forget the socket, which would go on listening.
            with anyio.CancelScope(shield=True):
                await self._site(runner).start()
            self.address = runner.addresses[0][:2]
            log.info("serving health and metrics", address=f"{self.address[0]}:{self.address[1]}")
            self._started.set()
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await runner.cleanup()

    def _site(self, runner: web.AppRunner) -> web.BaseSite:
        if self._host:
            return web.TCPSite(runner, self._host, self._port)
        return web.SockSite(runner, listen_everywhere(self._port))

    def _route(self, application: web.Application, checks: HealthChecks) -> None:
        async def all_checks(request: web.Request) -> web.Response:
            exclude = [name for name in request.query.getall("exclude", []) if name]
            passed, text = await checks.report(exclude, verbose="verbose" in request.query)
            return _text(200 if passed else 500, text)

        async def one_check(request: web.Request) -> web.Response:
            name = request.match_info["name"]
            if name not in checks:
                return _text(404, f"there is no {checks.name} check {name!r}\n")
            if await checks.failures([name]):
                return _text(500, f"{_line(name, is_excluded=False, has_failed=True)}\n")
            return _text(200, "ok")

        application.router.add_get(f"/{checks.name}", all_checks)
        application.router.add_get(f"/{checks.name}/", all_checks)
        application.router.add_get(f"/{checks.name}/{{name}}", one_check)

    async def _metrics(self, request: web.Request) -> web.Response:
        accept = request.headers.get("Accept", "")
        body, content_type = await anyio.to_thread.run_sync(self._exposition.render, accept)
        return web.Response(body=body, headers={"Content-Type": content_type})

    async def _answer(self, request: web.Request) -> web.Response:
        query = {name: tuple(request.query.getall(name)) for name in request.query}
        response = await self._routes.answer(request.rel_url.raw_path, query)
        headers = {"Content-Type": response.content_type, "X-Content-Type-Options": "nosniff"}
        return web.Response(status=response.status, body=response.body, headers=headers)


def _text(status: int, text: str) -> web.Response:
    return web.Response(status=status, text=text, headers={"X-Content-Type-Options": "nosniff"})
