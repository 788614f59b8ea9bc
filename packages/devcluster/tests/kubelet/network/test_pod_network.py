"""Address pools."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import IPv4Network

import anyio
import pytest
from anyio.abc import SocketListener, SocketStream

from packages.devcluster.tests.kubelet.fakes import OpenRunner, make_pod, shell
from trainer_devcluster.kubelet.errors import PodNetworkError
from trainer_devcluster.kubelet.network.pod_network import AddressPool, ApiAddress, serve_pods


@pytest.mark.parametrize(
    ("url", "address"),
    [
        pytest.param("https://127.0.0.1:6443", ApiAddress("127.0.0.1", 6443), id="port"),
        pytest.param("https://kubernetes.default.svc", ApiAddress("kubernetes.default.svc", 443), id="no port"),
    ],
)
def test_address(url: str, address: ApiAddress) -> None:
    """The address is that of the URL, with the port of HTTPS."""
    assert ApiAddress.of(url) == address


@asynccontextmanager
async def shouting_server() -> AsyncIterator[ApiAddress]:
    """A server that answers in capital letters when its client has said everything."""

    async def handle(client: SocketStream) -> None:
        async with client:
            said = b"".join([chunk async for chunk in client])
            await client.send(said.upper())

    listener = socket.create_server(("127.0.0.1", 0))
    async with await SocketListener.from_socket(listener) as connections, anyio.create_task_group() as tasks:
        tasks.start_soon(connections.serve, handle)
        yield ApiAddress(*listener.getsockname())
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def gateway(server: ApiAddress) -> AsyncIterator[tuple[str, int]]:
    """Passes connections on; gives the address to connect to."""
    listener = socket.create_server(("127.0.0.1", 0))
    address = listener.getsockname()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve_pods, listener, server)
        yield address
        tasks.cancel_scope.cancel()


async def ask(address: tuple[str, int], text: bytes) -> bytes:
    """What comes back until the other side has said everything."""
    async with await anyio.connect_tcp(*address) as stream:
        await stream.send(text)
        await stream.send_eof()
        return b"".join([chunk async for chunk in stream])


async def test_server_that_is_not_there() -> None:
    """A connection is closed when the API server cannot be reached; the next one has another try."""
    with socket.create_server(("127.0.0.1", 0)) as unused:
        nowhere = ApiAddress(*unused.getsockname())
    async with gateway(nowhere) as address:
        for _ in range(2):
            assert await ask(address, b"") == b""


@pytest.mark.root
async def test_from_inside_a_pod(open_runner: OpenRunner) -> None:
    """A pod with a network of its own reaches the server at the address of its Service."""
    script = "import socket, sys\ns = socket.create_connection(('10.96.0.1', 443), 10)\ns.sendall(b'hello')\n"
    script += "s.shutdown(socket.SHUT_WR)\nprint(s.recv(100).decode())"
    pod = make_pod("pod", shell(f'python3 -c "{script}"'))
    async with open_runner("netns") as runner, shouting_server() as server, anyio.create_task_group() as tasks:
        listener = runner.host.network.api_listener
        assert listener is not None
        tasks.start_soon(serve_pods, listener, server)
        status = await runner.run_to_end(pod)
        tasks.cancel_scope.cancel()
    assert status["phase"] == "Succeeded", runner.log(pod)
    assert runner.log(pod) == "HELLO\n"


def test_exhausted() -> None:
    """When all are used, the remedy is named."""
    pool = AddressPool(IPv4Network("10.0.0.0/29"))
    for _ in range(5):
        pool.allocate()
    with pytest.raises(PodNetworkError, match="delete some pods"):
        pool.allocate()
    pool.release("10.0.0.4")
    assert pool.allocate() == "10.0.0.4"
