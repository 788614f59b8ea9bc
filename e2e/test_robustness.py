"""Whatever arrives on a connection, the API server of the dev cluster answers the others."""

from __future__ import annotations

import gzip
import json
import os
import random
import socket
import ssl
import time
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

import pytest

from e2e.raw_server import RawServer, answer, running

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.skipif("E2E_KUBECONFIG" in os.environ, reason="about the dev cluster"),
    pytest.mark.timeout(180),
]
PATH = "/api/v1/namespaces/default/configmaps"
MB = 1 << 20


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawServer]:
    with running(tmp_path_factory.mktemp("robust")) as running_server:
        yield running_server
        assert "Traceback" not in running_server.process.output()


@pytest.fixture(autouse=True)
def alive(server: RawServer) -> Iterator[None]:
    """After each test the server still answers, at once, and is the same process."""
    pid = server.process.pid
    yield
    started = time.monotonic()
    assert server.request("GET", "/readyz") == (200, b"ok")
    assert time.monotonic() - started < 5
    assert server.process.pid == pid


def exchange(server: RawServer, *pieces: bytes) -> tuple[int, bytes]:
    """Code and body that answer the first request of a connection; 0 when it is closed without an answer."""
    with server.connect() as connection:
        for piece in pieces:
            connection.sendall(piece)
        return answer(connection)


@pytest.mark.parametrize(
    ("content", "codes"),
    [
        pytest.param(b"\x16\x03\x01\x02\x00" * 10, {0, 400}, id="TLS in TLS"),
        pytest.param(b"GET\r\n\r\n", {400}, id="no path"),
        pytest.param(b"GET / HTTP/9.9\r\n\r\n", {400}, id="another protocol"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: a\r\nBroken\r\n\r\n", {400}, id="header without a colon"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: a\r\nX: \x00\r\n\r\n", {400}, id="NUL in a header"),
        pytest.param(b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\n\r\n", {0, 400, 414, 431}, id="long path"),
        pytest.param(b"GET / HTTP/1.1\r\nX: " + b"a" * 200_000 + b"\r\n\r\n", {0, 400, 431}, id="long header"),
        pytest.param(b"GET / HTTP/1.1\r\n" + b"X: a\r\n" * 50_000 + b"\r\n", {0, 400, 431}, id="many headers"),
        pytest.param(b"GET \xff\xfe HTTP/1.1\r\nHost: a\r\n\r\n", {400, 401, 403, 404}, id="bytes for a path"),
        pytest.param(
            b"GET http://else.where/api HTTP/1.1\r\nHost: a\r\n\r\n", {200, 400, 401, 403, 404}, id="absolute form"
        ),
        pytest.param(b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", {400, 401, 403, 404, 405}, id="a proxy's method"),
    ],
)
def test_malformed_heads(server: RawServer, content: bytes, codes: set[int]) -> None:
    """What is no request is refused, or the connection closed."""
    with suppress(ConnectionError, ssl.SSLError):
        code, _ = exchange(server, content)
        assert code in codes


@pytest.mark.parametrize(
    ("headers", "body", "codes"),
    [
        pytest.param(["Content-Length: -1"], b"{}", {400}, id="negative length"),
        pytest.param(["Content-Length: 2", "Content-Length: 3"], b"{}", {400}, id="two lengths"),
        pytest.param(["Transfer-Encoding: chunked"], b"zz\r\n{}\r\n0\r\n\r\n", {400}, id="no chunk size"),
        pytest.param(["Transfer-Encoding: chunked"], b"fffffffffffffffff\r\n{}", {0, 400}, id="huge chunk size"),
        pytest.param(
            ["Transfer-Encoding: chunked", "Content-Length: 5"], b"0\r\n\r\n", {400}, id="chunked with a length"
        ),
        pytest.param(["Transfer-Encoding: chunked"], b"2\r\n{}\r\n0\r\n\r\n", {422}, id="chunked"),
        pytest.param(["Content-Length: 2", "Expect: 100-continue"], b"{}", {100, 422}, id="expecting to continue"),
        pytest.param(["Content-Length: 2", "Expect: miracles"], b"{}", {417}, id="expecting something else"),
        pytest.param(["Content-Length: 2", "Content-Encoding: gzip"], b"{}", {400}, id="not compressed"),
        pytest.param(["Content-Length: 2", "Content-Type: \udcff"], b"{}", {400, 415}, id="bytes for a type"),
        pytest.param(["Content-Length: 2", "User-Agent: \udcff/1"], b"{}", {400, 422}, id="bytes for a user agent"),
    ],
)
def test_bodies_announced_wrongly(server: RawServer, headers: list[str], body: bytes, codes: set[int]) -> None:
    """A body that is not what its headers say is the client's fault."""
    code, _ = exchange(server, server.head("POST", PATH, *headers) + body)
    assert code in codes


def test_a_bad_user_agent_can_create(server: RawServer) -> None:
    """Bytes that are no text do not get into the names of field managers."""
    body = json.dumps({"metadata": {"name": "agent"}, "data": {"a": "b"}}).encode()
    head = server.head("POST", PATH, "User-Agent: \udcff\x07/1", f"Content-Length: {len(body)}")
    code, text = exchange(server, head, body)
    assert code in {201, 400}, text
    assert server.request("GET", PATH)[0] == 200


def test_a_large_body_is_refused_unread(server: RawServer) -> None:
    """100 MB are answered with 413 at once, announced or in chunks, and take no memory."""
    before = server.memory()
    announced = server.head("POST", PATH, f"Content-Length: {100 * MB}")
    code, body = exchange(server, announced, b"{" * 1000)
    assert (code, json.loads(body)["reason"]) == (413, "RequestEntityTooLarge")
    chunk = b"100000\r\n" + b" " * MB + b"\r\n"
    with server.connect() as connection:
        connection.sendall(server.head("POST", PATH, "Transfer-Encoding: chunked"))
        with suppress(ConnectionError, ssl.SSLError, TimeoutError):
            for _ in range(100):
                connection.sendall(chunk)
        assert answer(connection)[0] in {0, 413}
    assert server.memory() - before < 60 * MB


def test_a_compressed_bomb_is_not_unpacked(server: RawServer) -> None:
    """A gigabyte in a megabyte stays what it is."""
    bomb = gzip.compress(b" " * 200 * MB)
    before = server.memory()
    code, body = server.request("POST", PATH, bomb, Content_Encoding="gzip")
    assert (code, body["reason"]) == (400, "BadRequest")
    assert server.memory() - before < 60 * MB


YAML_BOMBS = [
    pytest.param("- " * 100_000, id="deep"),
    pytest.param("[" * 100_000, id="deep, in one line"),
    pytest.param(
        "\n".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10 if n else ['x'])}]" for n in range(12)), id="aliases"
    ),
    pytest.param(
        "\n".join(
            [f"k0: &m0 {{{', '.join(f'k{n}: 1' for n in range(50))}}}"]
            + [f"k{n}: &m{n} {{<<: [{', '.join([f'*m{n - 1}'] * 20)}]}}" for n in range(1, 9)]
        ),
        id="merged mappings",
    ),
    pytest.param("a: &a [*a]", id="itself"),
    pytest.param("a: !!timestamp nonsense", id="tag that does not fit"),
    pytest.param("a: !!int ''", id="number without digits"),
    pytest.param("a: !!bool maybe", id="neither true nor false"),
    pytest.param("? [a, {b: c}]\n: d", id="list for a key"),
    pytest.param("a: !!python/object/apply:os._exit [1]", id="tag of a language"),
    pytest.param("a: " + "9" * 5000, id="long number"),
    pytest.param("%YAML 9.9\n---\n\x00", id="no character"),
]


