"""Pod sandboxes, and containers in them."""

from __future__ import annotations

import itertools
import os
import signal
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
import anyio.to_thread

import trainer
import trainer_devcluster
from trainer_devcluster.kubelet.errors import ContainerCreateError, ContainerStartError, PodNetworkError
from trainer_devcluster.kubelet.root_filesystem import SandboxMount, is_available, plan_root
from trainer_devcluster.kubelet.shim import reports
from trainer_devcluster.kubelet.shim.reports import NOT_FOUND
from trainer_devcluster.kubelet.shim.spec import DEFAULT_LOG_LIMITS, ContainerSpec, LogLimits, Operation
from trainer_devcluster.kubelet.shim_process import run_shim
from trainer_devcluster.kubelet.working_directory import place_mounts

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from trainer_devcluster.kubelet.network.pod_network import PodNetwork
    from trainer_devcluster.kubelet.shim.spec import ProbeSpec
    from trainer_devcluster.kubelet.shim_process import ShimProcess

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

    def __init__(self, shim: ShimProcess) -> None:
        self._shim = shim
        self._numbers = itertools.count(1)
        self._probed: dict[int, anyio.Event] = {}
        self._answers: dict[int, reports.Probed] = {}

    async def wait(self) -> reports.Exited | reports.Failed:
        """How the program ended, or that the container broke for another reason, such as a full disk.

        The log is then complete.
        """
        while isinstance(report := await self._shim.report(), reports.Probed):
            if report.number in self._probed:
                self._answers[report.number] = report
                self._probed[report.number].set()
        assert isinstance(report, reports.Exited | reports.Failed)
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

    async def terminate(self) -> None:
        """Ask the program to end (SIGTERM)."""
        await self._shim.signal(signal.SIGTERM)

    async def kill(self) -> None:
        """End all processes of the container (SIGKILL)."""
        await self._shim.signal(signal.SIGKILL)


@dataclass(frozen=True, slots=True)
class Sandbox:
    """The namespaces that the containers of a pod share; made by `open_sandbox`."""

    network: PodNetwork
    join: tuple[str, ...]
    new_root: Path

    @asynccontextmanager
    async def run(self, program: Program) -> AsyncIterator[RunningContainer]:
        """Run a container; leaving the context kills it.

        Raises:
            ContainerCreateError: the program's mounts or working directory are impossible.
            ContainerStartError: it could not be started.
        """
        async with run_shim(await self._spec(program)) as shim:
            report = await shim.report()
            if not isinstance(report, reports.Started):
                assert isinstance(report, reports.Failed)
                if report.stage != "exec":
                    raise ContainerStartError("ContainerCannotRun", report.message)
                message = explained(report.message, program.command[0], program.environment)
                raise ContainerStartError("StartError", message)
            yield RunningContainer(shim)

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
async def open_sandbox(network: PodNetwork, hostname: str, address: str, new_root: Path) -> AsyncIterator[Sandbox]:
    """Make the namespaces of a pod; leaving the context drops them.

    Raises:
        PodNetworkError: the kernel refuses.
    """
    spec = network.sandbox(hostname, address)
    if spec is None:
        yield Sandbox(network, (), new_root)
        return
    async with run_shim(spec) as shim:
        report = await shim.report()
        if isinstance(report, reports.Failed):
            raise PodNetworkError(report.message)
        yield Sandbox(network, tuple(network.join(shim.pid)), new_root)


def _plan(program: Program) -> tuple[Operation, ...]:
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
