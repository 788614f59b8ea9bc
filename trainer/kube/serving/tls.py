"""TLS of a server whose certificate is replaced while it listens.

Changing the SSL context of a listening socket would race with handshakes. So the socket has a context without a
certificate, and each handshake is given the context of the moment, by the callback that is meant for choosing one by
the name that the client asks for (and that is also called when it asks for none).
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Self

import anyio
import anyio.to_thread
from aiohttp import web

from trainer.kube.clock import Clock, move_on_after
from trainer.kube.errors import ConfigurationError
from trainer.kube.logger import get_logger
from trainer.kube.rest.tls import expiry_of, load_pair
from trainer.kube.serving.certificates import CertificateSource, ServingCertificate

log = get_logger(__name__)

POLL_SECONDS = 10.0
"""Pause between two looks at the file with the authorities of clients, as for the server's own certificate."""

CERTIFICATE_TIMEOUT = 120.0
"""Seconds until a server must have a certificate, else the manager stops; as long as for the first lists."""

_VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}

CIPHER_SUITES = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
}
"""Cipher suites of TLS 1.2 by the names of Go and Kubernetes, as OpenSSL calls them; those that Go calls insecure are
left out. Which of them can be used depends on the key of the certificate: ECDSA for those made here."""


@dataclass(frozen=True, slots=True)
class TlsOptions:
    """What is spoken with clients."""

    min_version: str = "1.2"
    """The oldest version: 1.2 or 1.3. Default: 1.2, which all clients of the last years speak."""
    cipher_suites: tuple[str, ...] = ()
    """Those of TLS 1.2 that are offered, by the names in `CIPHER_SUITES`; all of TLS 1.3 are always offered. Default:
    none, which means those that Python chooses."""

    def __post_init__(self) -> None:
        """Refuse what cannot be spoken.

        Raises:
            ValueError: names the field and what can be.
        """
        if self.min_version not in _VERSIONS:
            raise ValueError(f"min_version must be one of {', '.join(_VERSIONS)}, got {self.min_version!r}")
        if unknown := [name for name in self.cipher_suites if name not in CIPHER_SUITES]:
            known = ", ".join(CIPHER_SUITES)
            raise ValueError(f"cipher_suites must be some of {known}; got {', '.join(map(repr, unknown))}")

    def apply(self, context: ssl.SSLContext) -> None:
        """Have a context speak this."""
        context.minimum_version = _VERSIONS[self.min_version]
        if self.cipher_suites:
            context.set_ciphers(":".join(CIPHER_SUITES[name] for name in self.cipher_suites))


def common_names(request: web.BaseRequest) -> list[str]:
    """Those in the certificate that the client has shown, which TLS has verified; none without one."""
    certificate = request.get_extra_info("peercert") or {}
    parts = (attribute for part in certificate.get("subject", ()) for attribute in part)
    return [value for name, value in parts if name == "commonName"]


