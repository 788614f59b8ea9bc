"""TLS whose certificate is replaced."""

from __future__ import annotations

import ssl
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from tests.kube.certificates import Authority, Pair
from trainer.kube.errors import ConfigurationError
from trainer.kube.rest.tls import load_pair
from trainer.kube.serving.certificates import ServingCertificate
from trainer.kube.serving.tls import CIPHER_SUITES, ServingTls, TlsOptions

AUTHORITY = Authority()


def handshake(
    server: ssl.SSLContext,
    name: str | None = None,
    client: ssl.SSLContext | None = None,
    session: ssl.SSLSession | None = None,
) -> ssl.SSLObject:
    """Between two ends in memory; returns that of the client."""
    client = client or ssl.create_default_context(cadata=AUTHORITY.pem.decode())
    client.check_hostname = name is not None
    client.set_alpn_protocols(["h2", "http/1.1"])
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    end = client.wrap_bio(to_client, to_server, server_hostname=name, session=session)
    ends = [end, server.wrap_bio(to_server, to_client, server_side=True)]
    while ends:
        for each in tuple(ends):
            try:
                each.do_handshake()
                ends.remove(each)
            except ssl.SSLWantReadError:
                continue
    return end


def certificate_of(pair: Pair) -> ServingCertificate:
    return ServingCertificate(pair.chain, pair.key)


@pytest.mark.parametrize("name", ["webhook.system.svc", None])
async def test_certificate_of_the_moment_is_shown(name: str | None) -> None:
    """Whether the client sends a name or not, over HTTP/1.1; the listening context stays the same."""
    tls = ServingTls()
    for lifetime in (timedelta(hours=1), timedelta(hours=2)):
        pair = AUTHORITY.issue("w", "webhook.system.svc", lifetime=lifetime)
        await tls.install(certificate_of(pair))
        client = handshake(tls.context, name)
        assert client.getpeercert(binary_form=True) == ssl.PEM_cert_to_DER_cert(pair.chain.decode())
        assert client.selected_alpn_protocol() == "http/1.1"
        shown = client.getpeercert()
        assert shown is not None
        assert tls.expiry is not None
        assert ssl.cert_time_to_seconds(str(shown["notAfter"])) == tls.expiry.timestamp()


async def test_without_certificate_there_is_no_connection() -> None:
    """The server ends the handshake."""
    tls = ServingTls()
    assert tls.expiry is None
    with pytest.raises(ssl.SSLError, match="callback failed"):
        handshake(tls.context)


async def test_unusable_certificate_leaves_the_old_one() -> None:
    """And says what is wrong with it."""
    tls = ServingTls()
    pair = AUTHORITY.issue("w", "webhook.system.svc")
    await tls.install(certificate_of(pair))
    expiry = tls.expiry
    with pytest.raises(ConfigurationError, match="do not belong together"):
        await tls.install(ServingCertificate(pair.chain, AUTHORITY.issue("other").key))
    with pytest.raises(ConfigurationError, match="are not a PEM certificate and PEM key"):
        await tls.install(ServingCertificate(b"nonsense", pair.key))
    assert tls.expiry == expiry
    assert handshake(tls.context, "webhook.system.svc").getpeercert()


async def client_with(pair: Pair | None, version: ssl.TLSVersion) -> ssl.SSLContext:
    """A client that shows this certificate."""
    context = ssl.create_default_context(cadata=AUTHORITY.pem.decode())
    context.maximum_version = version
    if pair is not None:
        await anyio.to_thread.run_sync(load_pair, context, pair.chain, pair.key)
    return context


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_clients_show_their_certificate_each_time(tmp_path: Path, version: ssl.TLSVersion) -> None:
    """A session cannot be resumed: it would outlive the authority that has let it in."""
    api_servers = Authority("api-servers")
    file = tmp_path / "client-ca.crt"
    await anyio.Path(file).write_bytes(api_servers.pem)
    tls = ServingTls(file)
    await tls.install(certificate_of(AUTHORITY.issue("w", "webhook.system.svc")))
    client = await client_with(api_servers.issue("api-server"), version)
    session = handshake(tls.context, None, client).session
    assert not handshake(tls.context, None, client, session).session_reused


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param(None, "No such file or directory", id="missing"),
        pytest.param(b"nonsense", "it holds no PEM certificate", id="nonsense"),
    ],
)
async def test_client_authorities_must_be_there(tmp_path: Path, content: bytes | None, problem: str) -> None:
    """Without them nobody would be let in, or anybody."""
    file = tmp_path / "client-ca.crt"
    if content is not None:
        await anyio.Path(file).write_bytes(content)
    with pytest.raises(ConfigurationError, match=f"cannot be used with the client CA {file}: {problem}"):
        await ServingTls(file).install(certificate_of(AUTHORITY.issue("w")))


async def test_cipher_suites_by_the_names_of_go() -> None:
    """Only those are spoken, in TLS 1.2."""
    tls = ServingTls(options=TlsOptions(cipher_suites=("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",)))
    await tls.install(certificate_of(AUTHORITY.issue("w", "webhook.system.svc")))
    client = ssl.create_default_context(cadata=AUTHORITY.pem.decode())
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    cipher = handshake(tls.context, client=client).cipher()
    assert cipher is not None
    assert cipher[0] == "ECDHE-ECDSA-AES256-GCM-SHA384"
    client.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256")
    with pytest.raises(ssl.SSLError):
        handshake(tls.context, client=client)


async def test_oldest_version() -> None:
    """Nothing below what is configured."""
    tls = ServingTls(options=TlsOptions(min_version="1.3"))
    await tls.install(certificate_of(AUTHORITY.issue("w", "webhook.system.svc")))
    assert handshake(tls.context).version() == "TLSv1.3"
    client = ssl.create_default_context(cadata=AUTHORITY.pem.decode())
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError):
        handshake(tls.context, client=client)


def test_known_cipher_suites_are_there() -> None:
    """OpenSSL knows each of them."""
    for name in CIPHER_SUITES:
        ServingTls(options=TlsOptions(cipher_suites=(name,)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param({"min_version": "1.1"}, "min_version must be one of 1.2, 1.3, got '1.1'", id="old"),
        pytest.param({"min_version": "VersionTLS12"}, "min_version must be one of", id="another-spelling"),
        pytest.param({"cipher_suites": ("NONE",)}, "cipher_suites must be some of TLS_.*; got 'NONE'", id="unknown"),
        pytest.param({"cipher_suites": ("TLS_RSA_WITH_RC4_128_SHA",)}, "got 'TLS_RSA_WITH_RC4_128_SHA'", id="insecure"),
    ],
)
def test_options_are_checked(options: dict[str, Any], message: str) -> None:
    """The field is named, and what it may be."""
    with pytest.raises(ValueError, match=message):
        TlsOptions(**options)
