"""The API server of a measurement: sessions with it, and the processor time that it takes."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

import aiohttp

from trainer.kube.clock import SystemClock
from trainer.kube.rest import kubeconfig
from trainer.kube.rest.tls import ReloadingTls

_CPU = re.compile(rb"^process_cpu_seconds_total (\S+)$", re.MULTILINE)


async def open_session(kubeconfig_file: Path) -> aiohttp.ClientSession:
    """Requests to the API server by paths, with nothing in between; to be closed by the caller."""
    endpoint, credentials = await kubeconfig.load([kubeconfig_file], None, clock=SystemClock())
    identity = await credentials.current()
    context = await ReloadingTls(endpoint.tls).context(identity.certificate) if endpoint.tls is not None else True
    return aiohttp.ClientSession(
        endpoint.server,
        headers={"Authorization": identity.authorization} if identity.authorization else {},
        connector=aiohttp.TCPConnector(ssl=context, limit=0),
        timeout=aiohttp.ClientTimeout(total=None),
    )


class _Process(Protocol):
    def cpu_seconds(self) -> float:
        """Processor time so far."""


def cpu_clock(kubeconfig_file: Path, process: _Process | None) -> Callable[[], Awaitable[float | None]]:
    """What tells the processor time of the API server so far: of its process, or as its metrics say; None: unknown."""

    async def of_process() -> float | None:
        return None if process is None else process.cpu_seconds()

    async def of_metrics() -> float | None:
        async with await open_session(kubeconfig_file) as session, session.get("/metrics") as response:
            found = _CPU.search(await response.read())
            return float(found[1]) if found is not None else None

    return of_metrics if process is None else of_process
