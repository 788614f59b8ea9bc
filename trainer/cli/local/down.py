"""`trainer down`: stops what `trainer up` keeps running."""

from __future__ import annotations

import sys
from typing import Annotated

import anyio
import typer
from anyio.to_thread import run_sync

from trainer.api.trainjob import TRAIN_JOBS
from trainer.cli.console import note, say
from trainer.cli.current_cluster import open_cluster
from trainer.cli.errors import ExitCode
from trainer.cli.local.up import PROCESSES
from trainer.cli.processes.background import BackgroundProcess, StateDirectory
from trainer.framework.status.status import has_ended, state_word
from trainer.kube.errors import KubeError
from trainer.kube.logs.logs import configure_logging
from trainer.kube.manager.signals import run_until_signal
from trainer.kube.objects import Object, name_of, namespace_of
from trainer.kube.rest.connection import ConnectionOptions

_ANSWER_SECONDS = 5.0
_SHOWN = 10
_IDLE = ("Suspended",)
"""States of trainings that have no pods and are not over."""


def down(
    delete: Annotated[bool, typer.Option("--delete", help="Also delete all objects, volumes and logs.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask, on a terminal either.")] = False,
) -> None:
    """Stop the cluster and the manager of `trainer up`.

    Objects, volumes and logs are kept, and `trainer up` starts with them again, at the same address. Does nothing when
    nothing runs. It says which trainings it stops and, on a terminal, asks before it does so and before it deletes.
    """
    configure_logging(json=False, level="error")
    state = StateDirectory.of_user()
    if not state.root.exists():
        say("nothing to stop")
        return
    running: list[str] = []
    if code := run_until_signal(lambda: _find_running(state, running)):
        raise typer.Exit(code)
    for line in stopped_trainings(running):
        say(line)
    is_asked = (running or (delete and state.data.exists())) and not yes and sys.stdin.isatty() and sys.stdout.isatty()
    question = "stop the cluster, and delete all its objects, volumes and logs?" if delete else "stop the cluster?"
    if is_asked and not typer.confirm(question):
        say("nothing was stopped")
        raise typer.Exit(ExitCode.FAILED)
    with state.lock():
        code = run_until_signal(lambda: _down(state, delete=delete))
    if code:
        note("interrupted; trainer down goes on from here, trainer up starts everything again")
    raise typer.Exit(code)


def stopped_trainings(running: list[str]) -> list[str]:
    """The lines that say which trainings end with the cluster; none where none does."""
    if not running:
        return []
    what = "1 training" if len(running) == 1 else f"{len(running)} trainings"
    rest = [f"  and {len(running) - _SHOWN} more"] if len(running) > _SHOWN else []
    return [f"this stops {what}:", *(f"  {name}" for name in running[:_SHOWN]), *rest]


async def _find_running(state: StateDirectory, running: list[str]) -> int:
    """Append what trains; a cluster that does not answer is stopped all the same."""
    if await run_sync(BackgroundProcess("cluster", state).running) is None or not state.kubeconfig.is_file():
        return ExitCode.OK
    try:
        with anyio.move_on_after(_ANSWER_SECONDS):
            async with open_cluster(ConnectionOptions(kubeconfig=state.kubeconfig)) as cluster:
                jobs = await cluster.client.list(TRAIN_JOBS)
                running += sorted(_described(job) for job in jobs.items if _runs(job))
    except KubeError as error:
        note(f"cannot see what is trained: {error}")
    return ExitCode.OK


def _runs(job: Object) -> bool:
    return not has_ended(job) and state_word(job) not in _IDLE


def _described(job: Object) -> str:
    return f"{namespace_of(job)}/{name_of(job)} ({state_word(job)})"


async def _down(state: StateDirectory, *, delete: bool) -> int:
    for name in reversed(PROCESSES):
        process = BackgroundProcess(name, state)
        was_recorded = await run_sync(process.record_exists)
        stopped = await process.stop()
        if stopped or was_recorded or name != PROCESSES[-1]:  # nothing is said of a recorder that nobody has
            say(f"{name} {'stopped' if stopped else 'was not running'}")
    if delete:
        await run_sync(state.delete_data)
        say("objects, volumes and logs deleted")
    return ExitCode.OK
