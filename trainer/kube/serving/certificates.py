"""Certificates of servers: where they come from while servers run, and files as one such source."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

import anyio
import anyio.to_thread
import structlog

from trainer.kube.clock import Clock, SystemClock
from trainer.kube.errors import ConfigurationError
from trainer.kube.metrics import Metrics
from trainer.kube.metrics.certificates import CertificateSeries

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

log = structlog.get_logger(__name__)

POLL_SECONDS = 10.0
"""Pause between two looks at the files, as in controller-runtime's certificate watcher."""


@dataclass(frozen=True, slots=True)
class ServingCertificate:
    """A certificate chain, the server's own certificate first, and its private key, as PEM."""

    chain: bytes
    key: bytes = field(repr=False)


Use: TypeAlias = Callable[[ServingCertificate], Awaitable[None]]
"""Shows this certificate to new connections; raises `ConfigurationError` if that cannot be done, and keeps the old."""


class CaBundle:
    """The certificates by which clients recognise the server, as PEM; `b""` as long as they are not known."""

    def __init__(self) -> None:
        self._pem = b""
        self._changed = anyio.Event()

    @property
    def pem(self) -> bytes:
        """Those of the moment."""
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


class CertificateUsers:
    """The servers that show the certificates of one source, each of which gets every certificate once."""

    def __init__(self) -> None:
        self._given: dict[Use, ServingCertificate | None] = {}
        self._latest: ServingCertificate | None = None
        self.turn = anyio.Lock()
        """Held by that `CertificateSource.run` which does the work for all of them."""

    @asynccontextmanager
    async def joined(self, use: Use) -> AsyncIterator[None]:
        """Be one of them within the context; what the others show is shown at once, whatever the source says now."""
        self._given[use] = None
        try:
            if self._latest is not None:
                with suppress(ConfigurationError):  # as it does again when the source is looked at
                    await self.show(self._latest)
            yield
        finally:
            del self._given[use]

    async def show(self, certificate: ServingCertificate) -> bool:
        """Give a certificate to those that do not have it yet; whether there was any.

        Raises:
            ConfigurationError: that of the first one that cannot use it; the others have it.
        """
        failures: list[ConfigurationError] = []
        self._latest = certificate
        lacking = [use for use, given in self._given.items() if given != certificate]
        for use in lacking:
            try:
                await use(certificate)
            except ConfigurationError as error:
                failures.append(error)
            else:
                if use in self._given:
                    self._given[use] = certificate
        if failures:
            raise failures[0]
        return bool(lacking)


class CertificateSource(Protocol):
    """Gives servers their certificate, and the next one in time."""

    @property
    def ca(self) -> CaBundle:
        """What a `CaInjector` puts into webhook configurations; stays empty if the source does not know."""

    @property
    def problem(self) -> str:
        """Why there is no certificate, or no newer one, with the remedy; "" while all is well."""

    async def run(self, use: Use) -> None:
        """Give the certificate, and each later one, to `use`, until cancelled; called by each server that shows it."""

    async def refresh(self) -> None:
        """Look for a newer certificate and CA bundle now; failures show in `problem` and are not raised."""


class FileCertificates:
    """Certificates in a directory, as cert-manager or a mounted Secret keeps them; read again when they change.

    While new files cannot be used, the old ones stay in use, and a log line says why.

    Args:
        directory: has `tls.crt`, `tls.key` (not encrypted) and, if a `CaInjector` is to use it, `ca.crt`.
        clock: for the pauses; default: that of the machine.
        metrics: where the series of `CertificateSeries` go; default: nowhere.
    """

    def __init__(self, directory: Path, *, clock: Clock | None = None, metrics: Metrics | None = None) -> None:
        self.ca = CaBundle()
        self._directory = directory
        self._clock = clock or SystemClock()
        self._series = (metrics or Metrics()).series(CertificateSeries)
        self._lock = anyio.Lock()
        self._users = CertificateUsers()
        self._has_any = False
        self._problem = f"the certificate in {directory} has not been read yet"

    @property
    def problem(self) -> str:
        """Why the files cannot be used; "" while they can."""
        return self._problem

    async def run(self, use: Use) -> None:
        """See `CertificateSource.run`."""
        async with self._users.joined(use):
            await self.refresh()
            async with self._users.turn:
                while True:
                    await self._clock.sleep(POLL_SECONDS)
                    await self.refresh()

    async def refresh(self) -> None:
        """See `CertificateSource.refresh`."""
        async with self._lock:
            self._series.reads.inc()
            try:
                await self._read()
            except ConfigurationError as error:
                self._series.errors.inc()
                self._complain(str(error))
            else:
                self._problem = ""

    async def _read(self) -> None:
        files = await anyio.to_thread.run_sync(_read_files, self._directory)
        certificate = ServingCertificate(files.chain, files.key)
        try:
            is_new = await self._users.show(certificate)
        except ConfigurationError as error:
            raise ConfigurationError(f"tls.crt and tls.key in {self._directory} {error}") from error
        if is_new:
            log.info("read serving certificate", directory=str(self._directory), is_first=not self._has_any)
            self._has_any = True
        self.ca.set(files.ca)

    def _complain(self, problem: str) -> None:
        if problem != self._problem:
            self._problem = problem
            what = "keeping the old one" if self._has_any else "waiting for it"
            log.warning("could not use serving certificate", error=problem, then=what)


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
