"""Commands in real containers."""

from __future__ import annotations

import math
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from typing import Any, cast

import anyio
import pytest
from anyio import to_thread

from packages.devcluster.tests.kubelet.fakes import LIMIT, OpenRunner, eventually, make_pod, processes_with, shell
from packages.devcluster.tests.kubelet.modes import every_mode, simplest_isolated_mode, simplest_mode
from trainer.kube.objects import Object
from trainer_devcluster.container_commands import CommandError, CommandStreams, ContainerCommand, WindowSize
from trainer_devcluster.kubelet.commands import LOST, run_command
from trainer_devcluster.kubelet.pod_worker import PodWorker
from trainer_devcluster.kubelet.sandbox import RunningContainer, ShimProcess
from trainer_devcluster.kubelet.shim.spec import LONGEST_COMMAND, CommandSpec, encode_command

ALL = frozenset({0, 1, 2})


class User(CommandStreams):
    """Types what is given, and remembers what is shown."""

    def __init__(self, *typed: bytes | WindowSize) -> None:
        self.shown = {1: b"", 2: b""}
        self._send, self._typed = anyio.create_memory_object_stream[bytes | WindowSize](math.inf)
        for item in typed:
            self._send.send_nowait(item)
        self._changed = anyio.Event()

    async def input(self) -> AsyncIterator[bytes | WindowSize]:
        """See `CommandStreams`."""
        async for item in self._typed:
            yield item

    async def send(self, stream: int, data: bytes) -> None:
        """See `CommandStreams`."""
        self.shown[stream] += data
        self._changed.set()
        self._changed = anyio.Event()

    def type(self, item: bytes | WindowSize) -> None:
        """Type something more."""
        self._send.send_nowait(item)

    async def see(self, text: bytes) -> None:
        """Wait until this is shown as output."""
        with anyio.fail_after(LIMIT):
            while text not in self.shown[1]:
                await self._changed.wait()

    def leave(self) -> None:
        """Drop what has not been read."""
        self._send.close()
        self._typed.close()


async def run(worker: PodWorker, user: User, *words: str, **fields: object) -> int:
    """Run a command in the container as soon as it runs."""
    await eventually(lambda: "main" in worker.running)
    streams = fields.get("streams", ALL)
    assert isinstance(streams, frozenset)
    command = ContainerCommand(worker.uid, "main", words, streams, bool(fields.get("terminal")))
    try:
        with anyio.fail_after(LIMIT):
            return await run_command(worker.running["main"], command, user)
    finally:
        user.leave()


def idle(**fields: Any) -> Object:
    return make_pod("pod", shell("exec sleep 60", **fields))


