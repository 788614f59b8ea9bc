"""TLS whose certificate is replaced."""

from __future__ import annotations

import ssl
from datetime import timedelta
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import pytest

from tests.kube.certificates import Authority
from trainer.kube.errors import ConfigurationError
from trainer.kube.rest.tls import load_pair
from trainer.kube.webhook.certificates import ServingCertificate
from trainer.kube.webhook.serving_tls import ServingTls

if TYPE_CHECKING:
    from pathlib import Path

    from tests.kube.certificates import Pair

AUTHORITY = Authority()


def handshake(server: ssl.SSLContext, name: str | None = None, client: ssl.SSLContext | None = None) -> ssl.SSLObject:
    """Between two ends in memory; returns that of the client."""
    client = client or ssl.create_default_context(cadata=AUTHORITY.pem.decode())
    client.check_hostname = name is not None
    client.set_alpn_protocols(["h2", "http/1.1"])
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    end = client.wrap_bio(to_client, to_server, server_hostname=name)
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
        await tls.wait_for_certificate()
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


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_clients_may_have_to_show_a_certificate(tmp_path: Path, version: ssl.TLSVersion) -> None:
    """One that an authority in the file has signed."""
    api_servers = Authority("api-servers")
    file = tmp_path / "client-ca.crt"
    await anyio.Path(file).write_bytes(api_servers.pem)
    tls = ServingTls(file)
    await tls.install(certificate_of(AUTHORITY.issue("w", "webhook.system.svc")))
    theirs, strangers = api_servers.issue("api-server"), Authority("strangers").issue("api-server")
    assert handshake(tls.context, None, await client_with(theirs, version)).getpeercert()
    for pair in (strangers, None):
        with pytest.raises(ssl.SSLError, match=r"certificate verify failed|peer did not return a certificate"):
            handshake(tls.context, None, await client_with(pair, version))


async def client_with(pair: Pair | None, version: ssl.TLSVersion) -> ssl.SSLContext:
    """A client that shows this certificate."""
    context = ssl.create_default_context(cadata=AUTHORITY.pem.decode())
    context.maximum_version = version
    if pair is not None:
        await anyio.to_thread.run_sync(load_pair, context, pair.chain, pair.key)
    return context


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
