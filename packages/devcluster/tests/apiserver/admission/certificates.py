"""Certificates made on the fly for webhook servers."""

from __future__ import annotations

import base64
import ipaddress
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Certificate:
    """A certificate that signs itself, its key, and the files in which both are."""

    pem: bytes
    file: Path

    @property
    def ca_bundle(self) -> str:
        """What goes into a `caBundle` to trust it."""
        return base64.b64encode(self.pem).decode()

    def server_context(self) -> ssl.SSLContext:
        """Settings of a server that shows it."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.file)
        return context


def issue(
    directory: Path, names: Sequence[str] = (), *, addresses: Sequence[str] = ("127.0.0.1",), days: int = 1
) -> Certificate:
    """A certificate for DNS names and addresses; one with negative `days` has ended."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "webhook")])
    alternatives: list[x509.GeneralName] = [x509.DNSName(name) for name in names]
    alternatives += [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
    end = datetime.now(UTC) + timedelta(days=days)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(end - timedelta(days=2))
        .not_valid_after(end)
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file = directory / f"{x509.random_serial_number()}.pem"
    file.write_bytes(pem + secret)
    return Certificate(pem, file)
