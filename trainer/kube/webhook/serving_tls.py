"""TLS of a server whose certificate is replaced while it listens.

Changing the SSL context of a listening socket would race with handshakes. So the socket has a context without a
certificate, and each handshake is given the context of the moment, by the callback that is meant for choosing one by
the name that the client asks for (and that is also called when it asks for none).
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

import anyio.to_thread

from trainer.kube.errors import ConfigurationError
from trainer.kube.rest.tls import expiry_of, load_pair

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from trainer.kube.webhook.certificates import ServingCertificate


class ServingTls:
    """The context for the listening socket, and the certificate that it shows.

    Args:
        client_ca: file with the authorities of clients, which must show a certificate then; None: they need none.
    """

    def __init__(self, client_ca: Path | None = None) -> None:
        self._client_ca = client_ca
        self.context = self._server_context()
        self.context.sni_callback = self._choose
        self.expiry: datetime | None = None
        """When the certificate in use expires; None as long as there is none."""
        self._present: ssl.SSLContext | None = None
        self._installed = anyio.Event()

    async def install(self, certificate: ServingCertificate) -> None:
        """Show this certificate to new connections; those that are open keep theirs.

        Raises:
            ConfigurationError: it cannot be used; the text is about "tls.crt and tls.key". The old one stays.
        """
        self._present, self.expiry = await anyio.to_thread.run_sync(self._load, certificate)
        self._installed.set()

    async def wait_for_certificate(self) -> None:
        """Wait until there is one."""
        await self._installed.wait()

    def _choose(self, connection: ssl.SSLSocket | ssl.SSLObject, _name: str | None, _: ssl.SSLContext) -> int | None:
        if self._present is None:
            return ssl.ALERT_DESCRIPTION_INTERNAL_ERROR
        connection.context = self._present
        return None

    def _server_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        if self._client_ca is not None:
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def _load(self, certificate: ServingCertificate) -> tuple[ssl.SSLContext, datetime | None]:
        context = self._server_context()
        try:
            load_pair(context, certificate.chain, certificate.key)
        except ValueError as error:
            raise ConfigurationError(str(error)) from error
        if self._client_ca is not None:
            try:
                context.load_verify_locations(self._client_ca)
            except OSError as error:  # that of OpenSSL is one of these
                reason = "it holds no PEM certificate" if isinstance(error, ssl.SSLError) else error.strerror
                raise ConfigurationError(f"cannot be used with the client CA {self._client_ca}: {reason}") from error
        return context, expiry_of(certificate.chain)
