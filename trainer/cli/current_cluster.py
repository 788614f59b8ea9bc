"""The cluster that a command talks to."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

import anyio

from trainer.cli.console import note
from trainer.cli.errors import BadInputError, CommandError, ExitCode
from trainer.cli.processes.background import BackgroundProcess, running_clusters, version_problem
from trainer.cli.processes.contexts import Contexts
from trainer.cli.processes.state_directory import DEFAULT, StateDirectory
from trainer.cli.similar import did_you_mean_file
from trainer.kube.client import Client
from trainer.kube.errors import KubeError
from trainer.kube.logs.logs import configure_logging
from trainer.kube.manager.signals import run_until_signal
from trainer.kube.objects import uid_of
from trainer.kube.remote_command import CommandClient
from trainer.kube.resource import NAMESPACES
from trainer.kube.rest.connection import ConnectionOptions, connect
from trainer.v1alpha1.discovery import Served, find_served

_ANSWER_SECONDS: Final = 5.0
"""Time for a cluster to say which one it is."""


def current_cluster(kubeconfig: Path | None, context: str | None, *, pod_first: bool = False) -> ConnectionOptions:
    """The cluster of `--kubeconfig`, else of $KUBECONFIG, else that of `trainer up`, else kubectl's default.

    Of several clusters of `trainer up` it is that of `--context`, else the one that was started last or that `kubectl
    config use-context` has chosen. A context that none of them has is one of kubectl's default.

    With `pod_first`, for commands that pods run, the cluster of the pod that we run in comes before that of `trainer
    up`: pods of a dev cluster see the home directory of its user, and the state of `trainer up` in it.
    """
    if kubeconfig is not None:
        if not kubeconfig.is_file():
            raise BadInputError(f"--kubeconfig: there is no file {kubeconfig}{did_you_mean_file(kubeconfig)}")
        return ConnectionOptions(kubeconfig=kubeconfig, context=context)
    is_decided = os.environ.get("KUBECONFIG") or (pod_first and os.environ.get("KUBERNETES_SERVICE_HOST"))
    return (None if is_decided else _of_up(context)) or ConnectionOptions(context=context)


def is_of_up(kubeconfig: Path | None, contexts: Contexts) -> bool:
    """Whether `--kubeconfig`, else $KUBECONFIG, is that of `trainer up`, or neither is given. Blocks."""
    named = kubeconfig or os.environ.get("KUBECONFIG")
    return not named or Path(named).resolve() == contexts.path.resolve()


def _of_up(context: str | None) -> ConnectionOptions | None:
    """The cluster of `trainer up` that is meant; None where kubectl's default is.

    Raises:
        CommandError: it does not run: another cluster is not the one that its user expects.
    """
    contexts = Contexts.of_user()
    chosen = context or contexts.current
    name = contexts.cluster_of(chosen) if chosen else None
    if name is None and chosen in contexts.names():  # another tool has put it there
        return ConnectionOptions(kubeconfig=contexts.path, context=chosen)
    if name is None and context is not None:
        return None
    state = StateDirectory.of_user(name or DEFAULT)
    background = BackgroundProcess("cluster", state)
    up, down = state.command("up"), state.command("down")
    if background.running() is not None:
        if name is None:
            raise CommandError(f"the cluster of `{up}` is starting: {up} waits for it")
        return ConnectionOptions(kubeconfig=contexts.path, context=chosen)
    crash = background.crash()
    if crash is not None:
        raise CommandError(
            f"the cluster of `{up}` {crash}: start it again ({up}), forget it ({down}), or name another one with "
            "--context or --kubeconfig"
        )
    others = [each.context for each in running_clusters()]
    if context is not None or others:
        also = f" or with --context {others[0]}" if others else ""
        raise CommandError(
            f"the cluster of `{up}` is not running: start it ({up}), or name another one with --kubeconfig{also}"
        )
    return None


def problem_of_up(connection: ConnectionOptions) -> str:
    """Why new pods may fail on a cluster of `trainer up`, in words; "" where nothing is known. Blocks."""
    contexts = Contexts.of_user()
    if connection.kubeconfig is None or Path(connection.kubeconfig).resolve() != contexts.path.resolve():
        return ""
    name = contexts.cluster_of(connection.context or contexts.current)
    if name is None or not BackgroundProcess("cluster", state := StateDirectory.of_user(name)).is_replaced():
        return ""
    return version_problem(state)


@dataclass(frozen=True, slots=True)
class ConnectedCluster:
    """A cluster during a command."""

    client: Client
    """TrainJobs and runtimes are converted to v2alpha1, whichever version the cluster serves."""
    namespace: str
    """The namespace of the context."""
    served: Served
    """The version that the cluster serves."""
    server: str
    """The address of its API server."""
    commands: CommandClient
    """Runs commands in its containers."""
    context: str = ""
    """The context of the kubeconfig that names it. Default: none, as in a pod."""


def warning_user(options: ConnectionOptions) -> ConnectionOptions:
    """A connection whose warnings, which are the API server's, go to standard error instead of a log."""
    return replace(options, warn=lambda _path, warning: note(explained_warning(warning), kind="warning"))


