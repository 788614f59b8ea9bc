"""Client: posts documents to webhooks over TLS.

Nothing routes the addresses of Services on this machine, so the server goes to what stands behind them.
"""

from __future__ import annotations

import base64
import binascii
import http
import os
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import aiohttp
import anyio
from yarl import URL

from trainer.kube.clock import Clock, move_on_after
from trainer.kube.objects import Object, ObjectKey, metadata_of, namespace_of
from trainer.kube.resource import SERVICES, Resource
from trainer_devcluster.apiserver.storage.storage import Partition, Storage

ENDPOINTS: Final = Resource("", "v1", "endpoints", "Endpoints")
ENDPOINT_SLICES: Final = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
_SERVICE_LABEL: Final = "kubernetes.io/service-name"


class Address(NamedTuple):
    """A host and a TCP port."""

    host: str
    port: int


class UnresolvedError(Exception):
    """A Service cannot be reached; the text is that of the real server."""


def resolve(storage: Storage, reference: ServiceReference) -> Address:
    """An address behind a Service: the first that is ready, from its EndpointSlices or its Endpoints.

    Raises:
        UnresolvedError: there is no such Service or port, or nothing stands behind it.
    """
    key = ObjectKey(reference.namespace, reference.name)
    service = storage.get(Partition.of(SERVICES), key)
    if service is None:
        raise UnresolvedError(f'service "{reference.name}" not found')
    spec = service["spec"]
    if spec.get("type") == "ExternalName":
        return Address(spec["externalName"], reference.port)
    ports = [port for port in spec.get("ports") or () if port["port"] == reference.port]
    if not ports:
        raise UnresolvedError(f'no service port {reference.port} found for service "{reference.name}"')
    name = ports[0].get("name") or ""
    slices = [
        entry
        for entry in storage.snapshot(Partition.of(ENDPOINT_SLICES))
        if namespace_of(entry) == reference.namespace
        and (metadata_of(entry).get("labels") or {}).get(_SERVICE_LABEL) == reference.name
    ]
    found = [address for entry in slices for address in _in_slice(entry, name)]
    found += _in_endpoints(storage.get(Partition.of(ENDPOINTS), key), name)
    if not found:
        raise UnresolvedError(f'no endpoints available for service "{reference.name}"')
    return found[0]


def _in_slice(entry: Object, port_name: str) -> Iterator[Address]:
    ports = [port["port"] for port in entry.get("ports") or () if (port.get("name") or "") == port_name]
    for endpoint in entry.get("endpoints") or ():
        # An unknown state counts as ready, as the API says.
        if (endpoint.get("conditions") or {}).get("ready") is not False:
            yield from (Address(host, port) for port in ports for host in endpoint.get("addresses") or ())


def _in_endpoints(entry: Object | None, port_name: str) -> Iterator[Address]:
    for subset in (entry or {}).get("subsets") or ():
        ports = [port["port"] for port in subset.get("ports") or () if (port.get("name") or "") == port_name]
        yield from (Address(each["ip"], port) for port in ports for each in subset.get("addresses") or ())


MAX_ANSWER_BYTES: Final = 16 * 1024 * 1024
_KEPT: Final = 64


class PostError(Exception):
    """No proper answer came in time."""


class WebhookClient:
    """Calls webhooks; made by `webhook_client`."""

    def __init__(self, session: aiohttp.ClientSession, storage: Storage, clock: Clock) -> None:
        self._session = session
        self._storage = storage
        self._clock = clock
        self._trust = TrustStore()

    async def post(self, client: ClientConfig, body: bytes, seconds: int) -> bytes:
        """The body of the answer to a JSON document.

        Args:
            client: where the webhook is.
            body: the document.
            seconds: after which time it has failed; the webhook gets it as `timeout`.

        Raises:
            TrustError: the authorities of the webhook cannot be read.
            PostError: it cannot be reached, refuses, or takes too long.
        """
        context = await self._trust.context(client.ca_bundle)
        url = f"{client.address}?timeout={seconds}s"
        code, content, is_text = 0, b"", False
        try:
            async with move_on_after(self._clock, seconds) as scope:
                try:
                    code, content, is_text = await self._exchange(client, url, body, context)
                except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, ConnectionError) as error:
                    # The webhook may have closed an idle connection just when it was used again.
                    if isinstance(error, aiohttp.ClientConnectorError):
                        raise
                    code, content, is_text = await self._exchange(client, url, body, context)
        except (aiohttp.ClientError, UnresolvedError, OSError, ValueError) as error:
            raise PostError(f'Post "{url}": {_described(error)}') from error
        if scope.cancelled_caught:
            raise PostError(f'Post "{url}": context deadline exceeded')
        if not 200 <= code <= 206:
            said = " ".join(content.decode(errors="replace").split()) if is_text else ""
            raise PostError(f"the server responded with the status code {code}: {said or http.HTTPStatus(code).phrase}")
        return content

    async def _exchange(
        self, client: ClientConfig, url: str, body: bytes, context: ssl.SSLContext
    ) -> tuple[int, bytes, bool]:
        """Code and body of one answer, and whether the body is text for people."""
        target = URL(url, encoded=True)
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "kube-apiserver"}
        # A little that is packed could be unpacked to more than any limit, and no review gains by it.
        headers["Accept-Encoding"] = "identity"
        options: dict[str, Any] = {}
        if client.service is not None:
            address = resolve(self._storage, client.service)
            headers["Host"] = f"{client.server_name}:{client.service.port}"
            target = target.with_host(address.host).with_port(address.port)
            options["server_hostname"] = client.server_name
        posting = self._session.post(target, data=body, headers=headers, ssl=context, allow_redirects=False, **options)
        async with posting as response:
            is_text = response.headers.get("Content-Type", "text/plain").startswith("text/")
            content = bytearray()
            async for chunk in response.content.iter_any():
                content += chunk
                if len(content) > MAX_ANSWER_BYTES:
                    raise ValueError(f"the answer has more than {MAX_ANSWER_BYTES} bytes")
            return response.status, bytes(content), is_text


