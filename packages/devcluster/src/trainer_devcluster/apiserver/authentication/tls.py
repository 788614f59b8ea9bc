"""TLS: a certificate authority of this cluster alone and the certificate with which the server shows itself."""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from trainer_devcluster.apiserver.storage.data_directory import refuse_content, write_private

LIFETIME = timedelta(days=3650)
CLOCK_SKEW = timedelta(minutes=5)
SERVICE_ADDRESS = "10.96.0.1"
"""Cluster IP of the Service `kubernetes`, under which pods reach the server: the first of the Services' addresses."""
SERVER_NAMES = (
    "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
)  # fmt: skip
SERVER_ADDRESSES = ("127.0.0.1", SERVICE_ADDRESS)


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


def issue_serving_certificate(directory: Path, addresses: Sequence[str] = SERVER_ADDRESSES) -> ServerTls:
    """A serving certificate signed by the authority in `directory`, which is made first when there is none.

    The authority (`ca.crt`, `ca.key`) stays the same over restarts, so that kubeconfig files keep working; the serving
    certificate is issued anew each time.

    Args:
        directory: where the files live; keys get mode 0600.
        addresses: IP addresses under which clients reach the server.

    Raises:
        OSError: a file cannot be read or written, or holds something else.
    """
    authority, authority_key = _load_authority(directory) or _create_authority(directory)
    key = ec.generate_private_key(ec.SECP256R1())
    names: list[x509.GeneralName] = [x509.DNSName(name) for name in SERVER_NAMES]
    names += [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
    certificate = (
        _builder("trainer-dev-apiserver", key.public_key())
        .issuer_name(authority.subject)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    certificate_path, key_path = directory / "apiserver.crt", directory / "apiserver.key"
    write_private(certificate_path, _pem(certificate))
    write_private(key_path, _key_pem(key))
    return ServerTls(_pem(authority).decode(), certificate_path, key_path)


def _load_authority(directory: Path) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey] | None:
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
    return certificate, key


def _create_authority(directory: Path) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "trainer-dev-ca")])
    usage = x509.KeyUsage(
        digital_signature=True, key_cert_sign=True, crl_sign=True, content_commitment=False, key_encipherment=False,
        data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip
    certificate = (
        _builder("trainer-dev-ca", key.public_key())
        .issuer_name(name)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    write_private(directory / "ca.crt", _pem(certificate))
    write_private(directory / "ca.key", _key_pem(key))
    return certificate, key


def _builder(common_name: str, public_key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)]))
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + LIFETIME)
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
