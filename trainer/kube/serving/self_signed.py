"""Self-signed certificates, for servers whose clients do not check who answers."""

from __future__ import annotations

import socket
from datetime import timedelta
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import structlog

from trainer.kube.clock import Clock, SystemClock
from trainer.kube.errors import ConfigurationError
from trainer.kube.serving.certificates import CaBundle, CertificateUsers, ServingCertificate

if TYPE_CHECKING:
    from datetime import datetime

    from trainer.kube.serving.certificates import Use

log = structlog.get_logger(__name__)

LIFETIME = timedelta(days=365)
"""How long a certificate is valid; after two thirds of it comes the next."""


class SelfSignedCertificates:
    """A `CertificateSource` that makes certificates in memory, each with an authority of its own.

    It is what controller-runtime serves metrics with when it is given no certificate: nobody can listen in, but clients
    cannot tell it from others (`insecure_skip_verify` in Prometheus).

    Args:
        clock: default: that of the machine.
    """

    def __init__(self, *, clock: Clock | None = None) -> None:
        self.ca = CaBundle()
        self.problem = ""
        self._clock = clock or SystemClock()
        self._users = CertificateUsers()
        self._lock = anyio.Lock()
        self._present: ServingCertificate | None = None
        self._renewal = self._clock.now()

    async def run(self, use: Use) -> None:
        """See `CertificateSource.run`."""
        async with self._users.joined(use):
            await self.refresh()
            async with self._users.turn:
                while True:
                    await self._clock.sleep(max((self._renewal - self._clock.now()).total_seconds(), 1))
                    await self.refresh()

    async def refresh(self) -> None:
        """See `CertificateSource.refresh`."""
        async with self._lock:
            now = self._clock.now()
            certificate = self._present
            if certificate is None or now >= self._renewal:
                certificate = await self._renew(now)
            try:
                await self._users.show(certificate)
                self.problem = ""
            except ConfigurationError as error:
                self.problem = f"the self-signed certificate: {error}"

    async def _renew(self, now: datetime) -> ServingCertificate:
        certificate, authority = await anyio.to_thread.run_sync(_make, now)
        self._present, self._renewal = certificate, now + LIFETIME * 2 / 3
        self.ca.set(authority)
        log.info("made self-signed certificate")
        return certificate


def _make(now: datetime) -> tuple[ServingCertificate, bytes]:
    from trainer.kube.serving.keyring import CA_CERTIFICATES, CERTIFICATE, KEY, new_keyring  # noqa: PLC0415 - slow

    names = {"localhost", "127.0.0.1", "::1", socket.gethostname()}
    data = new_keyring("self-signed", 3 * LIFETIME, names, LIFETIME, now).to_data()
    return ServingCertificate(data[CERTIFICATE], data[KEY]), data[CA_CERTIFICATES]
