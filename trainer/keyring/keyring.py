"""Keyring: a certificate authority of our own and the serving certificate that it has signed, as kept in one Secret.

ECDSA on P-256 for what is made here; other keys that are found in the Secret go on working until they are renewed.
Making keys and checking signatures takes milliseconds, so call it in a thread.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import TypeAlias

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from trainer.keyring import CA_CERTIFICATES, CA_KEY, CERTIFICATE, KEY

PrivateKey: TypeAlias = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey

SKEW = timedelta(minutes=5)
"""How much clocks of peers may be behind: certificates are valid from so long before they are made."""

_LONGEST_NAME = 64
"""Characters of a common name (RFC 5280, ub-common-name)."""


@dataclass(frozen=True, slots=True)
class Keyring:
    """Everything that a server needs to be recognised, now and when its certificate has been renewed."""

    authorities: tuple[x509.Certificate, ...]
    """The trusted authorities; the first one signs, the others have signed certificates that may still be in use."""
    authority_key: PrivateKey = field(repr=False)
    """Key of the first authority."""
    certificate: x509.Certificate
    """The certificate that the server shows."""
    key: PrivateKey = field(repr=False)
    """Key of the certificate."""

    @classmethod
    def parse(cls, data: Mapping[str, bytes]) -> Keyring:
        """Read what `to_data` has written.

        Raises:
            ValueError: it is incomplete, or its parts do not belong together; says which.
        """
        authorities = _certificates(data, CA_CERTIFICATES)
        keyring = cls(authorities, _key(data, CA_KEY), _certificates(data, CERTIFICATE)[0], _key(data, KEY))
        if keyring.authority_key.public_key() != authorities[0].public_key():
            raise ValueError(f"{CA_KEY} is not the key of the first certificate in {CA_CERTIFICATES}")
        if keyring.key.public_key() != keyring.certificate.public_key():
            raise ValueError(f"{KEY} is not the key of {CERTIFICATE}")
        return keyring

    def to_data(self) -> dict[str, bytes]:
        """Contents of the Secret, as PEM."""
        return {
            CA_CERTIFICATES: b"".join(map(_pem, self.authorities)),
            CA_KEY: _key_pem(self.authority_key),
            CERTIFICATE: _pem(self.certificate),
            KEY: _key_pem(self.key),
        }

    @property
    def names(self) -> frozenset[str]:
        """DNS names and IP addresses for which the certificate is."""
        try:
            names = self.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except x509.ExtensionNotFound:
            return frozenset()
        addresses = map(str, names.get_values_for_type(x509.IPAddress))
        return frozenset(names.get_values_for_type(x509.DNSName)).union(addresses)

    @property
    def signer(self) -> x509.Certificate | None:
        """The trusted authority that has signed the certificate; None if no trusted one has."""
        return next((authority for authority in self.authorities if _has_signed(authority, self.certificate)), None)

    def with_certificate(self, names: Iterable[str], lifetime: timedelta, now: datetime) -> Keyring:
        """A copy with a new certificate, signed by the first authority and valid no longer than it."""
        key = ec.generate_private_key(ec.SECP256R1())
        authority = self.authorities[0]
        certificate = (
            _builder("server", key, now, min(now + lifetime, authority.not_valid_after_utc))
            .issuer_name(authority.subject)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(_authority_identifier(authority), critical=False)
            .add_extension(x509.SubjectAlternativeName(map(_general_name, sorted(names))), critical=False)
            .sign(self.authority_key, hashes.SHA256())
        )
        return replace(self, certificate=certificate, key=key)

    def with_authority(self, name: str, lifetime: timedelta, now: datetime) -> Keyring:
        """A copy with a new authority that signs from now on; the present authorities stay trusted."""
        authority, key = new_authority(name, lifetime, now)
        return replace(self, authorities=(authority, *self.authorities), authority_key=key)

    def without_old_authorities(self) -> Keyring:
        """A copy with the first authority alone."""
        return replace(self, authorities=self.authorities[:1])


def new_keyring(
    name: str, authority_lifetime: timedelta, names: Iterable[str], lifetime: timedelta, now: datetime
) -> Keyring:
    """A keyring whose parts are all new; see `new_authority` and `Keyring.with_certificate`."""
    authority, key = new_authority(name, authority_lifetime, now)
    # The authority's own certificate stands in for the one that is made at once.
    return Keyring((authority,), key, authority, key).with_certificate(names, lifetime, now)


def new_authority(name: str, lifetime: timedelta, now: datetime) -> tuple[x509.Certificate, PrivateKey]:
    """A self-signed authority; its name has a part that no other has, since clients look authorities up by name."""
    key = ec.generate_private_key(ec.SECP256R1())
    common_name = f"{name}-ca@{int(now.timestamp())}-{secrets.token_hex(4)}"
    certificate = (
        _builder(common_name, key, now, now + lifetime)
        .issuer_name(_name(common_name))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    return certificate, key


def _builder(
    common_name: str, key: ec.EllipticCurvePrivateKey, now: datetime, end: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(_name(common_name))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SKEW)
        .not_valid_after(end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name[:_LONGEST_NAME])])


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True, key_cert_sign=signs_certificates, crl_sign=signs_certificates,
        content_commitment=False, key_encipherment=False, data_encipherment=False, key_agreement=False,
        encipher_only=False, decipher_only=False,
    )  # fmt: skip


def _authority_identifier(authority: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    try:
        identifier = authority.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    except x509.ExtensionNotFound:
        key = authority.public_key()
        assert isinstance(key, ec.EllipticCurvePublicKey | rsa.RSAPublicKey)
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(key)
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier)


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _has_signed(authority: x509.Certificate, certificate: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


def _certificates(data: Mapping[str, bytes], name: str) -> tuple[x509.Certificate, ...]:
    try:
        certificates = tuple(x509.load_pem_x509_certificates(data.get(name, b"")))
    except ValueError as error:
        raise ValueError(f"{name} holds no PEM certificate") from error
    try:
        for certificate in certificates:  # both are read when they are first asked for
            certificate.public_key()
            _ = certificate.extensions
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ValueError(f"{name} holds a certificate that cannot be used: {error}") from error
    return certificates


def _key(data: Mapping[str, bytes], name: str) -> PrivateKey:
    try:
        key = serialization.load_pem_private_key(data.get(name, b""), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise ValueError(f"{name} holds no PEM private key without a password") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
        raise ValueError(f"{name} holds a key that is neither ECDSA nor RSA")  # noqa: TRY004 - not of our types
    return key


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: PrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