@every_mode
async def test_a_command_is_in_the_container(open_runner: OpenRunner, mode: str) -> None:
    """It has the variables and the network of the container, and its exit code arrives with all of its output."""
    address = {"name": "ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    user = User()
    script = "echo $NAME $ADDRESS $HOSTNAME; echo err >&2; seq 20000; exit 3"
    async with open_runner(mode) as runner, runner.run(idle(env=[{"name": "NAME", "value": "a"}, address])) as [worker]:
        code = await run(worker, user, "sh", "-c", script)
        ip = runner.api.status("pod")["podIP"]
    first, *numbers = user.shown[1].decode().splitlines()
    assert (code, first, user.shown[2]) == (3, f"a {ip} pod", b"err\n")
    assert numbers == [str(number) for number in range(1, 20001)]


@simplest_isolated_mode
async def test_a_command_sees_what_the_program_sees(open_runner: OpenRunner, mode: str) -> None:
    """It is in the working directory of the container, with its files and processes."""
    pod = idle(workingDir="/work", volumeMounts=[{"name": "v", "mountPath": "/work"}])
    pod["spec"]["volumes"] = [{"name": "v", "emptyDir": {}}]
    user = User()
    async with open_runner(mode) as runner, runner.run(pod) as [worker]:
        assert await run(worker, user, "sh", "-c", "pwd; readlink /proc/2/exe | grep -c sleep") == 0
    assert user.shown[1] == b"/work\n1\n"


@simplest_mode
@pytest.mark.parametrize(
    ("typed", "words", "streams", "shown"),
    [
        pytest.param([b"a", b"b\n", b""], ["cat"], ALL, b"ab\n", id="input"),
        pytest.param([b"x" * 300_000, b""], ["wc", "-c"], ALL, b"300000\n", id="more than a pipe holds"),
        pytest.param([b"x" * 300_000, b"y", b""], ["head", "-c", "1"], ALL, b"x", id="input that nobody reads"),
        pytest.param([b"lost"], ["cat"], frozenset({1}), b"", id="no input"),
        pytest.param([], ["sh", "-c", "echo x >&2; echo y"], frozenset({1}), b"y\n", id="errors that nobody wants"),
        pytest.param([], ["sh", "-c", "sleep 60 & echo done"], ALL, b"done\n", id="something is left running"),
    ],
)
async def test_streams(
    open_runner: OpenRunner,
    mode: str,
    typed: list[bytes],
    words: list[str],
    streams: frozenset[int],
    shown: bytes,
) -> None:
    """What is typed arrives, what is written is shown, and the end of either holds up nobody."""
    user = User(*typed)
    async with open_runner(mode) as runner, runner.run(idle()) as [worker]:
        assert await run(worker, user, *words, streams=streams) == 0
    assert user.shown == {1: shown, 2: b""}


@pytest.fixture
def in_background() -> Iterator[None]:
    """This process ignores Ctrl-C, as shells have it for what they start in the background."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, before)


@every_mode
async def test_terminal(open_runner: OpenRunner, mode: str, in_background: None) -> None:
    """A command has a terminal that controls it, whose size changes, and on which Ctrl-C and Ctrl-D do what they do.

    That a shell has started the cluster in the background makes no difference.
    """
    script = (
        "trap 'stty size; echo resized' WINCH; stty -echo; echo ready $TERM; read line; echo \"got $line\";"
        "trap 'echo interrupted' INT; echo armed; until test \"$line\" = go; do read line; done; cat;"
        "tty >/dev/null && exit 5"
    )
    user = User()
    async with open_runner(mode) as runner, runner.run(idle()) as [worker], anyio.create_task_group() as tasks:
        codes: list[int] = []

        async def execute() -> None:
            codes.append(await run(worker, user, "bash", "-c", script, terminal=True))

        tasks.start_soon(execute)
        await user.see(b"ready xterm\r\n")
        user.type(WindowSize(100, 30))
        user.type(b"typed\r")
        await user.see(b"got typed\r\n")
        await user.see(b"30 100\r\nresized\r\n")
        await user.see(b"armed\r\n")
        user.type(b"\x03")
        await user.see(b"interrupted\r\n")
        user.type(b"go\r")
        user.type(b"")
    assert codes == [5]


@every_mode
@pytest.mark.parametrize("terminal", [False, True], ids=["pipes", "terminal"])
async def test_it_ends_with_its_user(open_runner: OpenRunner, mode: str, terminal: bool) -> None:
    """When nobody waits for it any more it is killed, with what it has started."""
    user, seconds = User(), 4567 + terminal
    async with open_runner(mode) as runner, runner.run(idle()) as [worker]:
        async with anyio.create_task_group() as tasks:
            words = ["sh", "-c", f"sleep {seconds} & echo started; wait"]

            async def execute() -> None:
                await run(worker, user, *words, terminal=terminal)

            tasks.start_soon(execute)
            await user.see(b"started")
            tasks.cancel_scope.cancel()
        await eventually(lambda: not processes_with(f"sleep\0{seconds}"))
        assert await run(worker, User(), "true") == 0


@every_mode
async def test_it_ends_with_its_user_who_has_not_read_all_reports(open_runner: OpenRunner, mode: str) -> None:
    """A socket that is closed with reports in it is reset, which is an end like any other."""
    async with open_runner(mode) as runner, runner.run(idle()) as [worker]:
        await eventually(lambda: "main" in worker.running)
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                command = CommandSpec(("sleep", "4569"), ())
                await worker.running["main"].start_command(command, [theirs.fileno()])
            ours.setblocking(False)
            await anyio.wait_readable(ours)
            await eventually(lambda: bool(processes_with("sleep\x004569")))
        await eventually(lambda: not processes_with("sleep\x004569"))


@every_mode
async def test_it_ends_with_its_container(open_runner: OpenRunner, mode: str) -> None:
    """The end of the container is that of the command, and is not held up by it."""
    user = User()
    pod = make_pod("pod", shell("until test -e ended; do sleep 0.02; done"))
    async with open_runner(mode) as runner, runner.run(pod) as [worker]:
        code = await run(worker, user, "sh", "-c", "touch ended; exec sleep 60")
        await runner.api.wait_for_phase("pod", "Succeeded")
    assert code == LOST


@simplest_mode
@pytest.mark.parametrize(
    ("words", "problem"),
    [
        pytest.param(["nosuch"], 'exec: "nosuch": executable file not found in $PATH', id="no such program"),
        pytest.param(["/nosuch"], 'exec: "/nosuch": stat /nosuch: no such file or directory', id="no such file"),
        pytest.param(["/etc"], 'exec: "/etc": permission denied', id="a directory"),
        pytest.param(["echo", "x" * LONGEST_COMMAND], "the command is longer than 128 KiB", id="too long"),
    ],
)
async def test_commands_that_cannot_start(open_runner: OpenRunner, mode: str, words: list[str], problem: str) -> None:
    """The user hears why, and the container goes on."""
    async with open_runner(mode) as runner, runner.run(idle()) as [worker]:
        with pytest.raises(CommandError) as caught:
            await run(worker, User(), *words)
        assert str(caught.value) == problem
        assert await run(worker, User(), "true") == 0


async def test_commands_that_wait_for_the_monitor() -> None:
    """While the monitor of a container takes none, any number of commands wait; all of them arrive."""
    ours, monitor = socket.socketpair(type=socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    container = RunningContainer(cast(ShimProcess, None), ours)
    command = CommandSpec(("echo", "x" * 50_000), ())
    arrived = 0
    with ours, monitor, anyio.fail_after(LIMIT):
        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(container.start_command, command, [])
            await anyio.wait_all_tasks_blocked()
            while arrived < 20:
                arrived += await to_thread.run_sync(monitor.recv, LONGEST_COMMAND) == encode_command(command)
