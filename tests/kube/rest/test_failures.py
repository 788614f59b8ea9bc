"""Servers that cannot be reached, and what the user reads."""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import timedelta
from typing import Protocol

import anyio
import pytest

from tests.kube.certificates import Authority
from tests.kube.secure_server import SecureServer
from trainer.kube.errors import TransportError, UntrustedServerError
from trainer.kube.rest import transport as transport_module
from trainer.kube.rest.credentials import FixedCredentials
from trainer.kube.rest.failures import answer_error
from trainer.kube.rest.request import Request
from trainer.kube.rest.tls import ClientTls
from trainer.kube.rest.transport import Endpoint, Transport

GET = Request("GET", "/version", {})
CA = Authority()
TRUST = ClientTls(ca=CA.pem)


class Failure(Protocol):
    """Sends a request that must fail, and returns how it did."""

    def __call__(self, endpoint: Endpoint, request: Request = GET) -> Awaitable[TransportError]: ...


async def failed_request(endpoint: Endpoint, request: Request = GET) -> TransportError:
    async with Transport(endpoint, FixedCredentials(), user_agent="trainer/test") as transport:
        with pytest.raises(TransportError) as raised:
            await transport.fetch(request)
    return raised.value


async def failed_stream(endpoint: Endpoint, request: Request = GET) -> TransportError:
    async with Transport(endpoint, FixedCredentials(), user_agent="trainer/test") as transport:
        with pytest.raises(TransportError) as raised:
            async with transport.stream(request, idle_timeout=transport_module.READ_TIMEOUT, pace=0.01) as chunks:
                [chunk async for chunk in chunks]
    return raised.value


@pytest.fixture(params=[pytest.param(failed_request, id="request"), pytest.param(failed_stream, id="paced-stream")])
def failure(request: pytest.FixtureRequest) -> Failure:
    """The two ways to send a request, which fail in the same words."""
    way: Failure = request.param
    return way


@pytest.mark.parametrize(
    ("context", "tls", "problem", "remedy"),
    [
        pytest.param(
            CA.server_context("127.0.0.1"), ClientTls(ca=Authority("other").pem),
            "certificate is not trusted", "correct certificate-authority", id="wrong-ca",
        ),
        pytest.param(
            CA.server_context("cluster.example"), TRUST, "IP address mismatch", "tls-server-name", id="wrong-name",
        ),
        pytest.param(
            CA.server_context("127.0.0.1", lifetime=timedelta(minutes=-5)), TRUST,
            "certificate has expired", "renew it on the server", id="expired",
        ),
        pytest.param(None, TRUST, "does not speak TLS", "use http://", id="plain-http"),
    ],
)  # fmt: skip
async def test_untrusted_servers(
    context: ssl.SSLContext | None, tls: ClientTls, problem: str, remedy: str, failure: Failure
) -> None:
    """Nothing is sent; one line says what is wrong with TLS and what to correct."""
    server = SecureServer(context)
    async with server.running():
        error = await failure(Endpoint(f"https://127.0.0.1:{server.port}", tls=tls))
    assert isinstance(error, UntrustedServerError)
    assert str(error).startswith(f"GET https://127.0.0.1:{server.port}/version: ")
    assert problem in str(error)
    assert remedy in str(error)
    assert "\n" not in str(error)
    assert server.seen == []


async def test_server_that_wants_a_client_certificate(failure: Failure) -> None:
    """TLS 1.3 says so only when the request is under way."""
    context = CA.server_context("127.0.0.1")
    context.verify_mode = ssl.CERT_REQUIRED

    def serve() -> None:
        # By hand: a server that closes the connection while the request is under way resets it, and the alert is lost.
        connection, _ = listener.accept()
        received, to_send = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(received, to_send, server_side=True)
        with connection:
            while data := connection.recv(65536):
                received.write(data)
                with suppress(ssl.SSLError):
                    tls.do_handshake()
                connection.sendall(to_send.read())

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(20)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.to_thread.run_sync, serve)
            error = await failure(Endpoint(f"https://127.0.0.1:{listener.getsockname()[1]}", tls=TRUST))
    assert isinstance(error, UntrustedServerError)
    assert "the server wants a client certificate: set client-certificate and client-key" in str(error)


@asynccontextmanager
async def listening(answer: bytes | None) -> AsyncIterator[str]:
    """A server that answers each connection with these bytes and closes it, or never."""

    async def serve(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            await stream.receive()
            if answer is None:
                await anyio.sleep_forever()
            else:
                await stream.send(answer)

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, serve)
        yield f"127.0.0.1:{listener.extra(anyio.abc.SocketAttribute.local_port)}"
        tasks.cancel_scope.cancel()


