"""Chooses the pod network by trying: what the kernel, a security module or a container around us forbids shows then."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.to_thread
import structlog

from trainer_devcluster.kubelet.errors import ContainerCreateError, ContainerStartError, PodNetworkError
from trainer_devcluster.kubelet.host_paths import SandboxMount
from trainer_devcluster.kubelet.network.machine import HostsNetwork, PlainNetwork
from trainer_devcluster.kubelet.network.netns import open_netns
from trainer_devcluster.kubelet.network.pod_network import PodAddressing
from trainer_devcluster.kubelet.options import SYSTEM_PATH, PodNetworkMode
from trainer_devcluster.kubelet.sandbox import Program, open_sandbox
from trainer_devcluster.kubelet.shim.reports import Exited

log = structlog.get_logger(__name__)

_PREFERENCE = (PodNetworkMode.NETNS, PodNetworkMode.HOSTS, PodNetworkMode.PLAIN)
_TIMEOUT = 30.0
"""Seconds for one attempt; a healthy one takes a fraction of a second."""
_MOUNT_POINT = "/devcluster-probe/volume"


@dataclass(frozen=True, slots=True)
class ChosenNetwork:
    """The pod network in use, and why it is this one."""

    network: PodAddressing
    description: str
    """For people: the mode, a colon, what it means, and why no better one works."""


@asynccontextmanager
async def open_pod_network(mode: PodNetworkMode, data_dir: Path) -> AsyncIterator[ChosenNetwork]:
    """Open the pod network of this mode, or the first that works; a probe pod is run in it.

    Raises:
        PodNetworkError: the mode does not work here; the message says why.
    """
    refusals: list[str] = []
    for candidate in _PREFERENCE if mode is PodNetworkMode.AUTO else (mode,):
        async with AsyncExitStack() as stack:
            try:
                with anyio.fail_after(_TIMEOUT):
                    network = await _open(candidate, stack)
                    await _try_out(network, data_dir)
            except (PodNetworkError, ContainerStartError, ContainerCreateError, OSError) as error:
                log.info("pod network does not work here", mode=candidate.value, reason=str(error))
                refusals.append(f"{candidate.value} does not work here: {error}")
                continue
            description = "; ".join([f"{candidate.value}: {network.consequence}", *refusals])
            yield ChosenNetwork(network, description)
            return
    raise PodNetworkError("pod network " + "; ".join(refusals))


async def _open(mode: PodNetworkMode, stack: AsyncExitStack) -> PodAddressing:
    match mode:
        case PodNetworkMode.NETNS:
            return await stack.enter_async_context(open_netns())
        case PodNetworkMode.HOSTS:
            return await anyio.to_thread.run_sync(HostsNetwork)
        case _:
            return PlainNetwork()


async def _try_out(network: PodAddressing, data_dir: Path) -> None:
    directory = await anyio.to_thread.run_sync(_prepare_directory, data_dir)
    address = network.allocate()
    program = Program(
        ("test", "-d", _MOUNT_POINT) if network.isolated else ("true",),
        {"PATH": SYSTEM_PATH},
        scratch=directory / "scratch",
        log_file=directory / "log",
        mounts=(SandboxMount(directory / "volume", _MOUNT_POINT),),
    )
    try:
        async with (
            open_sandbox(network, "probe", address, directory / "root") as sandbox,
            sandbox.run(program) as container,
        ):
            exited = await container.wait()
    finally:
        network.release(address)
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(shutil.rmtree, directory)
    if exited != Exited(0):
        raise PodNetworkError(f"the probe ended with {exited}")


def _prepare_directory(data_dir: Path) -> Path:
    directory = Path(tempfile.mkdtemp(dir=data_dir, prefix="probe-"))
    for name in ("root", "scratch", "volume"):
        (directory / name).mkdir()
    return directory
