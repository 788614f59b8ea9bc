"""`trainer status`: what runs of a dev cluster, and what is on it."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Annotated

import typer
from anyio.to_thread import run_sync

from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.cli.console import duration, say
from trainer.cli.current_cluster import warning_user
from trainer.cli.errors import BadInputError, ExitCode
from trainer.cli.jobs.state import JobState
from trainer.cli.local.cluster_list import list_clusters
from trainer.cli.local.dev_cluster import PROCESSES, connection_to, current_state
from trainer.cli.local.name import ExistingName
from trainer.cli.processes.background import BackgroundProcess
from trainer.cli.processes.state_directory import DEFAULT, StateDirectory, existing_cluster, existing_clusters
from trainer.cli.run.unreachable_packages import NODE, POD_NETWORK
from trainer.kube.client import Client
from trainer.kube.errors import KubeError
from trainer.kube.logs.logs import configure_logging
from trainer.kube.manager.signals import run_until_signal
from trainer.kube.objects import annotations_of, name_of
from trainer.kube.resource import NODES
from trainer.kube.rest.connection import connect
from trainer.v1alpha1.discovery import find_served


def status(
    name: ExistingName = None,
    all_clusters: Annotated[bool, typer.Option("--all", help="List all clusters of trainer up.")] = False,
) -> None:
    """Show what runs in the background and what is on the cluster; exit code 0 when cluster and manager run, else 1.

    Without --name it is the current cluster, which other commands use as well. With --all there is a line for each
    cluster, the current one with an asterisk: its state, context and address, how many trainings run, and what objects,
    volumes and logs take on disk; the exit code is 0.
    """
    if all_clusters and name is not None:
        raise BadInputError("--all cannot be combined with --name")
    configure_logging(json=False, level="error")
    state = existing_cluster(name) if name is not None else current_state()
    raise typer.Exit(run_until_signal(list_clusters if all_clusters else lambda: show_status(state)))


async def show_status(state: StateDirectory) -> int:
    """Print it; returns the exit code."""
    cluster, manager, recorder = (BackgroundProcess(name, state) for name in PROCESSES)
    is_cluster_up = await run_sync(cluster.running) is not None
    lines: list[tuple[str, str]] = []
    server, answers = "", True
    if is_cluster_up:
        try:
            server, lines = await _ask(state)
        except KubeError as error:
            answers = False
            server = f"but {error}"
    is_manager_up = await run_sync(manager.running) is not None
    clusters = await run_sync(existing_clusters)
    if len(clusters) > 1 or state.name != DEFAULT:
        is_current = await run_sync(current_state) == state
        _say("context", f"{state.context}{', the current one' if is_current else ''}")
    _say("cluster", ", ".join(filter(None, [await run_sync(_condition, cluster), server])))
    _say("manager", await run_sync(_condition, manager))
    if await run_sync(recorder.record_exists):
        _say("recorder", await run_sync(_condition, recorder))
    for label, text in lines:
        _say(label, text)
    if others := [each.name for each in clusters if each != state]:
        _say("others", f"{', '.join(others)}: trainer status --all")
    return ExitCode.OK if is_cluster_up and answers and is_manager_up else ExitCode.FAILED


async def _ask(state: StateDirectory) -> tuple[str, list[tuple[str, str]]]:
    """The address of a cluster, and what is on it."""
    options = await run_sync(connection_to, state)
    if options is None:
        raise KubeError(f"it is starting; {state.command('up')} waits for it")
    async with connect(warning_user(options)) as client:
        served = await find_served(client)
        version = f"{TRAIN_JOBS.group}/{served.version}"
        return client.server, [("API", version), *await _contents(served.client(client))]


async def _contents(client: Client) -> list[tuple[str, str]]:
    nodes = await client.list(NODES)
    modes = [annotations_of(node).get(POD_NETWORK, "") for node in nodes.items if name_of(node) == NODE]
    runtimes = await client.list(CLUSTER_TRAINING_RUNTIMES)
    jobs = await client.list(TRAIN_JOBS)
    states = Counter(JobState.of(job).word for job in jobs.items)
    summary = ", ".join(f"{count} {word}" for word, count in sorted(states.items()))
    return [
        ("pod network", "".join(modes) or "none: no kubelet runs"),
        ("runtimes", f"{len(runtimes.items)}: trainer runtimes" if runtimes.items else "none"),
        ("TrainJobs", f"{len(jobs.items)} ({summary})" if summary else "0"),
    ]


def _condition(process: BackgroundProcess) -> str:
    run, up = process.running(), process.state.command("up")
    if run is not None:
        uptime = duration((datetime.now(UTC) - run.started).total_seconds())
        return f"running, pid {run.process.pid}, for {uptime}"
    crash = process.crash()
    if crash is not None:
        return f"{crash}; its log is {process.log.path}; {up} starts it again"
    return (
        f"not running; {up} starts it"
        if not process.is_stopping()
        else f"was being stopped; {process.state.command('down')} goes on"
    )


def _say(label: str, text: str) -> None:
    say(f"{label:<12} {text}")
