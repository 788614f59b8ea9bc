"""Certificates of servers: where they come from while servers run; as files, or made in memory."""

from __future__ import annotations

import socket
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple, TypeAlias

import anyio
import anyio.to_thread

from trainer.kube.clock import Clock, SystemClock
from trainer.kube.errors import ConfigurationError, KubeError
from trainer.kube.logger import get_logger
from trainer.kube.metrics import Metrics
from trainer.kube.metrics.servers import CertificateSeries

log = get_logger(__name__)

POLL_SECONDS = 10.0
"""Pause between two looks at the files, as in controller-runtime's certificate watcher."""

SELF_SIGNED_LIFETIME = timedelta(days=365)


@dataclass(frozen=True, slots=True)
class ServingCertificate:
    """A certificate chain, the server's own certificate first, and its private key, as PEM."""

    chain: bytes
    key: bytes = field(repr=False)
    expiry: datetime | None = field(default=None, compare=False)
    """When it expires. Default: None, to be read in the chain, with a library that takes 8 MiB."""


Use: TypeAlias = Callable[[ServingCertificate], Awaitable[None]]
"""Shows this certificate to new connections; raises `ConfigurationError` if that cannot be done, and keeps the old."""


class CaBundle:
    """The certificates by which clients recognise the server, as PEM; `b""` as long as they are not known."""

    def __init__(self) -> None:
        self._pem = b""
        self._changed = anyio.Event()

    @property
    def pem(self) -> bytes:
        """The certificates of the moment."""
        return self._pem

    def set(self, pem: bytes) -> None:
        """Replace them, for the source."""
        if pem != self._pem:
            self._pem = pem
            self._changed.set()
            self._changed = anyio.Event()

    async def other_than(self, pem: bytes) -> bytes:
        """Wait until they are not these, and return them."""
        while self._pem == pem:
            await self._changed.wait()
        return self._pem


class CertificateSource(ABC):
    """Gives servers their certificate, and the next one in time; several servers may show those of one source.

    `problem` says why there is none before the first look.
    """

    def __init__(self, problem: str, clock: Clock | None) -> None:
        self.ca = CaBundle()
        """What a `CaInjector` puts into webhook configurations; stays empty if the source does not know."""
        self.problem = problem
        """Why there is no certificate, or no newer one, with the remedy; "" while all is well."""
        self._clock = clock or SystemClock()
        self._given: dict[Use, ServingCertificate | None] = {}
        self._latest: ServingCertificate | None = None
        self._looking = anyio.Lock()
        self._turn = anyio.Lock()
        """Held by that `run` which looks for all of them."""

    async def run(self, use: Use) -> None:
        """Give the certificate, and each later one, to `use`, until cancelled; called by each server that shows it."""
        self._given[use] = None
        try:
            if self._latest is not None:
                # At once, whatever the source says now; a failure comes again when it is looked at.
                with suppress(ConfigurationError):
                    await self._show(self._latest)
            await self.refresh()
            async with self._turn:
                while True:
                    await self._clock.sleep(self._pause())
                    await self.refresh()
        finally:
            del self._given[use]

    async def refresh(self) -> None:
        """Look for a newer certificate and CA bundle now; failures show in `problem` and are not raised."""
        async with self._looking:
            problem = ""
            try:
                await self._look()
            except KubeError as error:
                problem = str(error)
            if problem and problem != self.problem:
                then = "waiting for it" if self._latest is None else "keeping the old one"
                log.warning("could not get serving certificate", error=problem, then=then)
            self.problem = problem

    @abstractmethod
    async def _look(self) -> None:
        """Show the present certificate; raises `KubeError` when there is none, or it cannot be used."""

    @abstractmethod
    def _pause(self) -> float:
        """Seconds until the next look."""

    async def _show(self, certificate: ServingCertificate) -> bool:
        """Give a certificate to the servers that do not have it yet; whether there was any.

        Raises:
            ConfigurationError: that of the first one that cannot use it; the others have it.
        """
        failures: list[ConfigurationError] = []
        lacking = [use for use, given in self._given.items() if given != certificate]
        for use in lacking:
            try:
                await use(certificate)
            except ConfigurationError as error:
                failures.append(error)
            else:
                self._latest = certificate
                if use in self._given:
                    self._given[use] = certificate
        if failures:
            raise failures[0]
        return bool(lacking)


