"""pods/exec: the WebSocket, and who may open it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import pytest

from packages.devcluster.tests.apiserver.http_client import MERGE, Api, api_for
from packages.devcluster.tests.kubelet.fakes import eventually
from trainer.kube.clock import Clock
from trainer.kube.objects import Object
from trainer_devcluster.apiserver.server import ServerOptions, serve
from trainer_devcluster.container_commands import (
    CommandError,
    CommandRunner,
    CommandStreams,
    ContainerCommand,
    WindowSize,
)
from trainer_kube_testing import ManualClock

PODS = "/api/v1/namespaces/default/pods"
V5, V4 = "v5.channel.k8s.io", "v4.channel.k8s.io"
EXEC = f"{PODS}/p/exec?command=sh&command=-c&command=exit+3&stdin=true&stdout=true&stderr=true"


class Container:
    """Echoes what is typed in capitals, and ends with the exit code of its last argument."""

    def __init__(self) -> None:
        self.commands: list[ContainerCommand] = []
        self.sizes: list[WindowSize] = []
        self.cancelled = anyio.Event()

    async def run(self, command: ContainerCommand, streams: CommandStreams) -> int:
        self.commands.append(command)
        if command.command == ("nosuch",):
            raise CommandError('exec: "nosuch": executable file not found in $PATH')
        await streams.send(2, b"$ ")
        try:
            async for item in streams.input():
                if isinstance(item, WindowSize):
                    self.sizes.append(item)
                elif item == b"":
                    break
                else:
                    await streams.send(1, item.upper())
        except anyio.get_cancelled_exc_class():
            self.cancelled.set()
            raise
        return int(command.command[-1].split()[-1])


@asynccontextmanager
async def running(directory: Path, container: Container, clock: Clock | None = None) -> AsyncIterator[Api]:
    """A server with a pod `p` that runs, one that waits, and one without a node."""
    runner = CommandRunner()
    runner.register(container.run)
    async with serve(ServerOptions(directory), clock=clock, commands=runner) as server, api_for(server) as api:
        for name, state in (("p", {"running": {}}), ("waiting", {"waiting": {}}), ("unbound", None)):
            spec: Object = {"containers": [{"name": "c", "image": "i"}]}
            if state is not None:
                spec["nodeName"] = "laptop"
            await api("POST", PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
            statuses = [{"name": "c", "image": "", "imageID": "", "restartCount": 0, "ready": True, "state": state}]
            await api("PATCH", f"{PODS}/{name}/status", {"status": {"containerStatuses": statuses}}, MERGE)
        yield api


async def open_exec(
    api: Api, path: str = EXEC, *protocols: str, **headers: str
) -> aiohttp.ClientWebSocketResponse[Any]:
    sent = {"Authorization": f"Bearer {api.server.token}"} | {name.replace("_", "-"): v for name, v in headers.items()}
    return await api.session.ws_connect(api.server.url + path, protocols=protocols or (V5, V4), headers=sent)


async def rest_of(socket: aiohttp.ClientWebSocketResponse[Any]) -> list[tuple[int, bytes]]:
    return [(message.data[0], message.data[1:]) async for message in socket]


async def test_channels(tmp_path: Path) -> None:
    """Each stream has its channel, the size of a terminal too, and the Status at the end has the exit code."""
    container = Container()
    async with running(tmp_path, container) as api:
        socket = await open_exec(api)
        for sent in (b"\x04" + b'{"Width":100,"Height":30}', b"\x04nonsense", b"\x04" + b'{"Width":0,"Height":1}'):
            await socket.send_bytes(sent)
        await socket.send_str("\0\u00e4")
        for sent in (b"\0ab", b"\0", b"\x01x", b"\0c", b"\xff\x01", b"\xff\0"):
            await socket.send_bytes(sent)
        received = await rest_of(socket)
    (command,) = container.commands
    assert (command.container, command.command, command.streams) == ("c", ("sh", "-c", "exit 3"), frozenset({0, 1, 2}))
    assert container.sizes == [WindowSize(100, 30)]
    *output, (channel, status) = received
    assert output == [(2, b"$ "), (1, "\u00e4".encode().upper()), (1, b"AB"), (1, b"C")]
    assert (socket.protocol, socket.close_code, channel) == (V5, 1000, 3)
    ended = json.loads(status)
    assert (ended["status"], ended["reason"]) == ("Failure", "NonZeroExitCode")
    assert ended["details"] == {"causes": [{"reason": "ExitCode", "message": "3"}]}


async def test_the_older_protocol(tmp_path: Path) -> None:
    """A client that speaks v4 only is served, and cannot end its input; going away ends its command."""
    container = Container()
    async with running(tmp_path, container) as api:
        socket = await open_exec(api, EXEC, V4)
        await socket.send_bytes(b"\xff\0")
        await socket.send_bytes(b"\0still read")
        assert [(await socket.receive()).data for _ in range(2)] == [b"\x02$ ", b"\x01STILL READ"]
        assert socket.protocol == V4
        await socket.close()
        with anyio.fail_after(10):
            await container.cancelled.wait()


async def test_a_client_that_leaves_while_nothing_is_read(tmp_path: Path) -> None:
    """The command ends, too, of a client who has left a lot of input that the command does not take."""

    class Busy(Container):
        async def run(self, command: ContainerCommand, streams: CommandStreams) -> int:
            try:
                async for _ in streams.input():
                    await anyio.sleep_forever()
            finally:
                self.cancelled.set()
            return 0

    container, clock = Busy(), ManualClock()
    async with running(tmp_path, container, clock) as api, anyio.create_task_group() as tasks:
        socket = await open_exec(api)

        async def flood() -> None:
            with suppress(ConnectionError):
                while True:
                    await socket.send_bytes(b"\0" + bytes(64 * 1024))

        tasks.start_soon(flood)
        connection = socket._response.connection
        assert connection is not None
        transport = connection.transport
        assert transport is not None
        await eventually(lambda: transport.get_write_buffer_size() > 64 * 1024)
        transport.abort()
        await socket.close()
        with anyio.fail_after(30):
            while not container.cancelled.is_set():
                await clock.advance(10)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        pytest.param("command=0&stdout=1&stdin=1", {"status": "Success", "metadata": {}}, id="success"),
        pytest.param(
            "command=nosuch&stdout=1",
            "Internal error occurred: error executing command in container: "
            'exec: "nosuch": executable file not found in $PATH',
            id="no such program",
        ),
    ],
)
async def test_statuses(tmp_path: Path, query: str, said: Any) -> None:
    """The last message says whether the command could run and has succeeded."""
    async with running(tmp_path, Container()) as api:
        socket = await open_exec(api, f"{PODS}/p/exec?{query}")
        await socket.send_bytes(b"\xff\0")
        channel, status = (await rest_of(socket))[-1]
    decoded = json.loads(status)
    assert channel == 3
    assert said in (decoded, decoded.get("message"))


@pytest.mark.parametrize(
    ("path", "code", "message"),
    [
        pytest.param("nosuch/exec?command=a&stdout=1", 404, 'pods "nosuch" not found', id="no such pod"),
        pytest.param("p/exec?stdout=1", 400, "you must specify a command: PodExecOptions.command is empty", id="empty"),
        pytest.param("p/exec?command=a", 400, "you must specify at least 1 of stdin, stdout, stderr", id="no stream"),
        pytest.param(
            "p/exec?command=a%00b&stdout=1",
            400,
            "PodExecOptions.command has a zero character, which no argument can have",
            id="zero",
        ),
        pytest.param(
            "p/exec?command=a&stdout=1&container=x", 400, "container x is not valid for pod p", id="no such container"
        ),
        pytest.param(
            "unbound/exec?command=a&stdout=1", 400, "pod unbound does not have a host assigned", id="without a node"
        ),
        pytest.param(
            "waiting/exec?command=a&stdout=1",
            500,
            'Internal error occurred: unable to upgrade connection: container not found ("c")',
            id="not running",
        ),
        pytest.param(
            "p/exec?command=a&stdout=1",
            400,
            "Upgrade request required: the dev cluster runs commands over WebSocket only",
            id="no upgrade",
        ),
    ],
)
async def test_refusals(tmp_path: Path, path: str, code: int, message: str) -> None:
    """What cannot be done is said before the connection is upgraded."""
    async with running(tmp_path, Container()) as api:
        answer = await api("GET", f"{PODS}/{path}")
    assert (answer.code, answer.body["message"]) == (code, message)


async def test_unknown_subprotocol(tmp_path: Path) -> None:
    """A client of another time is refused."""
    async with running(tmp_path, Container()) as api:
        with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
            await open_exec(api, EXEC, "channel.k8s.io")
    assert caught.value.status == 400


@pytest.mark.parametrize(
    ("verbs", "code"),
    [
        pytest.param(["get", "create"], 101, id="both verbs"),
        pytest.param(["get"], 403, id="get only"),
        pytest.param(["create"], 403, id="create only"),
    ],
)
async def test_authorization(tmp_path: Path, verbs: list[str], code: int) -> None:
    """A command needs `get`, the verb of the request, and `create`, as on Kubernetes 1.35 and later."""
    group = "/apis/rbac.authorization.k8s.io/v1"
    role: Object = {"rules": [{"verbs": verbs, "apiGroups": [""], "resources": ["pods/exec"]}]}
    subject = {"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"}
    reference = {"kind": "ClusterRole", "name": "r", "apiGroup": "rbac.authorization.k8s.io"}
    async with running(tmp_path, Container()) as api:
        named = {"apiVersion": group.removeprefix("/apis/"), "metadata": {"name": "r"}}
        await api("POST", f"{group}/clusterroles", named | {"kind": "ClusterRole"} | role)
        binding = {"kind": "ClusterRoleBinding", "roleRef": reference, "subjects": [subject]}
        await api("POST", f"{group}/clusterrolebindings", named | binding)
        if code == 101:
            await (await open_exec(api, EXEC, Impersonate_User="u")).close()
            return
        with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
            await open_exec(api, EXEC, Impersonate_User="u")
        assert caught.value.status == code