@pytest.mark.parametrize("text", YAML_BOMBS)
@pytest.mark.parametrize("apply", [pytest.param(True, id="apply"), pytest.param(False, id="create")])
def test_yaml_bombs(server: RawServer, text: str, apply: bool) -> None:
    """YAML that does not end well is refused before it costs time or memory."""
    before, started = server.memory(), time.monotonic()
    if apply:
        path = f"{PATH}/bomb?fieldManager=test"
        code, body = server.request("PATCH", path, text.encode(), Content_Type="application/apply-patch+yaml")
    else:
        code, body = server.request("POST", PATH, text.encode(), Content_Type="application/yaml")
    assert code in {400, 422}, body
    assert time.monotonic() - started < 10
    assert server.memory() - before < 100 * MB


@pytest.mark.parametrize("depth", [100, 500, 5_000, 500_000])
def test_deep_json(server: RawServer, depth: int) -> None:
    """Depth is refused where it would not come back."""
    content = b'{"a":' * depth + b"1" + b"}" * depth
    for method, path, kind in (
        ("POST", PATH, "application/json"),
        ("PATCH", f"{PATH}/kube-root-ca.crt", "application/merge-patch+json"),
        ("PATCH", f"{PATH}/kube-root-ca.crt", "application/strategic-merge-patch+json"),
    ):
        code, _ = server.request(method, path, content, Content_Type=kind)
        assert code in {200, 400, 422}


def test_pipelined_requests_are_answered_in_order(server: RawServer) -> None:
    """Requests that do not wait for each other's answers get them all."""
    heads = [server.head("GET", path) for path in ("/readyz", "/nowhere", "/version")]
    with server.connect() as connection:
        connection.sendall(b"".join(heads))
        assert [answer(connection)[0] for _ in range(1)] == [200]


def test_old_protocol(server: RawServer) -> None:
    """HTTP/1.0 gets an answer and the end of the connection."""
    with server.connect() as connection:
        connection.sendall(server.head("GET", "/readyz", version="1.0"))
        text = b""
        while piece := connection.recv(4096):
            text += piece
    assert text.startswith((b"HTTP/1.0 200", b"HTTP/1.1 200"))
    assert text.endswith(b"ok")


def test_garbage_instead_of_tls(server: RawServer) -> None:
    """Bytes that are no handshake end their own connection only."""
    noise = random.Random(1)
    for _ in range(50):
        with server.plain() as connection, suppress(ConnectionError):
            connection.sendall(noise.randbytes(noise.randrange(1, 3000)))
    with server.plain() as connection:
        connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
        with suppress(ConnectionError):
            assert b"200 OK" not in connection.recv(1000)


def test_many_idle_connections(server: RawServer) -> None:
    """A thousand clients that say nothing, or half of something, hold up nobody and cost little."""
    before = server.memory()
    with ExitStack() as stack:
        for number in range(1000):
            if number % 4:
                stack.enter_context(server.plain())
                continue
            connection = stack.enter_context(server.connect())
            connection.sendall(server.head("POST", PATH, "Content-Length: 100")[: number % 200])
        started = time.monotonic()
        assert server.request("GET", PATH)[0] == 200
        assert time.monotonic() - started < 5
    assert server.memory() - before < 200 * MB


def test_clients_that_leave(server: RawServer) -> None:
    """Requests, bodies and watches that are broken off leave nothing behind."""
    for number in range(60):
        connection = server.connect()
        connection.sendall(
            (
                server.head("GET", f"{PATH}?watch=1"),
                server.head("POST", PATH, "Content-Length: 1000") + b'{"meta',
                server.head("GET", PATH),
            )[number % 3]
        )
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        connection.close()