class FileCertificates(CertificateSource):
    """Certificates in a directory, as cert-manager or a mounted Secret keeps them; read again when they change.

    While new files cannot be used, the old ones stay in use, and a log line says why.

    Args:
        directory: has `tls.crt`, `tls.key` (not encrypted) and, if a `CaInjector` is to use it, `ca.crt`.
        clock: for the pauses; default: that of the machine.
        metrics: where the series of `CertificateSeries` go; default: nowhere.
    """

    def __init__(self, directory: Path, *, clock: Clock | None = None, metrics: Metrics | None = None) -> None:
        super().__init__(f"the certificate in {directory} has not been read yet", clock)
        self._directory = directory
        self._series = (metrics or Metrics()).series(CertificateSeries)

    async def _look(self) -> None:
        self._series.reads.inc()
        try:
            await self._read()
        except ConfigurationError:
            self._series.errors.inc()
            raise

    async def _read(self) -> None:
        files = await anyio.to_thread.run_sync(_read_files, self._directory)
        try:
            if await self._show(ServingCertificate(files.chain, files.key)):
                log.info("read serving certificate", directory=str(self._directory))
        except ConfigurationError as error:
            raise ConfigurationError(f"tls.crt and tls.key in {self._directory} {error}") from error
        self.ca.set(files.ca)

    def _pause(self) -> float:
        return POLL_SECONDS


class _Files(NamedTuple):
    chain: bytes
    key: bytes
    ca: bytes


def _read_files(directory: Path) -> _Files:
    """The files of one moment; blocks.

    The kubelet replaces all files of a mounted Secret at once, by pointing `..data` at another directory. Whoever looks
    it up for each file anew may get the certificate of the one and the key of the other.
    """
    volume = directory / "..data"
    place = volume.resolve() if volume.exists() else directory
    try:
        ca = (place / "ca.crt").read_bytes() if (place / "ca.crt").exists() else b""
        return _Files((place / "tls.crt").read_bytes(), (place / "tls.key").read_bytes(), ca)
    except OSError as error:
        raise ConfigurationError(
            f"cannot read {error.filename}: {error.strerror}; put tls.crt and tls.key into {directory}, "
            "or mount the Secret that holds them there"
        ) from error


class SelfSignedCertificates(CertificateSource):
    """Certificates that are made in memory, each with an authority of its own, for a year, renewed after eight months.

    It is what controller-runtime serves metrics with when it is given no certificate: nobody can listen in, but clients
    cannot tell it from others (`insecure_skip_verify` in Prometheus).
    """

    def __init__(self, *, clock: Clock | None = None) -> None:
        super().__init__("", clock)
        self._present: ServingCertificate | None = None
        self._renewal = self._clock.now()

    async def _look(self) -> None:
        now = self._clock.now()
        if self._present is None or now >= self._renewal:
            made, authority = await anyio.to_thread.run_sync(_make, now)
            self._present = made
            self._renewal = now + SELF_SIGNED_LIFETIME * 2 / 3
            self.ca.set(authority)
            log.info("made self-signed certificate")
        try:
            await self._show(self._present)
        except ConfigurationError as error:
            raise ConfigurationError(f"the self-signed certificate: {error}") from error

    def _pause(self) -> float:
        return max((self._renewal - self._clock.now()).total_seconds(), 1)


def _make(now: datetime) -> tuple[ServingCertificate, bytes]:
    from trainer.keyring import CA_CERTIFICATES, CERTIFICATE, KEY  # noqa: PLC0415 - slow
    from trainer.keyring.keyring import new_keyring  # noqa: PLC0415 - slow

    names = {"localhost", "127.0.0.1", "::1", socket.gethostname()}
    data = new_keyring("self-signed", 3 * SELF_SIGNED_LIFETIME, names, SELF_SIGNED_LIFETIME, now).to_data()
    return ServingCertificate(data[CERTIFICATE], data[KEY]), data[CA_CERTIFICATES]