class ServingTls:
    """The context for the listening socket, and the certificate that it shows.

    With `client_ca`, a file with authorities, clients must show a certificate. `expires` is called with the time when
    the certificate in use expires, in seconds since 1970.
    """

    def __init__(
        self,
        client_ca: Path | None = None,
        options: TlsOptions | None = None,
        expires: Callable[[float], None] | None = None,
    ) -> None:
        self._client_ca = client_ca
        self._options = options or TlsOptions()
        self._expires = expires
        self.context = self._listening_context()
        if client_ca is not None:
            self.context = _WithoutSessions.of(self._listening_context)
        self.expiry: datetime | None = None
        """When the certificate in use expires; None as long as there is none."""
        self._present: ssl.SSLContext | None = None
        self._certificate: ServingCertificate | None = None
        self._authorities = b""
        self._installed = anyio.Event()
        self._lock = anyio.Lock()

    async def install(self, certificate: ServingCertificate) -> None:
        """Show this certificate to new connections; those that are open keep theirs.

        Raises:
            ConfigurationError: it cannot be used; the text is about "tls.crt and tls.key". The old one stays.
        """
        async with self._lock:
            authorities = await anyio.to_thread.run_sync(self._read_authorities)
            await self._use(certificate, authorities)

    async def require_certificate(
        self, source: CertificateSource, clock: Clock, *, what: str, with_authority: bool = False
    ) -> None:
        """Wait until a certificate is installed, for at most `CERTIFICATE_TIMEOUT`.

        Args:
            source: the source that gives the certificate to this server.
            clock: the clock of the server.
            what: the certificate, as the error calls it.
            with_authority: whether clients need the CA bundle of the source as well. Default: no.

        Raises:
            ConfigurationError: there was none in time; the text says why.
        """
        async with move_on_after(clock, CERTIFICATE_TIMEOUT) as limit:
            await self._installed.wait()
            if with_authority:
                await source.ca.other_than(b"")
        if limit.cancelled_caught:
            problem = source.problem or "there is no ca.crt beside tls.crt, by which clients could verify it"
            raise ConfigurationError(f"no {what} within {CERTIFICATE_TIMEOUT:g} s: {problem}")

    async def follow_client_ca(self, clock: Clock) -> None:
        """Read the authorities of clients again when their file changes, until cancelled.

        While the file cannot be used, the old authorities stay in use, and a log line says why.
        """
        if self._client_ca is None:
            return
        problem = ""
        while True:
            await clock.sleep(POLL_SECONDS)
            try:
                await self._refresh_authorities()
            except ConfigurationError as error:
                if str(error) != problem:
                    log.warning("could not use client authorities", error=str(error), then="keeping the old ones")
                problem = str(error)
            else:
                problem = ""

    async def _refresh_authorities(self) -> None:
        async with self._lock:
            authorities = await anyio.to_thread.run_sync(self._read_authorities)
            if self._certificate is None or authorities == self._authorities:
                return
            await self._use(self._certificate, authorities)
            log.info("read client authorities", file=str(self._client_ca))

    async def _use(self, certificate: ServingCertificate, authorities: bytes) -> None:
        self._present, self.expiry = await anyio.to_thread.run_sync(self._load, certificate, authorities)
        self._certificate, self._authorities = certificate, authorities
        if self._expires is not None and self.expiry is not None:
            self._expires(self.expiry.timestamp())
        self._installed.set()

    def _choose(self, connection: ssl.SSLSocket | ssl.SSLObject, _name: str | None, _: ssl.SSLContext) -> int | None:
        if self._present is None:
            return ssl.ALERT_DESCRIPTION_INTERNAL_ERROR
        connection.context = self._present
        return None

    def _listening_context(self) -> ssl.SSLContext:
        context = self._server_context()
        context.sni_callback = self._choose
        return context

    def _server_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._options.apply(context)
        # It costs the server more than the client, and nobody needs it.
        context.options |= ssl.OP_NO_RENEGOTIATION
        context.set_alpn_protocols(["http/1.1"])
        if self._client_ca is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            # A session that is resumed would outlive the authority that has let it in.
            context.options |= ssl.OP_NO_TICKET
            context.num_tickets = 0
        return context

    def _read_authorities(self) -> bytes:
        if self._client_ca is None:
            return b""
        try:
            return self._client_ca.read_bytes()
        except OSError as error:
            raise self._unusable(str(error.strerror)) from error

    def _load(self, certificate: ServingCertificate, authorities: bytes) -> tuple[ssl.SSLContext, datetime | None]:
        context = self._server_context()
        try:
            load_pair(context, certificate.chain, certificate.key)
        except ValueError as error:
            raise ConfigurationError(str(error)) from error
        if self._client_ca is not None:
            try:
                context.load_verify_locations(cadata=authorities.decode("ascii", errors="replace"))
            except (ValueError, ssl.SSLError) as error:
                raise self._unusable("it holds no PEM certificate") from error
        return context, certificate.expiry or expiry_of(certificate.chain)

    def _unusable(self, reason: str) -> ConfigurationError:
        return ConfigurationError(f"cannot be used with the client CA {self._client_ca}: {reason}")


class _WithoutSessions(ssl.SSLContext):
    """A listening context that gives each connection a context of its own.

    With OpenSSL 3.6 a listening context keeps sessions of TLS 1.2, also without tickets, and `ssl` has no way to
    switch that off. What a connection leaves in its own context ends with it.
    """

    _make: Callable[[], ssl.SSLContext]

    @classmethod
    def of(cls, make: Callable[[], ssl.SSLContext]) -> Self:
        """A context for a socket whose connections have what `make` gives."""
        context = cls(ssl.PROTOCOL_TLS_SERVER)
        context._make = make
        return context

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        """See `ssl.SSLContext.wrap_bio`."""
        context = self._make()
        connection = context.wrap_bio(incoming, outgoing, server_side, server_hostname, session)
        # OpenSSL calls back through it, also when the callback has put another context in its place.
        connection.__dict__["listening_context"] = context
        return connection
