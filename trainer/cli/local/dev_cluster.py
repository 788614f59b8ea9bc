"""A dev cluster of `trainer up`, as the commands for it reach it."""

from __future__ import annotations

from typing import Final

import anyio
from anyio.to_thread import run_sync

from trainer.api.trainjob import TRAIN_JOBS
from trainer.cli.current_cluster import identity_of, open_cluster
from trainer.cli.processes.background import BackgroundProcess
from trainer.cli.processes.contexts import Contexts
from trainer.cli.processes.state_directory import DEFAULT, StateDirectory
from trainer.framework.status.status import has_ended, state_word
from trainer.kube.errors import KubeError
from trainer.kube.objects import Object, name_of, namespace_of
from trainer.kube.rest.connection import ConnectionOptions, connect

PROCESSES: Final = ("cluster", "manager", "recorder")
"""What runs in the background, in the order in which it is started."""
_ANSWER_SECONDS: Final = 5.0
_IDLE: Final = ("Suspended",)
"""States of trainings that have no pods and are not over."""


def current_state() -> StateDirectory:
    """The cluster of the current context; the default where there is none. Blocks."""
    return StateDirectory.of_user(Contexts.of_user().current_cluster or DEFAULT)


def connection_to(state: StateDirectory) -> ConnectionOptions | None:
    """How a dev cluster is reached; None where it has not started yet. Blocks."""
    contexts = Contexts.of_user()
    if contexts.cluster_of(state.context) is None:
        return None
    return ConnectionOptions(kubeconfig=contexts.path, context=state.context)


async def running_trainings(state: StateDirectory) -> list[str]:
    """What is trained on a dev cluster, with namespace and state.

    Raises:
        KubeError: it does not say so within five seconds.
    """
    options = await run_sync(connection_to, state)
    if options is None or await run_sync(BackgroundProcess("cluster", state).running) is None:
        return []
    with anyio.move_on_after(_ANSWER_SECONDS):
        async with open_cluster(options) as cluster:
            jobs = await cluster.client.list(TRAIN_JOBS)
            return sorted(f"{namespace_of(job)}/{name_of(job)} ({state_word(job)})" for job in jobs.items if _runs(job))
    raise KubeError(f"no answer within {_ANSWER_SECONDS:.0f} s")


async def note_identity(state: StateDirectory) -> None:
    """Keep the identity of a cluster that an earlier version has started, if it runs.

    Raises:
        KubeError: it does not answer.
    """
    options, known = await run_sync(connection_to, state), await run_sync(state.identity)
    is_running = await run_sync(BackgroundProcess("cluster", state).running) is not None
    if options is not None and not known and is_running:
        async with connect(options) as client:
            await run_sync(state.identity_file.write_text, await identity_of(client))


def _runs(job: Object) -> bool:
    return not has_ended(job) and state_word(job) not in _IDLE