async def test_nothing_listens(unused_tcp_port: int, failure: Failure) -> None:
    """The usual mistake: the cluster is not running."""
    error = await failure(Endpoint(f"http://127.0.0.1:{unused_tcp_port}"))
    assert str(error) == (
        f"GET http://127.0.0.1:{unused_tcp_port}/version: nothing listens at 127.0.0.1:{unused_tcp_port} "
        "(connection refused): check that the cluster runs, and correct the server's URL"
    )


async def test_unknown_host_name(monkeypatch: pytest.MonkeyPatch, failure: Failure) -> None:
    """The line names the host, not an error number."""

    def fail(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    error = await failure(Endpoint("https://cluster.invalid:6443", tls=TRUST))
    assert "the host name cluster.invalid is unknown" in str(error)
    assert "Name or service not known" in str(error)
    assert "correct the server's URL" in str(error)


async def test_silent_server(monkeypatch: pytest.MonkeyPatch, failure: Failure) -> None:
    """A server that accepts and says nothing is given up."""
    monkeypatch.setattr(transport_module, "READ_TIMEOUT", 0.05)
    async with listening(None) as address:
        error = await failure(Endpoint(f"http://{address}"))
    assert "timed out: the server sent nothing for too long" in str(error)


async def test_not_http(failure: Failure) -> None:
    """Something else listens there."""
    async with listening(b"SSH-2.0-OpenSSH_9.6\r\n\r\n") as address:
        error = await failure(Endpoint(f"http://{address}"))
    assert str(error).startswith(f"GET http://{address}/version: ")
    assert "\n" not in str(error)


async def test_https_server_at_an_http_url(failure: Failure) -> None:
    """Servers that speak TLS close connections that do not."""
    server = SecureServer(CA.server_context("127.0.0.1"))
    async with server.running():
        error = await failure(Endpoint(f"http://127.0.0.1:{server.port}"), Request("POST", "/", {}))
    assert "its URL must begin with https://" in str(error)


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        pytest.param(None, "the proxy at 127.0.0.1:{port} does not answer", id="unreachable"),
        pytest.param(b"HTTP/1.1 403 Forbidden\r\n\r\n", "proxy refused to connect (HTTP status 403", id="forbidden"),
    ],
)
async def test_proxies(answer: bytes | None, problem: str, unused_tcp_port: int, failure: Failure) -> None:
    """A failing proxy is not mistaken for a failing server."""
    async with AsyncExitStack() as stack:
        address = f"127.0.0.1:{unused_tcp_port}"
        if answer is not None:
            address = await stack.enter_async_context(listening(answer))
        error = await failure(Endpoint("https://cluster.example:6443", tls=TRUST, proxy=f"http://{address}"))
    assert problem.format(port=unused_tcp_port) in str(error)
    assert "$NO_PROXY" in str(error)


@pytest.mark.parametrize(
    ("code", "headers", "body", "message"),
    [
        pytest.param(404, {}, b"404 page\n not found\n", "404 page not found", id="text"),
        pytest.param(502, {}, b"", "the API server answered with HTTP status 502", id="empty"),
        pytest.param(302, {"Location": "/login"}, b"", "go to /login: this is not a Kubernetes API server", id="login"),
        pytest.param(403, {}, b'{"message": "no"}', "no", id="status"),
    ],
)
def test_failure_answers(code: int, headers: dict[str, str], body: bytes, message: str) -> None:
    """Whatever stands before the API server may answer anything; the user reads one line."""
    error = answer_error(code, headers, body, "GET https://host/version")
    assert message in str(error)
    assert "\n" not in str(error)
    assert error.code == code


@pytest.mark.parametrize(
    ("header", "body", "expected"),
    [
        pytest.param("3", b"{}", 3, id="header"),
        pytest.param("3", b'{"details": {"retryAfterSeconds": 5}}', 5, id="status-wins"),
        pytest.param("Wed, 21 Oct 2026 07:28:00 GMT", b"{}", None, id="date"),
        pytest.param("3", b'{"details": "text"}', None, id="broken-details"),
        pytest.param("-3", b"{}", None, id="negative"),
        pytest.param("9" * 5000, b"{}", None, id="longer-than-python-reads"),
    ],
)
def test_retry_after(header: str, body: bytes, expected: float | None) -> None:
    """The pause comes from the header or the Status; API servers write seconds, never dates."""
    assert answer_error(503, {"Retry-After": header}, body, "GET /").retry_after_seconds == expected
