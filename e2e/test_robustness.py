"""Whatever arrives on a connection, the API server of the dev cluster answers the others."""

from __future__ import annotations

import gzip
import json
import os
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest

from e2e.raw_server import RawServer, answer, running

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
