"""Processes of `trainer up` that another version of `trainer` has started."""

from __future__ import annotations

from anyio.to_thread import run_sync

from trainer.cli.console import note, say
from trainer.cli.local.dev_cluster import PROCESSES, running_trainings
from trainer.cli.processes.background import BackgroundProcess
from trainer.cli.processes.state_directory import StateDirectory
from trainer.kube.errors import KubeError


async def stop_other_versions(state: StateDirectory) -> None:
    """Stop what another version has started, for it to be started anew.

    A cluster on which something is trained goes on.
    """
    cluster, *clients = (BackgroundProcess(name, state) for name in PROCESSES)
    version = await run_sync(cluster.other_version)
    problem = await _trained(state) if version else ""
    if problem:
        note(f"the cluster was started by trainer {version}, and is not stopped: {problem}")
    for process in (*reversed(clients), *([] if problem else [cluster])):
        other = await run_sync(process.other_version)
        if other:
            say(f"the {process.name} was started by trainer {other}; starting it again")
        if other or (version and not problem):
            await process.stop()


async def _trained(state: StateDirectory) -> str:
    """Why the cluster cannot be stopped unasked; "" where it can."""
    try:
        running = await running_trainings(state)
    except KubeError as error:
        return f"what is trained cannot be seen ({error})"
    more = f", and {len(running) - 1} more" if len(running) > 1 else ""
    return f"it trains {running[0]}{more}" if running else ""