def explained_warning(warning: str) -> str:
    """A warning of the API server, with the remedy that there may be where a field is dropped."""
    if not warning.startswith("unknown field "):
        return warning
    return (
        f"{warning}, which is dropped: the CRDs of this cluster do not have it; if they are older than this command, "
        "apply those of this version (trainer crds)"
    )


@asynccontextmanager
async def open_cluster(options: ConnectionOptions) -> AsyncIterator[ConnectedCluster]:
    """Connect to a cluster, and find out which version it serves; its warnings go to standard error."""
    async with connect(warning_user(options)) as client:
        served = await find_served(client)
        yield ConnectedCluster(served.client(client), client.namespace, served, client.server, client, client.context)


async def identity_of(client: Client) -> str:
    """The uid of the namespace kube-system, by which a history keeps clusters apart; "" for who cannot read it."""
    try:
        return uid_of(await client.get(NAMESPACES, "kube-system"))
    except KubeError:
        return ""


def identity_of_current(kubeconfig: Path | None, context: str | None) -> str:
    """The identity of the cluster that a command is about, which need not run if it is one of `trainer up`.

    It is "" where no cluster answers. Blocks.
    """
    named = str(kubeconfig or os.environ.get("KUBECONFIG") or "")
    contexts, state = Contexts.of_user(), None
    if is_of_up(kubeconfig, contexts):
        name = contexts.cluster_of(context) if context else contexts.current_cluster
        state = StateDirectory.of_user(name or DEFAULT) if name or not (named or context) else None
    known = state.identity() if state is not None else ""
    is_meant = named or context or (state is not None and BackgroundProcess("cluster", state).running() is not None)
    return known if known and is_meant else _asked(kubeconfig, context) or known


def _asked(kubeconfig: Path | None, context: str | None) -> str:
    async def ask(options: ConnectionOptions) -> str:
        with anyio.move_on_after(_ANSWER_SECONDS):
            async with connect(options) as client:
                return await identity_of(client)
        return ""

    try:
        return anyio.run(ask, current_cluster(kubeconfig, context))
    except (KubeError, CommandError):
        return ""


def run_on(
    options: ConnectionOptions,
    command: Callable[[ConnectedCluster], Awaitable[int | None]],
    *,
    log_level: Literal["warning", "error"] = "error",
) -> int:
    """Run a command on a cluster; returns its exit code, or that of the signal that ends it.

    Commands tell people what matters to them in sentences. Log events are for machines and operators: with `warning` a
    command shows those of a program that runs within it.
    """
    configure_logging(json=False, level=log_level)

    async def run() -> int:
        async with open_cluster(options) as cluster:
            return await command(cluster) or ExitCode.OK

    return run_until_signal(run)
