"""Whether the processes of `trainer up` and `trainer demo` are ready: what they themselves answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Final

from anyio.to_thread import run_sync

from trainer.configuration.configuration import load_configuration
from trainer.configuration.values import host_and_port
from trainer.kube.errors import KubeError
from trainer.kube.rest.connection import ConnectionOptions, connect

_PATH: Final = "/readyz"
_SECONDS: Final = 5.0


def cluster_answers(kubeconfig: Path) -> Callable[[], Awaitable[bool]]:
    """Asks a dev cluster: API server, controllers and kubelet have started.

    The file is read each time, since the cluster writes its address to it when it starts.
    """

    async def ask() -> bool:
        try:
            async with connect(ConnectionOptions(kubeconfig=kubeconfig)) as client:
                await client.read(_PATH)
        except KubeError:
            return False
        return True

    return ask


async def manager_answers(configuration: Path) -> Callable[[], Awaitable[bool]]:
    """Asks the manager that has this configuration file; one without a health server counts as ready."""
    loaded = await run_sync(load_configuration, configuration)
    address = host_and_port(loaded.health.health_probe_bind_address)

    async def ask() -> bool:
        return address is None or await run_sync(_get, *address)

    return ask


def _get(host: str, port: int) -> bool:
    connection = HTTPConnection(host, port, timeout=_SECONDS)
    try:
        connection.request("GET", _PATH)
        return connection.getresponse().status == HTTPStatus.OK
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
