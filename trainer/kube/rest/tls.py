"""TLS to the API server whose certificates may be replaced while we run.

A CA is rotated and client certificates expire within a process's life. Each request asks for the context to use; when
the files have other contents, the answer is a new context. Connections are pooled by context, so new requests use new
connections while running watches keep theirs.
"""

from __future__ import annotations

import ssl
import tempfile
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import anyio

from trainer.kube.clock import Clock, SystemClock
from trainer.kube.errors import ConfigurationError
from trainer.kube.logger import get_logger
from trainer.kube.metrics.requests import RequestMetrics

log = get_logger(__name__)

POLL_SECONDS = 10.0
"""Files are compared with what is in use this often at most, as controller-runtime's certificate watcher does."""


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """A certificate chain and its private key, as PEM."""

    chain: bytes
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class ClientTls:
    """How to recognise the server, and what to show it; each as a file that may change, or as PEM."""

    ca: Path | bytes | None = None
    """Certificates of the authorities that are trusted. Default: those of the machine."""
    certificate: Path | bytes | None = None
    """Client certificate chain. Default: none; the Authorization header says who we are."""
    key: Path | bytes | None = field(default=None, repr=False)
    """Private key of the client certificate, not encrypted. Default: none."""
    verify: bool = True
    """Whether the server's certificate is checked. Default: True; False lets anyone read the credentials."""
    origin: str = "TLS options"
    """Where these come from, for messages: the kubeconfig or the service account."""


class ReloadingTls:
    """The SSL context of the moment."""

    def __init__(
        self,
        options: ClientTls,
        *,
        clock: Clock | None = None,
        metrics: RequestMetrics | None = None,
    ) -> None:
        self._options = options
        self._clock = clock or SystemClock()
        self._metrics = metrics
        self._has_files = any(isinstance(source, Path) for source in (options.ca, options.certificate, options.key))
        self._lock = anyio.Lock()
        self._checked_at = 0.0
        self._given: ClientCertificate | None = None
        self._loaded: _Loaded | None = None
        self._logged_failure = ""

    @property
    def certificate_expiry(self) -> datetime | None:
        """When the client certificate in use expires; None without one."""
        return self._loaded.expiry if self._loaded is not None else None

    async def context(self, certificate: ClientCertificate | None = None) -> ssl.SSLContext:
        """The context for the next request; the same object as long as nothing has changed.

        The certificate, which comes from an exec plugin, is shown instead of the one in the options.

        Raises:
            ConfigurationError: nothing usable was ever there. Later failures are logged, and the old context kept.
        """
        loaded = self._loaded
        if loaded is not None and certificate == self._given and not self._is_due():
            return loaded.context
        async with self._lock:
            if self._loaded is None or certificate != self._given or self._is_due():
                return (await self._check(certificate)).context
            return self._loaded.context

    async def check_now(self) -> bool:
        """Look at the files without waiting for the next poll; whether they hold something else than before."""
        async with self._lock:
            before = self._loaded
            return await self._check(self._given) is not before

    def _is_due(self) -> bool:
        return self._has_files and self._clock.monotonic() - self._checked_at >= POLL_SECONDS

    async def _check(self, certificate: ClientCertificate | None) -> _Loaded:
        self._checked_at = self._clock.monotonic()
        present = self._loaded
        try:
            loaded = await anyio.to_thread.run_sync(_load, self._options, certificate, present)
        except ConfigurationError as error:
            if present is None:
                raise
            self._given = certificate
            self._log_failure(error)
            return present
        self._given = certificate
        self._logged_failure = ""
        if loaded is present:
            return loaded
        if present is not None:
            self._count(success=True)
            log.info("reloaded TLS certificates", origin=self._options.origin)
        self._loaded = loaded
        if loaded.expiry is not None and loaded.expiry <= self._clock.now():
            log.warning(
                "client certificate has expired", origin=self._options.origin, expired_at=loaded.expiry.isoformat()
            )
        return loaded

    def _log_failure(self, error: ConfigurationError) -> None:
        if str(error) != self._logged_failure:
            self._logged_failure = str(error)
            self._count(success=False)
            log.warning("could not reload TLS certificates, keeping the old ones", error=str(error))

    def _count(self, *, success: bool) -> None:
        if self._metrics is not None:
            self._metrics.reloaded_tls(success=success)


