"""The API server as a whole: builds its parts, serves HTTPS on the loopback interface, and stops cleanly."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import anyio
import yaml

from trainer.kube.clock import Clock, SystemClock
from trainer.kube.resource import NAMESPACES
from trainer_devcluster.apiserver.admission.admission import Admission, Caller
from trainer_devcluster.apiserver.audit import AuditLog
from trainer_devcluster.apiserver.authentication.authenticator import Authenticator, load_or_create_token
from trainer_devcluster.apiserver.authentication.service_account_tokens import (
    ServiceAccountTokens,
    SigningKey,
    load_or_create_signing_key,
)
from trainer_devcluster.apiserver.authentication.tls import ServerTls, issue_serving_certificate
from trainer_devcluster.apiserver.authorization.authorizer import Access
from trainer_devcluster.apiserver.authorization.rbac import RbacAuthorizer
from trainer_devcluster.apiserver.backend import Backend
from trainer_devcluster.apiserver.custom_resources.controller import CustomResources
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceRegistry
from trainer_devcluster.apiserver.handlers.documents import Documents
from trainer_devcluster.apiserver.kinds import WEBHOOKS, built_in_kinds
from trainer_devcluster.apiserver.kinds.priority_class import PRIORITY_CLASSES, system_classes
from trainer_devcluster.apiserver.objects.built_in_types import built_in_definitions
from trainer_devcluster.apiserver.serving.dispatch import Dispatcher
from trainer_devcluster.apiserver.serving.first_objects import FirstObjects, bootstrap, expire_events
from trainer_devcluster.apiserver.serving.listening import HOST, listening
from trainer_devcluster.apiserver.storage.data_directory import exclusive
from trainer_devcluster.apiserver.storage.former_objects import leave, take_over
from trainer_devcluster.apiserver.storage.journal import Journal
from trainer_devcluster.apiserver.storage.storage import DEFAULT_HISTORY, Storage
from trainer_devcluster.apiserver.webhooks.client import webhook_client
from trainer_devcluster.apiserver.writes.deletion import AdmittedDeleter, Deleter
from trainer_devcluster.apiserver.writes.object_writer import ObjectWriter
from trainer_devcluster.container_commands import CommandRunner
from trainer_devcluster.feature_gates import DEFAULT_FEATURE_GATES, FeatureGates

NAME: Final = "trainer-dev"
"""Name of the context, the cluster and the user."""


def kubeconfig(url: str, token: str, ca_pem: str) -> str:
    """The text of a kubeconfig file whose only context is this cluster.

    Args:
        url: base URL of the API server.
        token: bearer token of the administrator; whoever reads the file is the administrator.
        ca_pem: the authority that signed the serving certificate.
    """
    authority = base64.b64encode(ca_pem.encode()).decode()
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": NAME, "cluster": {"server": url, "certificate-authority-data": authority}}],
        "users": [{"name": NAME, "user": {"token": token}}],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME, "namespace": "default"}}],
        "current-context": NAME,
    }
    return yaml.safe_dump(document, sort_keys=False)


SYSTEM_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_OBJECTS = "objects.sqlite"
"""Name of the journal in the data directory."""
_FORMER_OBJECTS = "objects"
"""The same of trainer-devcluster 0.1, a directory."""


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """How a server runs."""

    data_dir: Path
    """Holds keys, certificates, container logs and, with `persistent`, the objects; made when missing."""
    port: int = 0
    """TCP port on 127.0.0.1. Default: 0, any free one."""
    persistent: bool = False
    """Whether objects are kept in the data directory, each write on the disk before it is answered. Default: no, they
    live in memory and end with the server, because most servers have a data directory that ends with them too."""
    history: int = DEFAULT_HISTORY
    """How many changes of each resource a watch can go back. Default: 10,000."""
    feature_gates: FeatureGates = DEFAULT_FEATURE_GATES
    """What is validated differently. Default: what the gates themselves have as default."""
    audit_log: Path | None = None
    """File to which every request is appended with its outcome, see `audit`. Default: none."""
    is_ready: Callable[[], bool] = lambda: True
    """Whether /readyz is to succeed. Default: it does once the server accepts requests."""


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
async def serve(
    options: ServerOptions, *, clock: Clock | None = None, commands: CommandRunner | None = None
) -> AsyncIterator[RunningServer]:
    """Run a server for as long as the context is open; `commands` run in containers if there is a kubelet.

    Raises:
        OSError: the port is taken, the data directory cannot be used or is in use, or a file in it is damaged; while
            the server runs, that its journal cannot be written.
    """
    with ExitStack() as stack:
        await anyio.to_thread.run_sync(stack.enter_context, exclusive(options.data_dir))
        audit = None
        if options.audit_log is not None:
            audit = await anyio.to_thread.run_sync(stack.enter_context, AuditLog.opened(options.audit_log))
        async with _serve(options, clock or SystemClock(), audit, commands or CommandRunner()) as server:
            yield server


@asynccontextmanager
async def _serve(
    options: ServerOptions, clock: Clock, audit: AuditLog | None, commands: CommandRunner
) -> AsyncIterator[RunningServer]:
    certificate, token, signing_key = await anyio.to_thread.run_sync(_prepare, options.data_dir)
    storage, journal = await anyio.to_thread.run_sync(_open_storage, options, clock)
    backend = Backend(
        storage,
        ResourceRegistry(built_in_kinds(options.feature_gates), when_changed=storage.wake),
        clock,
        options.data_dir,
        certificate.ca_pem,
        options.feature_gates,
        commands=commands,
    )
    async with _leaving(options, storage), webhook_client(storage, clock) as client:
        authorizer = RbacAuthorizer(storage)
        admission = Admission(storage, backend.registry, Caller(client))
        writer, deleter = ObjectWriter(backend, admission), Deleter(backend)
        for namespace in SYSTEM_NAMESPACES:
            await writer.create_internal(NAMESPACES, {"metadata": {"name": namespace}})
        for priority_class in system_classes():
            await writer.create_internal(PRIORITY_CLASSES, priority_class, "kube-apiserver")
        await bootstrap(storage, writer)
        admitted = AdmittedDeleter(deleter, admission)
        tokens = ServiceAccountTokens(storage, signing_key, clock)
        access = Access(Authenticator(token, tokens), authorizer, tokens)
        dispatcher = Dispatcher(
            backend, access, Documents(backend.registry, options.is_ready), writer, admitted, audit=audit
        )
        custom_resources = CustomResources(backend, writer, deleter, WEBHOOKS)
        await custom_resources.restore()
        background: list[Callable[[], Coroutine[None, None, None]]] = [
            *([journal.run] if journal is not None else []),
            *([audit.run] if audit is not None else []),
            custom_resources.run,
            FirstObjects(backend, writer).run,
            partial(expire_events, backend),
            partial(backend.log_growth.run, clock),
        ]
        context = await anyio.to_thread.run_sync(certificate.server_context)
        # Answers that wait for the journal end before it does, and watches are audited when they end.
        async with _running(background), listening(dispatcher.handle, options.port, context) as port:
            yield RunningServer(f"https://{HOST}:{port}", token, certificate.ca_pem)


@asynccontextmanager
async def _leaving(options: ServerOptions, storage: Storage) -> AsyncIterator[None]:
    """Leave the objects for trainer-devcluster 0.1 when everything has ended, unless the journal lacks some of them."""
    try:
        yield
    finally:
        if options.persistent and storage.published_revision == storage.revision:
            former = options.data_dir / _FORMER_OBJECTS
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(leave, former, storage.state(), storage.revision)


@asynccontextmanager
async def _running(
    background: Sequence[Callable[[], Coroutine[None, None, None]]],
) -> AsyncIterator[None]:
    """Run what goes on in the background until the body has ended.

    A body that is cancelled may take a while to end and needs a server meanwhile. A failure of it stays what it is.
    """
    failure: Exception | None = None
    end = anyio.CancelScope(shield=True)

    async def run_all() -> None:
        with end:
            async with anyio.create_task_group() as tasks:
                for run in background:
                    tasks.start_soon(run)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run_all)
        try:
            yield
        except Exception as error:
            failure = error
        finally:
            end.cancel()
    if failure is not None:
        raise failure


def _open_storage(options: ServerOptions, clock: Clock) -> tuple[Storage, Journal | None]:
    # Clients of a server that ran here before may hold resource versions of objects that are gone. Milliseconds run
    # ahead of any number of writes, so theirs are too old for a watch and they list again.
    first_revision = int(clock.now().timestamp() * 1000)
    if not options.persistent:
        return Storage(history=options.history, revision=first_revision), None
    storage, path = Storage(history=options.history), options.data_dir / _OBJECTS
    take_over(options.data_dir / _FORMER_OBJECTS, path)
    return storage, Journal.open(path, storage, first_revision)


def _prepare(data_dir: Path) -> tuple[ServerTls, str, SigningKey]:
    """Prepare what takes blocking calls: certificates, the token, the signing key, the types of the built-in kinds."""
    built_in_definitions()
    signing_key = load_or_create_signing_key(data_dir / "sa.key")
    return issue_serving_certificate(data_dir), load_or_create_token(data_dir / "token"), signing_key
