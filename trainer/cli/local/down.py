"""`trainer down`: stops what `trainer up` keeps running."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from anyio.to_thread import run_sync

from trainer.cli.console import note, say
from trainer.cli.errors import CommandError, ExitCode
from trainer.cli.local.dev_cluster import PROCESSES, note_identity, running_trainings
from trainer.cli.local.name import Name
from trainer.cli.past import forget_cluster
from trainer.cli.processes.background import BackgroundProcess, running_clusters
from trainer.cli.processes.contexts import Contexts
from trainer.cli.processes.state_directory import DEFAULT, StateDirectory, existing_cluster
from trainer.kube.errors import KubeError
from trainer.kube.logs.logs import configure_logging
from trainer.kube.manager.signals import run_until_signal

_SHOWN = 10


def down(
    *,
    name: Name = DEFAULT,
    delete: Annotated[
        bool,
        typer.Option("--delete", help="Also delete all objects, volumes and logs, and the history of the cluster."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask, on a terminal either.")] = False,
) -> None:
    """Stop the cluster and the manager of `trainer up`.

    Objects, volumes and logs are kept, and `trainer up` starts with them again, at the same address. Does nothing when
    nothing runs. Other clusters are left alone; where one of them runs, its context is the current one then.

    It says which trainings it stops and, on a terminal, asks before it does so and before it deletes.
    """
    configure_logging(json=False, level="error")
    state = existing_cluster(name)
    if not state.root.exists():
        say("nothing to stop")
        return
    running: list[str] = []
    if code := run_until_signal(lambda: _find_running(state, running, delete=delete)):
        raise typer.Exit(code)
    for line in stopped_trainings(running):
        say(line)
    is_asked = (running or (delete and state.data.exists())) and not yes and sys.stdin.isatty() and sys.stdout.isatty()
    question = f"stop the cluster{', and delete all its objects, volumes, logs and history' if delete else ''}?"
    if is_asked and not typer.confirm(question):
        say("nothing was stopped")
        raise typer.Exit(ExitCode.FAILED)
    with state.lock():
        code = run_until_signal(lambda: _down(state, delete=delete))
    if code:
        note(f"interrupted; {state.command('down')} goes on from here, {state.command('up')} starts everything again")
    raise typer.Exit(code)


def stopped_trainings(running: list[str]) -> list[str]:
    """The lines that say which trainings end with the cluster; none where none does."""
    if not running:
        return []
    what = "1 training" if len(running) == 1 else f"{len(running)} trainings"
    rest = [f"  and {len(running) - _SHOWN} more"] if len(running) > _SHOWN else []
    fails = "fails" if len(running) == 1 else "fail"
    return [
        f"this stops {what}, which {fails} unless restarts are left:",
        *(f"  {name}" for name in running[:_SHOWN]),
        *rest,
    ]


async def _find_running(state: StateDirectory, running: list[str], *, delete: bool) -> int:
    """Append what trains; a cluster that does not answer is stopped all the same."""
    try:
        running += await running_trainings(state)
        if delete:
            await note_identity(state)
    except KubeError as error:
        note(f"cannot see what is trained: {error}")
    return ExitCode.OK


async def _down(state: StateDirectory, *, delete: bool) -> int:
    is_stopped = False
    for name in reversed(PROCESSES):
        process = BackgroundProcess(name, state)
        was_recorded = await run_sync(process.record_exists)
        stopped = await process.stop()
        if stopped or was_recorded or name != PROCESSES[-1]:  # nothing is said of a recorder that nobody has
            say(f"{name} {'stopped' if stopped else 'was not running'}")
        is_stopped = is_stopped or stopped
    contexts = Contexts.of_user()
    was_current = await run_sync(lambda: contexts.current_cluster) == state.name
    if delete:
        await run_sync(_forget, state)
        await run_sync(contexts.remove, state)
        await run_sync(state.delete_data)
        say("objects, volumes and logs deleted")
    others = await run_sync(running_clusters)
    if was_current:
        await run_sync(_use_another, contexts, others)
    if others and not is_stopped and not delete:
        note(f"other clusters run: {', '.join(each.command('down') for each in others)}")
    return ExitCode.OK


def _forget(state: StateDirectory) -> None:
    """Delete the history of a cluster, first: later nothing says which it is."""
    try:
        if count := forget_cluster(state.identity()):
            say(f"history of {count} {'training' if count == 1 else 'trainings'} deleted")
    except CommandError as error:
        note(f"the history of the cluster stays: {error}", kind="warning")


def _use_another(contexts: Contexts, running: list[StateDirectory]) -> None:
    """Make a cluster that runs the current one."""
    names = contexts.names()
    for each in running:
        if each.context in names:
            contexts.use(each.context)
            say(f"the current context is {each.context} now")
            return
