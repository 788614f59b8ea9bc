"""`trainer status`: what runs of a dev cluster, and what is on it or on another cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer
from anyio.to_thread import run_sync

from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.cli.console import duration, note, say
from trainer.cli.current_cluster import current_cluster, is_of_up, warning_user
from trainer.cli.errors import BadInputError, ExitCode
from trainer.cli.jobs.state import JobState
from trainer.cli.local.cluster_list import list_clusters
from trainer.cli.local.dev_cluster import PROCESSES, connection_to, current_state
from trainer.cli.local.gang_schedulers import gang_schedulers
from trainer.cli.local.name import ExistingName
from trainer.cli.options import Context, Kubeconfig
from trainer.cli.processes.background import BackgroundProcess, version_problem
from trainer.cli.processes.contexts import Contexts
from trainer.cli.processes.state_directory import DEFAULT, StateDirectory, existing_cluster, existing_clusters
from trainer.cli.run.unreachable_packages import NODE, POD_NETWORK
from trainer.kube.client import Client
from trainer.kube.errors import ApiError, KubeError, NotFoundError
from trainer.kube.logs.logs import configure_logging
from trainer.kube.manager.signals import run_until_signal
from trainer.kube.objects import annotations_of, name_of
from trainer.kube.resource import NODES
from trainer.kube.rest.connection import ConnectionOptions, connect
from trainer.kube.rest.http import HttpClient
from trainer.v1alpha1.discovery import Served, find_served

_NOT_INSTALLED: Final = "none: the CRDs are not installed"


def status(
    name: ExistingName = None,
    all_clusters: Annotated[bool, typer.Option("--all", help="List all clusters of trainer up.")] = False,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Show what runs in the background and what is on the cluster; exit code 0 when cluster and manager run, else 1.

    Without --name it is the current cluster, which other commands use as well. With --all there is a line for each
    cluster, the current one with an asterisk: its state, context and address, how many trainings run, and what objects,
    volumes and logs take on disk; the exit code is 0.

    With --kubeconfig, --context or $KUBECONFIG it may be any cluster: the exit code is 0 when that answers. What gang
    schedulers it has, and what their feature gates refuse, is found out by dry runs, which store nothing.
    """
    chosen = kubeconfig is not None or context is not None
    if chosen + all_clusters + (name is not None) > 1:
        raise BadInputError("--name, --all, and --kubeconfig with --context cannot be combined")
    configure_logging(json=False, level="error")
    state = existing_cluster(name) if name is not None else _dev_cluster(kubeconfig, context)
    if all_clusters:
        run = list_clusters
    elif state is not None:
        run = partial(show_status, state)
    else:
        run = partial(show_other, current_cluster(kubeconfig, context))
    raise typer.Exit(run_until_signal(run))


def _dev_cluster(kubeconfig: Path | None, context: str | None) -> StateDirectory | None:
    """The cluster of `trainer up` that is meant; None where it is another one."""
    contexts = Contexts.of_user()
    if not is_of_up(kubeconfig, contexts):
        return None
    if context is None:
        return current_state()
    name = contexts.cluster_of(context)
    return None if name is None else StateDirectory.of_user(name)


async def show_other(options: ConnectionOptions) -> int:
    """Print what is on a cluster that is none of `trainer up`; returns the exit code."""
    async with connect(warning_user(options)) as client:
        served = await find_served(client)
        _say("cluster", client.server)
        if client.context:
            _say("context", client.context)
        for label, text in await _contents(client, served):
            _say(label, text)
    return ExitCode.OK


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
    if problem := await run_sync(version_problem, state):
        note(problem, kind="warning")
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
        nodes = await client.list(NODES)
        modes = [annotations_of(node).get(POD_NETWORK, "") for node in nodes.items if name_of(node) == NODE]
        network = "".join(modes) or "none: no kubelet runs"
        first, *others = await _contents(client, served)
        return client.server, [first, ("pod network", network), *others]


async def _contents(client: HttpClient, served: Served) -> list[tuple[str, str]]:
    """What is on a cluster, by what it is called; what the user may not see is said to be unknown."""

    async def shown(label: str, text: Awaitable[str]) -> tuple[str, str]:
        try:
            return label, await text
        except NotFoundError:
            return label, _NOT_INSTALLED
        except ApiError as error:
            return label, f"unknown: {error}"

    converted = served.client(client)
    train_jobs = await shown("TrainJobs", _train_jobs(converted))
    is_installed = train_jobs[1] != _NOT_INSTALLED
    return [
        ("API", f"{TRAIN_JOBS.group}/{served.version}" if is_installed else _NOT_INSTALLED),
        await shown("runtimes", _runtimes(converted)),
        train_jobs,
        await shown("gangs", gang_schedulers(client, client.namespace)),
    ]


async def _runtimes(client: Client) -> str:
    runtimes = await client.list(CLUSTER_TRAINING_RUNTIMES)
    return f"{len(runtimes.items)}: trainer runtimes" if runtimes.items else "none"


async def _train_jobs(client: Client) -> str:
    jobs = await client.list(TRAIN_JOBS)
    states = Counter(JobState.of(job).word for job in jobs.items)
    summary = ", ".join(f"{count} {word}" for word, count in sorted(states.items()))
    return f"{len(jobs.items)} ({summary})" if summary else "0"


def _condition(process: BackgroundProcess) -> str:
    run, up = process.running(), process.state.command("up")
    if run is not None:
        uptime = duration((datetime.now(UTC) - run.started).total_seconds())
        other = process.other_version()
        return f"running, pid {run.process.pid}, for {uptime}" + (f", started by trainer {other}" if other else "")
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
