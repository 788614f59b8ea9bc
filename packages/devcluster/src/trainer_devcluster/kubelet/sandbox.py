"""Pod sandboxes, containers in them, and the shims that run both."""

from __future__ import annotations

import importlib.metadata
import itertools
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
import structlog
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

import trainer
import trainer_devcluster
from trainer_devcluster.container_commands import CommandError
from trainer_devcluster.kubelet.errors import (
    ContainerCreateError,
    ContainerStartError,
    PodNetworkError,
    ReplacedFilesError,
)
from trainer_devcluster.kubelet.host_paths import SandboxMount, place_mounts
from trainer_devcluster.kubelet.network.pod_network import PodAddressing
from trainer_devcluster.kubelet.root_filesystem import is_available, plan_root
from trainer_devcluster.kubelet.shim import reports, spec
from trainer_devcluster.kubelet.shim.reports import NOT_FOUND
from trainer_devcluster.kubelet.shim.spec import (
    DEFAULT_LOG_LIMITS,
    LONGEST_COMMAND,
    ContainerSpec,
    FilesystemStep,
    LogLimits,
    ProbeSpec,
)

log = structlog.get_logger(__name__)

_BOOTSTRAP = "import sys; sys.path.append(sys.argv[1]); from shim.__main__ import main; main()"
_COMMAND = (sys.executable, "-I", "-S", "-E", "-X", "utf8", "-c", _BOOTSTRAP, str(Path(__file__).parent))

_DISTRIBUTION: Final = "trainer-devcluster"


