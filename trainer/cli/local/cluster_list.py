"""The list of the dev clusters of a user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import anyio
from anyio.to_thread import run_sync

from trainer.cli.columns import columns
from trainer.cli.console import say, size
from trainer.cli.errors import ExitCode
from trainer.cli.local.dev_cluster import connection_to, current_state, running_trainings
from trainer.cli.processes.background import BackgroundProcess
from trainer.cli.processes.contexts import Contexts
from trainer.cli.processes.state_directory import StateDirectory, existing_clusters
from trainer.kube.errors import KubeError

_TITLES: Final = ("", "NAME", "STATE", "CONTEXT", "ADDRESS", "TRAINING", "SIZE")


@dataclass(frozen=True, slots=True)
class ListedCluster:
    """A dev cluster as the list shows it."""

    name: str
    is_current: bool
    state: str
    context: str
    address: str = ""
    training: int | None = None
    """How many trainings run; None where that is not known."""
    size: int = 0
    """Bytes on disk."""


def cluster_table(clusters: Sequence[ListedCluster]) -> list[str]:
    """A line for each, below a header."""
    rows = [
        (
            "*" if each.is_current else "",
            each.name,
            each.state,
            each.context,
            each.address,
            "" if each.training is None else str(each.training),
            size(each.size),
        )
        for each in clusters
    ]
    return list(columns([_TITLES, *rows]))


async def list_clusters() -> int:
    """Print it; returns the exit code."""
    clusters = await run_sync(existing_clusters)
    if not clusters:
        say("there is no cluster; trainer up starts one")
        return ExitCode.OK
    listed: list[ListedCluster | None] = [None] * len(clusters)
    current = await run_sync(current_state)

    async def look(index: int, state: StateDirectory) -> None:
        listed[index] = await _listed(state, is_current=state == current)

    async with anyio.create_task_group() as tasks:
        for index, state in enumerate(clusters):
            tasks.start_soon(look, index, state)
    for line in cluster_table([each for each in listed if each is not None]):
        say(line)
    return ExitCode.OK


async def _listed(state: StateDirectory, *, is_current: bool) -> ListedCluster:
    word, training = "running", None
    cluster = BackgroundProcess("cluster", state)
    if await run_sync(cluster.running) is None:
        crash = await run_sync(cluster.crash)
        word = crash if crash is not None else "stopped"
    elif await run_sync(connection_to, state) is None:
        word = "starting"
    else:
        try:
            training = len(await running_trainings(state))
        except KubeError:
            word = "does not answer"
    address = await run_sync(Contexts.of_user().address_of, state)
    return ListedCluster(state.name, is_current, word, state.context, address, training, await run_sync(state.size))
