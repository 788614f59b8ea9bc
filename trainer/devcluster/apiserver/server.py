"""The API server as a whole: builds its parts, serves HTTPS on the loopback interface, and stops cleanly."""

from __future__ import annotations

import os
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import anyio
from aiohttp import web

from trainer.devcluster.apiserver.access import Access
from trainer.devcluster.apiserver.admission.admission import Admission
from trainer.devcluster.apiserver.admission.caller import calling
from trainer.devcluster.apiserver.authentication.authenticator import Authenticator, load_or_create_token
from trainer.devcluster.apiserver.authorization.authorizer import AllowEverything
from trainer.devcluster.apiserver.backend import Backend
from trainer.devcluster.apiserver.body import MAX_BODY_BYTES
from trainer.devcluster.apiserver.crd import CustomResources
from trainer.devcluster.apiserver.data_directory import exclusive
from trainer.devcluster.apiserver.deletion import Deleter
from trainer.devcluster.apiserver.deletion_requests import AdmittedDeleter
from trainer.devcluster.apiserver.dispatch import Dispatcher
from trainer.devcluster.apiserver.expiry import expire_events
from trainer.devcluster.apiserver.first_objects import FirstObjects
from trainer.devcluster.apiserver.handlers.documents import Documents
from trainer.devcluster.apiserver.kinds import BUILTIN_KINDS, webhooks
from trainer.devcluster.apiserver.kubeconfig import kubeconfig
from trainer.devcluster.apiserver.listtypes import built_in_definitions
from trainer.devcluster.apiserver.pipeline import Pipeline
from trainer.devcluster.apiserver.registry import Registry
from trainer.devcluster.apiserver.storage import DEFAULT_HISTORY, Storage
from trainer.devcluster.apiserver.tls import issue_serving_certificate
from trainer.devcluster.feature_gates import DEFAULT_FEATURE_GATES, FeatureGates
from trainer.kube.clock import SystemClock
from trainer.kube.resource import NAMESPACES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
    from pathlib import Path
    from ssl import SSLContext

    from trainer.devcluster.apiserver.tls import ServingCertificate
    from trainer.kube.clock import Clock

HOST = "127.0.0.1"
SYSTEM_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_HEADER_BYTES = 64 * 1024
_SHUTDOWN_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """How a server runs."""

    data_dir: Path
    """Holds the certificate authority, the token (both mode 0600) and container logs; made when missing."""
    port: int = 0
    """TCP port on 127.0.0.1. Default: 0, any free one."""
    history: int = DEFAULT_HISTORY
    """How many changes of each resource a watch can go back. Default: 10,000."""
    feature_gates: FeatureGates = DEFAULT_FEATURE_GATES
    """What is validated differently. Default: what the gates themselves have as default."""


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server that accepts requests."""

    url: str
    token: str
    """Bearer token of the administrator."""
    ca_pem: str

    def kubeconfig(self) -> str:
        """The text of a kubeconfig file for this server; secret."""
        return kubeconfig(self.url, self.token, self.ca_pem)


@asynccontextmanager
async def serve(options: ServerOptions, *, clock: Clock | None = None) -> AsyncIterator[RunningServer]:
    """Run a server for as long as the context is open; objects live in memory and end with it.

    Raises:
        OSError: the port is taken, or the data directory cannot be used or is in use.
    """
    with ExitStack() as stack:
        await anyio.to_thread.run_sync(stack.enter_context, exclusive(options.data_dir))
        async with _serve(options, clock or SystemClock()) as server:
            yield server


@asynccontextmanager
async def _serve(options: ServerOptions, clock: Clock) -> AsyncIterator[RunningServer]:
    certificate, token = await anyio.to_thread.run_sync(_prepare, options.data_dir)
    # Clients of a server that ran here before hold resource versions of objects that are gone. Milliseconds run ahead
    # of any number of writes, so theirs are too old for a watch and they list again.
    storage = Storage(history=options.history, revision=int(clock.now().timestamp() * 1000))
    backend = Backend(storage, Registry(BUILTIN_KINDS), clock, options.data_dir, certificate.ca_pem)
    async with calling(storage, clock) as caller:
        admission = Admission(storage, backend.registry, caller)
        pipeline, deleter = Pipeline(backend, admission), Deleter(backend)
        for namespace in SYSTEM_NAMESPACES:
            await pipeline.create_internal(NAMESPACES, {"metadata": {"name": namespace}})
        admitted = AdmittedDeleter(deleter, admission)
        access = Access(Authenticator(token), AllowEverything())
        dispatcher = Dispatcher(backend, access, Documents(backend.registry), pipeline, admitted)
        background: list[Callable[[], Coroutine[None, None, None]]] = [
            CustomResources(backend, pipeline, deleter, webhooks(options.feature_gates)).run,
            FirstObjects(backend, pipeline).run,
            partial(expire_events, backend),
            partial(backend.log_growth.run, clock),
        ]
        context = await anyio.to_thread.run_sync(certificate.server_context)
        async with _listening(dispatcher, options.port, context, background) as port:
            yield RunningServer(f"https://{HOST}:{port}", token, certificate.ca_pem)


@asynccontextmanager
async def _listening(
    dispatcher: Dispatcher,
    port: int,
    context: SSLContext,
    background: Sequence[Callable[[], Coroutine[None, None, None]]],
) -> AsyncIterator[int]:
    """Answer requests and run what goes on in the background; gives the port."""
    runner = _runner(dispatcher)
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        for run in background:
            tasks.start_soon(run)
        await runner.setup()
        try:
            await _listen(web.TCPSite(runner, HOST, port, ssl_context=context), port)
            yield runner.addresses[0][1]
        except Exception as error:
            failure = error
        finally:
            with anyio.CancelScope(shield=True):
                await runner.cleanup()
            tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


def _runner(dispatcher: Dispatcher) -> web.AppRunner:
    application = web.Application(client_max_size=MAX_BODY_BYTES)
    application.router.add_route("*", "/{path:.*}", dispatcher.handle)
    return web.AppRunner(
        application,
        handle_signals=False,
        handler_cancellation=True,
        access_log=None,
        shutdown_timeout=_SHUTDOWN_SECONDS,
        max_line_size=_HEADER_BYTES,
        max_field_size=_HEADER_BYTES,
    )


async def _listen(site: web.TCPSite, port: int) -> None:
    try:
        await site.start()
    except OSError as error:
        problem = os.strerror(error.errno or 0)
        message = f"cannot listen on port {port} of {HOST} ({problem}): choose another one, or 0 for any free one"
        raise OSError(error.errno, message) from error


def _prepare(data_dir: Path) -> tuple[ServingCertificate, str]:
    """What blocks at the start: certificates, the token, the types of the built-in kinds."""
    built_in_definitions()
    return issue_serving_certificate(data_dir), load_or_create_token(data_dir / "token")