def _installed_version() -> str:
    """The version whose files are on the disk now; "" where pip knows none."""
    try:
        return importlib.metadata.version(_DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        return ""


_VERSION: Final = _installed_version()
_CLOSE_TIMEOUT = 5.0
"""Seconds for a shim to kill what it runs and end, before it is killed itself."""
_LONGEST_REPORT = 1 << 16


class ShimProcess:
    """A running shim; made by `run_shim`."""

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._control = process.stdin
        self._answers = BufferedByteReceiveStream(process.stdout)

    @property
    def pid(self) -> int:
        """Process ID on the host."""
        return self._process.pid

    async def report(self) -> reports.Report:
        """The next report; a shim that dies without one counts as failed."""
        try:
            line = await self._answers.receive_until(b"\n", _LONGEST_REPORT)
        except (anyio.EndOfStream, anyio.IncompleteRead, anyio.ClosedResourceError):
            return reports.StartFailed("sandbox", "the process that watches over it was killed")
        return reports.decode(line)

    async def signal(self, number: int) -> None:
        """Send a signal to the container's program; SIGKILL ends the container with all its processes."""
        await self._send(b"%d\n" % number)

    async def probe(self, probe: spec.ProbeSpec) -> None:
        """Have the container's monitor carry out a probe; a report answers unless the container ends before."""
        await self._send(spec.encode_probe(probe))

    async def start(self, what: spec.Spec) -> None:
        """Hand over the spec."""
        await self._send(spec.encode(what))

    async def close(self) -> None:
        """Kill what the shim runs, and wait for its end."""
        await self._control.aclose()
        with anyio.move_on_after(_CLOSE_TIMEOUT):
            await self._process.wait()
        if self._process.returncode is None:
            log.warning("killed a shim that did not end by itself", pid=self.pid)
            self._process.kill()
        await self._process.aclose()

    async def _send(self, data: bytes) -> None:
        try:
            await self._control.send(data)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            # It has ended; `report` tells how.
            return


@asynccontextmanager
async def run_shim(what: spec.Spec, *, keep: Sequence[int] = ()) -> AsyncIterator[ShimProcess]:
    """Run a shim for as long as the context lasts; leaving it kills everything that the shim has started.

    Args:
        what: what it is to do.
        keep: open descriptors that it inherits under the same numbers.
    """
    with anyio.CancelScope(shield=True):
        # Cancelled half-way, asyncio would lose track of the process.
        process = await anyio.open_process(
            _COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None,
            start_new_session=True,
            pass_fds=keep,
        )
    shim = ShimProcess(process)
    try:
        await shim.start(what)
        yield shim
    finally:
        with anyio.CancelScope(shield=True):
            await shim.close()


_MACHINERY = frozenset(
    Path(name).resolve()
    for name in (
        sys.prefix,
        sys.base_prefix,
        Path(trainer.__file__).parents[1],
        Path(trainer_devcluster.__file__).parents[1],
    )
)
"""Where the interpreter and our packages are: containers have no images, and run what this machine has."""
EXTRAS: Final = {
    "accelerate": "examples-transformers",
    "deepspeed": "examples-deepspeed",
    "torchrun": "examples-torch",
    "tune": "examples-torchtune",
}
"""Programs of Python packages, each with the extra of this distribution that installs it."""
PACKAGES: Final = {"mpirun": "openmpi-bin", "mpiexec": "openmpi-bin"}
"""Programs of the operating system, each with Debian's package."""


@dataclass(frozen=True, slots=True)
class Program:
    """What runs in a container."""

    command: tuple[str, ...]
    environment: Mapping[str, str]
    scratch: Path
    """Working directory if none is given; takes its place if the given one does not exist."""
    log_file: Path
    log_limits: LogLimits = DEFAULT_LOG_LIMITS
    working_directory: str = ""
    mounts: tuple[SandboxMount, ...] = ()
    """Where pods have no namespaces, only those at the working directory or below it."""


class RunningContainer:
    """A container whose program has been started."""

    def __init__(self, shim: ShimProcess, commands: socket.socket) -> None:
        self._shim = shim
        self._commands = commands
        self._handing_over = anyio.Lock()
        self._numbers = itertools.count(1)
        self._probed: dict[int, anyio.Event] = {}
        self._answers: dict[int, reports.Probed] = {}

    async def wait(self) -> reports.Exited | reports.StartFailed:
        """How the program ended, or that the container broke for another reason, such as a full disk.

        The log is then complete.
        """
        while isinstance(report := await self._shim.report(), reports.Probed):
            if report.number in self._probed:
                self._answers[report.number] = report
                self._probed[report.number].set()
        assert isinstance(report, reports.Exited | reports.StartFailed)
        return report

    async def probe(self, probe: ProbeSpec) -> reports.Probed:
        """What a probe finds; answers only while somebody waits for the end of the container, and not after it."""
        number = next(self._numbers)
        self._probed[number] = anyio.Event()
        try:
            await self._shim.probe(replace(probe, number=number))
            await self._probed[number].wait()
            return self._answers.pop(number)
        finally:
            del self._probed[number]

    async def start_command(self, command: spec.CommandSpec, descriptors: Sequence[int]) -> None:
        """Start a command beside the program, with copies of these descriptors: see `shim.commands.serve`.

        Raises:
            CommandError: it is too long, or the container has just ended.
        """
        text = spec.encode_command(command)
        if len(text) > LONGEST_COMMAND:
            raise CommandError(f"the command is longer than {LONGEST_COMMAND // 1024} KiB")
        async with self._handing_over:  # only one task may wait for a socket
            while True:
                try:
                    socket.send_fds(self._commands, [text], descriptors)
                except BlockingIOError:
                    await anyio.wait_writable(self._commands)
                except OSError as error:
                    raise CommandError("the container has just ended") from error
                else:
                    return

    async def terminate(self) -> None:
        """Ask the program to end (SIGTERM)."""
        await self._shim.signal(signal.SIGTERM)

    async def kill(self) -> None:
        """End all processes of the container (SIGKILL)."""
        await self._shim.signal(signal.SIGKILL)


@dataclass(frozen=True, slots=True)
class Sandbox:
    """The namespaces that the containers of a pod share; made by `open_sandbox`."""

    network: PodAddressing
    join: tuple[str, ...]
    new_root: Path

    @asynccontextmanager
    async def run(self, program: Program) -> AsyncIterator[RunningContainer]:
        """Run a container; leaving the context kills it.

        Raises:
            ContainerCreateError: the program's mounts or working directory are impossible.
            ContainerStartError: it could not be started.
        """
        commands, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        commands.setblocking(False)
        number = theirs.fileno()
        with commands, theirs:
            async with run_shim(replace(await self._spec(program), commands=number), keep=(number,)) as shim:
                report = await shim.report()
                if not isinstance(report, reports.Started):
                    assert isinstance(report, reports.StartFailed)
                    if report.stage != "exec":
                        raise ContainerStartError("ContainerCannotRun", report.message)
                    message = explained(report.message, program.command[0], program.environment)
                    raise ContainerStartError("StartError", message)
                yield RunningContainer(shim, commands)

    async def _spec(self, program: Program) -> ContainerSpec:
        environment, log_file = dict(program.environment), str(program.log_file)
        if not self.network.isolated:
            directory = await anyio.to_thread.run_sync(
                place_mounts, program.working_directory, program.scratch, program.mounts
            )
            return ContainerSpec(
                program.command, environment, str(directory), log_file, isolated=False, log_limits=program.log_limits
            )
        return ContainerSpec(
            program.command,
            environment,
            program.working_directory or str(program.scratch),
            log_file,
            isolated=True,
            join=self.join,
            new_root=str(self.new_root),
            operations=await anyio.to_thread.run_sync(_plan, program),
            run_as=self.network.run_as,
            log_limits=program.log_limits,
        )


@asynccontextmanager
async def open_sandbox(network: PodAddressing, hostname: str, address: str, new_root: Path) -> AsyncIterator[Sandbox]:
    """Make the namespaces of a pod; leaving the context drops them.

    Raises:
        PodNetworkError: the kernel refuses.
        ReplacedFilesError: pip has installed another version since this one was started, and shims would be its own.
    """
    if (version := await anyio.to_thread.run_sync(_installed_version)) != _VERSION:
        now = f"{_DISTRIBUTION} {version}" if version else "gone"
        raise ReplacedFilesError(
            f"the dev cluster is {_DISTRIBUTION} {_VERSION}, and what is installed is {now}: "
            "start it again (trainer down, trainer up)"
        )
    spec = network.sandbox(hostname, address)
    if spec is None:
        yield Sandbox(network, (), new_root)
        return
    async with run_shim(spec) as shim:
        report = await shim.report()
        if isinstance(report, reports.StartFailed):
            raise PodNetworkError(report.message)
        yield Sandbox(network, tuple(network.join(shim.pid)), new_root)


def _plan(program: Program) -> tuple[FilesystemStep, ...]:
    mounts = list(program.mounts)
    directory = program.working_directory
    try:
        if directory and not is_available(directory, mounts):
            mounts.append(SandboxMount(program.scratch, directory, owned=True))
        return plan_root(mounts, {*_MACHINERY, program.scratch})
    except OSError as error:
        raise ContainerCreateError(f"cannot build the file system: {error.filename}: {error.strerror}") from error


def explained(problem: str, program: str, environment: Mapping[str, str]) -> str:
    """Why a container could not be started; for a missing program with what to install, and where."""
    if not problem.endswith(NOT_FOUND):
        return problem
    directory = environment.get("PATH", "").split(os.pathsep)[0]
    if program in EXTRAS:
        remedy = f"pip install 'trainer-operator[{EXTRAS[program]}]' into that environment"
    elif program in PACKAGES:
        remedy = f"install {program} on this machine, such as Debian's package {PACKAGES[program]}"
    else:
        remedy = f"install {program} there"
    return (
        f"{problem}: the dev cluster pulls no images, containers run what the environment of {directory} and this "
        f"machine have; {remedy}"
    )
