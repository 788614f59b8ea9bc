"""Certificates for tests of TLS."""

from __future__ import annotations

import ssl
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Pair:
    """A certificate and its key as PEM."""

    chain: bytes
    key: bytes


class Authority:
    """A certificate authority.

    Its certificates are what VERIFY_X509_STRICT asks for, which `ssl.create_default_context` sets since Python 3.13.
    With `strict=False` they lack identifiers of keys and usages, as those of old clusters do.
    """

    def __init__(self, name: str = "ca", *, strict: bool = True) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._strict = strict
        builder = _builder(name, name, self._key, timedelta(hours=1)).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        if strict:
            identifier = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
            builder = builder.add_extension(identifier, critical=False).add_extension(_SIGNS, critical=True)
        self._certificate = builder.sign(self._key, hashes.SHA256())
        self.pem = self._certificate.public_bytes(serialization.Encoding.PEM)

    def issue(
        self, name: str, *hosts: str, lifetime: timedelta = timedelta(hours=1), password: bytes | None = None
    ) -> Pair:
        """A certificate for a client, or for a server with these host names and addresses."""
        key = ec.generate_private_key(ec.SECP256R1())
        issuer = self._certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value
        builder = _builder(name, str(issuer), key, lifetime)
        if hosts:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_general_name(host) for host in hosts]), critical=False
            )
        if self._strict:
            identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
            builder = builder.add_extension(identifier, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        encryption = (
            serialization.NoEncryption() if password is None else serialization.BestAvailableEncryption(password)
        )
        return Pair(
            certificate.public_bytes(serialization.Encoding.PEM),
            key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption),
        )

    def server_context(self, *hosts: str, lifetime: timedelta = timedelta(hours=1)) -> ssl.SSLContext:
        """TLS of a server with these names that asks for client certificates of this authority, but needs none."""
        pair = self.issue("server", *hosts, lifetime=lifetime)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.NamedTemporaryFile() as file:
            file.write(pair.chain + pair.key)
            file.flush()
            context.load_cert_chain(file.name)
        context.load_verify_locations(cadata=self.pem.decode())
        context.verify_mode = ssl.CERT_OPTIONAL
        return context


_SIGNS = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


def _builder(name: str, issuer: str, key: ec.EllipticCurvePrivateKey, lifetime: timedelta) -> x509.CertificateBuilder:
    end = datetime.now(UTC) + lifetime
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(datetime.now(UTC), end) - timedelta(minutes=1))
        .not_valid_after(end)
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)
