"""TLS: a certificate authority of this cluster alone and the certificate with which the server shows itself."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from trainer.keyring import CA_CERTIFICATES, CA_KEY, CERTIFICATE, KEY
from trainer.keyring.keyring import Keyring, new_keyring
from trainer_devcluster.apiserver.storage.data_directory import refuse_content, write_private

LIFETIME = timedelta(days=3650)
SERVICE_ADDRESS = "10.96.0.1"
"""Cluster IP of the Service `kubernetes`, under which pods reach the server: the first of the Services' addresses."""
SERVER_NAMES = (
    "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
    "127.0.0.1", SERVICE_ADDRESS,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ServerTls:
    """The server's certificate and key, and the authority that its clients trust."""

    ca_pem: str
    certificate_path: Path
    """PEM file with the serving certificate."""
    key_path: Path
    """PEM file with its private key, mode 0600."""

    def server_context(self) -> ssl.SSLContext:
        """Settings of the listening side; reads both files."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.certificate_path, self.key_path)
        return context


def issue_serving_certificate(directory: Path) -> ServerTls:
    """A serving certificate signed by the authority in `directory`, which is made first when there is none.

    The authority (`ca.crt`, `ca.key`) stays the same over restarts, so that kubeconfig files keep working; the serving
    certificate is issued anew each time. Keys get mode 0600.

    Raises:
        OSError: a file cannot be read or written, or holds something else.
    """
    now, authority = datetime.now(UTC), _load_authority(directory)
    if authority is None:
        issued = new_keyring("trainer-dev", LIFETIME, SERVER_NAMES, LIFETIME, now).to_data()
        write_private(directory / "ca.crt", issued[CA_CERTIFICATES])
        write_private(directory / "ca.key", issued[CA_KEY])
    else:
        issued = authority.with_certificate(SERVER_NAMES, LIFETIME, now).to_data()
    certificate_path, key_path = directory / "apiserver.crt", directory / "apiserver.key"
    write_private(certificate_path, issued[CERTIFICATE])
    write_private(key_path, issued[KEY])
    return ServerTls(issued[CA_CERTIFICATES].decode(), certificate_path, key_path)


def _load_authority(directory: Path) -> Keyring | None:
    """The authority with its own certificate in place of a serving one."""
    certificate_path, key_path = directory / "ca.crt", directory / "ca.key"
    if not (certificate_path.exists() and key_path.exists()):
        return None
    try:
        certificate = x509.load_pem_x509_certificate(certificate_path.read_bytes())
    except ValueError as error:
        refuse_content(certificate_path, error)
    try:
        key = serialization.load_pem_private_key(key_path.read_bytes(), password=None)
    except (ValueError, TypeError) as error:
        refuse_content(key_path, error)
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
        refuse_content(key_path, f"it does not belong to {certificate_path.name}")
    return Keyring((certificate,), key, certificate, key)
