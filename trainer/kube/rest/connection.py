"""Finding an API server and the credentials for it: kubeconfig files, or the service account of the pod we run in."""

from __future__ import annotations

import gc
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import anyio

import trainer
from trainer.kube.clock import Clock
from trainer.kube.errors import ConfigurationError
from trainer.kube.metrics import Metrics
from trainer.kube.rest import kubeconfig
from trainer.kube.rest.credentials import Credentials, TokenFile
from trainer.kube.rest.http import HttpClient
from trainer.kube.rest.kubeconfig import ContextNames
from trainer.kube.rest.rate_limiter import RateLimiter
from trainer.kube.rest.tls import ClientTls
from trainer.kube.rest.transport import Endpoint, Transport, WarningHandler, log_warning

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a pod finds token, ca.crt and namespace (Kubernetes documentation, "Accessing the API from a Pod")."""

DEFAULT_KUBECONFIG = Path("~/.kube/config")

FULL_COLLECTION_FACTOR = 10
"""How many times fewer full garbage collections there are than Python would make."""


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """Which API server to use, as whom, and how hard."""

    kubeconfig: Path | None = None
    """Default: $KUBECONFIG, else the service account of the pod that we run in, else ~/.kube/config."""
    context: str | None = None
    """Context in the kubeconfig. Default: its current-context."""
    user_agent: str = f"trainer/{trainer.__version__}"
    """The part before "/" is the field manager of requests that name none. Default: trainer/<version>."""
    qps: float | None = None
    """Requests per second, each attempt and each opened watch being one. Default: None, no limit, as in
    controller-runtime: the server's priority and fairness knows better what it can take."""
    burst: int | None = None
    """Requests that may go at once before `qps` counts. Default: twice `qps`, the proportion of client-go."""
    warn: WarningHandler = log_warning
    """Gets what the API server wants its users to read. Default: the log, since most processes have no screen."""


@asynccontextmanager
async def connect(
    options: ConnectionOptions = ConnectionOptions(), *, clock: Clock | None = None, metrics: Metrics | None = None
) -> AsyncIterator[HttpClient]:
    """A client for the API server that the options or the environment name; no request is sent yet.

    The clock is for retries, rate limit and expiries; the rest_client_* series go to `metrics`.

    Raises:
        ConfigurationError: no configuration, or one that cannot be used; one line that names the file and the remedy.
        ValueError: a limit that makes no sense.
    """
    limiter = _rate_limiter(options, clock)
    endpoint, credentials = await _configure(options, clock)
    tune_garbage_collector()
    transport = Transport(
        endpoint,
        credentials,
        user_agent=options.user_agent,
        clock=clock,
        rate_limiter=limiter,
        metrics=metrics,
        warn=options.warn,
    )
    async with transport:
        yield HttpClient(transport)


@cache
def tune_garbage_collector() -> None:
    """Take what has been imported by now out of garbage collection, and have full collections seldom.

    What is imported leaves objects by the ten thousand that live as long as the process. A full collection would walk
    through them each time, which holds up the event loop for 40 ms and more. What a controller keeps besides is worth
    a walk each time it has grown much, not a little; nearly all of what it drops is freed without.
    """
    gc.freeze()
    youngest, young, old = gc.get_threshold()
    gc.set_threshold(youngest, young, old * FULL_COLLECTION_FACTOR)


def _rate_limiter(options: ConnectionOptions, clock: Clock | None) -> RateLimiter | None:
    if options.qps is None:
        return None
    burst = options.burst if options.burst is not None else max(round(2 * options.qps), 1)
    return RateLimiter(options.qps, burst, clock=clock)


def contexts_of(options: ConnectionOptions) -> ContextNames:
    """The contexts of the kubeconfig that these options lead to; none for the service account of a pod.

    Raises:
        ConfigurationError: the kubeconfig cannot be read.
    """
    files = _files(options)
    return kubeconfig.contexts(files) if files else ContextNames("", ())


async def _configure(options: ConnectionOptions, clock: Clock | None) -> tuple[Endpoint, Credentials]:
    if files := _files(options):
        return await kubeconfig.load(files, options.context, clock=clock)
    endpoint = await anyio.to_thread.run_sync(_service_account)
    return endpoint, TokenFile(SERVICE_ACCOUNT / "token", clock=clock)


def _files(options: ConnectionOptions) -> list[Path]:
    """The kubeconfig files; none where the service account of the pod is used."""
    if options.kubeconfig is not None:
        return [options.kubeconfig]
    if files := [Path(name) for name in os.environ.get("KUBECONFIG", "").split(os.pathsep) if name]:
        return files
    if os.environ.get("KUBERNETES_SERVICE_HOST") and options.context is None:
        return []
    return [DEFAULT_KUBECONFIG]


def _service_account() -> Endpoint:
    """The API server of the pod that we run in; `rest.kubeconfig` says why not by kubernetes-asyncio."""
    ca = SERVICE_ACCOUNT / "ca.crt"
    try:
        namespace, _, _ = (_content(SERVICE_ACCOUNT / name) for name in ("namespace", "token", ca.name))
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"cannot use the pod's service account in {SERVICE_ACCOUNT}: {kubeconfig.one_line(error)}; "
            "check automountServiceAccountToken, or name a kubeconfig"
        ) from error
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ.get("KUBERNETES_SERVICE_PORT") or "443"
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    return Endpoint(server, namespace, ClientTls(ca=ca, origin=f"service account {SERVICE_ACCOUNT}"))


def _content(file: Path) -> str:
    content = file.read_text().strip()
    if not content:
        raise ValueError(f"{file} is empty")
    return content
