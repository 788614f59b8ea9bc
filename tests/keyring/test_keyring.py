"""The authority of our own, and what it signs."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import NameOID

from trainer.keyring import CA_CERTIFICATES, CA_KEY, CERTIFICATE, KEY
from trainer.keyring.keyring import SKEW, Keyring, new_keyring

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
NAMES = ("webhook.system.svc", "127.0.0.1", "::1")


@pytest.fixture(scope="module")
def keyring() -> Keyring:
    return new_keyring("test", 100 * DAY, NAMES, 10 * DAY, NOW)


@pytest.fixture(scope="module")
def other() -> Keyring:
    return new_keyring("test", 100 * DAY, NAMES, 10 * DAY, NOW)


def test_certificates_are_what_clients_expect(keyring: Keyring) -> None:
    """ECDSA P-256; the authority may sign certificates and nothing below, the server's is for servers only."""
    [authority] = keyring.authorities
    for certificate in (authority, keyring.certificate):
        key = certificate.public_key()
        assert isinstance(key, ec.EllipticCurvePublicKey)
        assert key.curve.name == "secp256r1"
        assert certificate.not_valid_before_utc == NOW - SKEW
    assert authority.not_valid_after_utc == NOW + 100 * DAY
    assert keyring.certificate.not_valid_after_utc == NOW + 10 * DAY
    assert keyring.names == set(NAMES)
    assert keyring.signer == authority
    constraints = authority.extensions.get_extension_for_class(x509.BasicConstraints).value
    assert (constraints.ca, constraints.path_length) == (True, 0)
    purposes = keyring.certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert [purpose.dotted_string for purpose in purposes] == ["1.3.6.1.5.5.7.3.1"]


def test_strict_clients_trust_it() -> None:
    """OpenSSL checks everything that RFC 5280 asks for, in a handshake with the names of the server."""
    keyring = new_keyring("test", 100 * DAY, NAMES, 10 * DAY, datetime.now(UTC))
    keyring = keyring.with_authority("test", 100 * DAY, datetime.now(UTC))
    data = keyring.to_data()
    client = ssl.create_default_context(cadata=data[CA_CERTIFICATES].decode())
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    for name in NAMES:
        handshake(client, data, name)
    with pytest.raises(ssl.SSLCertVerificationError, match="not valid for"):
        handshake(client, data, "other.system.svc")


def handshake(client: ssl.SSLContext, data: dict[str, bytes], name: str) -> None:
    """Between two ends in memory."""
    from trainer.kube.rest.tls import load_pair

    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load_pair(server, data[CERTIFICATE], data[KEY])
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname=name),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    while ends:
        for end in tuple(ends):
            try:
                end.do_handshake()
                ends.remove(end)
            except ssl.SSLWantReadError:
                continue


def test_it_is_kept_whole(keyring: Keyring) -> None:
    """What is written is read back."""
    twice = keyring.with_authority("test", 100 * DAY, NOW)
    data = twice.to_data()
    assert list(data) == ["ca.crt", "ca.key", "tls.crt", "tls.key"]
    assert Keyring.parse(data).to_data() == data
    assert Keyring.parse(data).authorities == twice.authorities


def test_new_authority_is_trusted_beside_the_old(keyring: Keyring) -> None:
    """The certificate stays; what is signed next is signed by the new one, and then the old one can go."""
    twice = keyring.with_authority("test", 100 * DAY, NOW)
    assert twice.certificate == keyring.certificate
    assert twice.signer == twice.authorities[1] == keyring.authorities[0]
    assert twice.authorities[0].subject != twice.authorities[1].subject
    renewed = twice.with_certificate(NAMES, 10 * DAY, NOW)
    assert renewed.signer == twice.authorities[0]
    assert renewed.without_old_authorities().authorities == twice.authorities[:1]


def test_certificate_ends_with_its_authority(keyring: Keyring) -> None:
    """It would not be trusted for longer."""
    assert keyring.with_certificate(NAMES, 1000 * DAY, NOW).certificate.not_valid_after_utc == NOW + 100 * DAY


@pytest.mark.parametrize("missing", [CA_CERTIFICATES, CA_KEY, CERTIFICATE, KEY])
@pytest.mark.parametrize("content", [b"", b"nonsense"])
def test_what_is_missing_is_named(keyring: Keyring, missing: str, content: bytes) -> None:
    """By its key in the Secret."""
    with pytest.raises(ValueError, match=missing):
        Keyring.parse(keyring.to_data() | {missing: content})


@pytest.mark.parametrize(
    ("name", "message"),
    [
        pytest.param(CA_KEY, "ca.key is not the key of the first certificate in ca.crt", id="authority"),
        pytest.param(KEY, "tls.key is not the key of tls.crt", id="server"),
    ],
)
def test_keys_must_belong_to_their_certificates(keyring: Keyring, other: Keyring, name: str, message: str) -> None:
    """A mixture of two is refused."""
    with pytest.raises(ValueError, match=message):
        Keyring.parse(keyring.to_data() | {name: other.to_data()[name]})


def test_certificate_of_another_authority_has_no_signer(keyring: Keyring, other: Keyring) -> None:
    """However alike they are."""
    theirs = {name: other.to_data()[name] for name in (CERTIFICATE, KEY)}
    assert Keyring.parse(keyring.to_data() | theirs).signer is None


def test_rsa_goes_on_working() -> None:
    """As in a Secret that another rotator has filled: its authority signs on."""
    key = rsa.generate_private_key(65537, 2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "theirs")])
    authority = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, NOW, NOW + 100 * DAY)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    keyring = Keyring((authority,), key, authority, key).with_certificate(NAMES, DAY, NOW)
    assert Keyring.parse(keyring.to_data()).signer == authority


def test_other_keys_are_refused(keyring: Keyring) -> None:
    """What TLS servers here cannot use."""
    pem = ed25519.Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    with pytest.raises(ValueError, match=r"ca\.key holds a key that is neither ECDSA nor RSA"):
        Keyring.parse(keyring.to_data() | {CA_KEY: pem})


def test_keys_are_not_shown(keyring: Keyring) -> None:
    """Neither in logs nor in messages."""
    assert "key=" not in repr(keyring)