class _Material(NamedTuple):
    ca: bytes | None
    chain: bytes | None
    key: bytes | None


@dataclass(frozen=True, slots=True)
class _Loaded:
    material: _Material
    context: ssl.SSLContext
    expiry: datetime | None


def _load(options: ClientTls, certificate: ClientCertificate | None, present: _Loaded | None) -> _Loaded:
    """What the files hold now; the present object if that is what it was made from. Blocks."""
    ca = _read(options, options.ca, "certificate-authority")
    if certificate is not None:
        material = _Material(ca, certificate.chain, certificate.key)
    else:
        chain = _read(options, options.certificate, "client-certificate")
        material = _Material(ca, chain, _read(options, options.key, "client-key"))
    if present is not None and material == present.material:
        return present
    return _Loaded(material, _context(options, material), expiry_of(material.chain))


def _read(options: ClientTls, source: Path | bytes | None, name: str) -> bytes | None:
    if not isinstance(source, Path):
        return source
    try:
        return source.read_bytes()
    except OSError as error:
        raise ConfigurationError(
            f"{options.origin}: cannot read {name} {source}: {error.strerror}; restore the file or correct the path"
        ) from error


def _context(options: ClientTls, material: _Material) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_alpn_protocols(["http/1.1"])
    # As in Go: a certificate in the bundle is trusted even if it is not self-signed.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if not options.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif material.ca is None:
        context.load_default_certs()
    else:
        _load_ca(options, context, material.ca)
    if material.chain is not None or material.key is not None:
        _load_pair(options, context, material.chain or b"", material.key or b"")
    return context


def _load_ca(options: ClientTls, context: ssl.SSLContext, ca: bytes) -> None:
    try:
        # Bundles carry names in any encoding between the certificates.
        context.load_verify_locations(cadata=ca.decode("ascii", "ignore"))
    except (ssl.SSLError, ValueError) as error:
        raise ConfigurationError(
            f"{options.origin}: certificate-authority{_path(options.ca)} holds no PEM certificate"
        ) from error


def _load_pair(options: ClientTls, context: ssl.SSLContext, chain: bytes, key: bytes) -> None:
    try:
        load_pair(context, chain, key)
    except ValueError as error:
        subject = f"client-certificate{_path(options.certificate)} and client-key{_path(options.key)}"
        raise ConfigurationError(f"{options.origin}: {subject} {error}") from error


def load_pair(context: ssl.SSLContext, chain: bytes, key: bytes) -> None:
    """Have a context show this certificate, given as PEM; blocks.

    Raises:
        ValueError: they cannot be used; the text says why, with the two of them as its subject.
    """
    # OpenSSL reads only files; this one is readable by us alone and gone before the call returns.
    with tempfile.NamedTemporaryFile(prefix="tls-") as file:
        file.write(chain + b"\n" + key)
        file.flush()
        try:
            # Without a password OpenSSL would ask for one on the terminal.
            context.load_cert_chain(file.name, password="")
        except (ssl.SSLError, ValueError) as error:
            reason = getattr(error, "reason", None)
            problem = (
                "do not belong together" if reason == "KEY_VALUES_MISMATCH" else "are not a PEM certificate and PEM key"
            )
            raise ValueError(f"{problem} (encrypted keys do not work)") from error


def _path(source: Path | bytes | None) -> str:
    return f" {source}" if isinstance(source, Path) else ""


def expiry_of(chain: bytes | None) -> datetime | None:
    """End of the validity of the first certificate, which is the one that is shown; None without one."""
    if chain is None:
        return None
    from cryptography import x509  # noqa: PLC0415 - slow

    try:
        return x509.load_pem_x509_certificate(chain).not_valid_after_utc
    except ValueError:  # OpenSSL takes what this library finds malformed; the expiry is only for messages
        return None