@asynccontextmanager
async def webhook_client(storage: Storage, clock: Clock) -> AsyncIterator[WebhookClient]:
    """A client whose connections last as long as the context."""
    # Each webhook has its own time limit, and calls do not wait for each other.
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=None)
    jar = aiohttp.DummyCookieJar()
    async with aiohttp.ClientSession(
        connector=connector, timeout=timeout, cookie_jar=jar, auto_decompress=False
    ) as session:
        yield WebhookClient(session, storage, clock)


def _described(error: Exception) -> str:
    cause = getattr(error, "os_error", None) or error
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        message = getattr(error.certificate_error, "verify_message", None) or error.certificate_error
        return f"tls: failed to verify certificate: x509: {message}"
    if isinstance(error, aiohttp.ClientSSLError):
        return f"tls: {getattr(error.__cause__, 'reason', None) or error}"
    if isinstance(cause, OSError) and cause.errno:
        return os.strerror(cause.errno).lower()
    return " ".join(str(error).split())


class TrustError(Exception):
    """A `caBundle` that holds no certificates."""


class TrustStore:
    """Keeps one set of TLS settings per bundle, so that connections are used again."""

    def __init__(self) -> None:
        self._contexts: dict[str, ssl.SSLContext] = {}

    async def context(self, ca_bundle: str) -> ssl.SSLContext:
        """Settings that trust the certificates of a bundle and no other; "" trusts the machine's authorities.

        Raises:
            TrustError: the bundle cannot be read.
        """
        context = self._contexts.get(ca_bundle)
        if context is None:
            context = await anyio.to_thread.run_sync(_load, ca_bundle)
            if len(self._contexts) >= _KEPT:
                self._contexts.clear()
            self._contexts[ca_bundle] = context
        return context


def _load(ca_bundle: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if not ca_bundle:
        context.load_default_certs()
        return context
    try:
        context.load_verify_locations(cadata=base64.b64decode(ca_bundle, validate=True).decode("ascii"))
    except (binascii.Error, UnicodeDecodeError, ssl.SSLError, ValueError) as error:
        raise TrustError("unable to load root certificates: unable to parse bytes as PEM block") from error
    # Every certificate of the bundle is trusted as it is, also one that is no authority.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


@dataclass(frozen=True, slots=True)
class ServiceReference:
    """A Service in the cluster."""

    namespace: str
    name: str
    port: int = 443
    path: str = ""


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """Where a webhook is, and whom to trust there."""

    url: str = ""
    """"" when it is a Service."""
    service: ServiceReference | None = None
    ca_bundle: str = ""
    """PEM certificates in base64; "" trusts the authorities of the machine."""

    @classmethod
    def of(cls, config: Object) -> ClientConfig:
        """Read a `clientConfig`."""
        entry = config.get("service")
        service = None
        if entry is not None:
            path = entry.get("path") or ""
            service = ServiceReference(entry["namespace"], entry["name"], entry.get("port") or 443, path)
        return cls(config.get("url") or "", service, config.get("caBundle") or "")

    @property
    def address(self) -> str:
        """URL without the timeout parameter, as error messages show it."""
        if self.service is None:
            return self.url
        path = self.service.path if self.service.path.startswith("/") else f"/{self.service.path}"
        return f"https://{self.server_name}:{self.service.port}{path.rstrip('/') if path != '/' else path}"

    @property
    def server_name(self) -> str:
        """Host name that the certificate of a Service has to carry; "" leaves it to the URL."""
        return f"{self.service.name}.{self.service.namespace}.svc" if self.service is not None else ""
