"""`trainer up`, `down` and `status`: dev cluster and controller manager in the background."""

from __future__ import annotations

import shlex
from collections import Counter
from datetime import UTC, datetime
from typing import Annotated

import typer
from anyio.to_thread import run_sync

from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.cli.console import duration, quote, say
from trainer.cli.current_cluster import warning_user
from trainer.cli.errors import CommandError, ExitCode
from trainer.cli.jobs.state import JobState
from trainer.cli.local.cluster import (
    CLUSTER_READY,
    FeatureGates,
    GangSchedulers,
    Network,
    NodeResources,
    PodNetworkMode,
    Port,
    cluster_command,
)
from trainer.cli.local.manager import prepare_manager, publish_version, wait_for_admission
from trainer.cli.manifests import install_definitions, install_runtimes
from trainer.cli.operate.manager import READY
from trainer.cli.options import WantedApiVersion
from trainer.cli.processes.background import BackgroundProcess, StateDirectory
from trainer.kube.client import Client
from trainer.kube.errors import KubeError
from trainer.kube.logs.logs import configure_logging
from trainer.kube.manager.signals import run_until_signal
from trainer.kube.objects import annotations_of, name_of
from trainer.kube.resource import NODES
from trainer.kube.rest.connection import ConnectionOptions, connect
from trainer.v1alpha1.discovery import Version, find_served, served_versions

_NODE = "laptop"
_POD_NETWORK = "devcluster.trainer/pod-network"
MetricsPort = Annotated[
    int,
    typer.Option(
        min=0,
        max=65535,
        help="Serve the manager's metrics at http://127.0.0.1:PORT/metrics, for a Prometheus and "
        "everybody else on this machine. Default: 0, nowhere.",
    ),
]
_FIXED_AT_START = ("--feature-gates", "--gang-schedulers", "--node-resources")


def up(
    *,
    port: Port = 0,
    pod_network: Network = PodNetworkMode.AUTO,
    node_resources: NodeResources = "",
    gang_schedulers: GangSchedulers = "",
    feature_gates: FeatureGates = "",
    metrics_port: MetricsPort = 0,
    api_version: WantedApiVersion = None,
) -> None:
    """Start a dev cluster and a controller manager in the background, with CRDs and runtimes applied.

    A cluster keeps the version of TrainJobs with which it was first started; by default that is v2alpha1.

    It can be run again at any time: running processes are left alone, crashed ones are reported and started again.
    """
    state = StateDirectory.of_user()
    command = cluster_command(
        port=port,
        data_dir=state.data,
        pod_network=pod_network,
        feature_gates=feature_gates,
        node_resources=node_resources,
        gang_schedulers=gang_schedulers,
    )
    configure_logging(json=False, level="error")
    with state.lock():
        arguments = [*command, "--kubeconfig", str(state.kubeconfig)]
        code = run_until_signal(lambda: _up(state, arguments, metrics_port, api_version))
    raise typer.Exit(code)


def down(
    delete: Annotated[bool, typer.Option("--delete", help="Also delete all objects, volumes and logs.")] = False,
) -> None:
    """Stop the cluster and the manager of `trainer up`.

    Objects, volumes and logs are kept, and `trainer up` starts with them again. Does nothing when nothing runs.
    """
    configure_logging(json=False, level="error")
    state = StateDirectory.of_user()
    if not state.root.exists():
        say("nothing to stop")
        return
    with state.lock():
        code = run_until_signal(lambda: _down(state, delete=delete))
    raise typer.Exit(code)


def status() -> None:
    """Show what runs in the background and what is on the cluster; exit code 0 when cluster and manager run, else 1."""
    configure_logging(json=False, level="error")
    raise typer.Exit(run_until_signal(lambda: _status(StateDirectory.of_user())))


def _processes(state: StateDirectory) -> tuple[BackgroundProcess, BackgroundProcess]:
    return BackgroundProcess("cluster", state), BackgroundProcess("manager", state)


async def _up(state: StateDirectory, command: list[str], metrics_port: int, wanted: Version | None) -> int:
    cluster, manager = _processes(state)
    for process in (cluster, manager):
        crash = await run_sync(process.crash)
        if crash is not None:
            quote(process.log.path, await run_sync(process.log.tail))
            say(f"the {process.name} {crash}; starting it again")
    if await run_sync(cluster.running) is None:
        await manager.stop()  # it has the address and credentials of the cluster that is gone
        await cluster.start(command, ready=CLUSTER_READY)
    elif fixed := [option for option in _FIXED_AT_START if option in command]:
        takes = f"{', '.join(fixed)} {'takes' if len(fixed) == 1 else 'take'}"
        say(f"the cluster is running already: {takes} effect after trainer down and trainer up")
    async with connect(warning_user(ConnectionOptions(kubeconfig=state.kubeconfig))) as client:
        version = _version(await served_versions(client), wanted)
        await install_definitions(client, version=version)
        if version == "v1alpha1":
            await publish_version(client)
        if await run_sync(manager.running) is None:
            await _start_manager(client, manager, state, metrics_port, version)
            if metrics_port:
                say(f"metrics: http://127.0.0.1:{metrics_port}/metrics")
        elif metrics_port:
            say("the manager runs already: --metrics-port takes effect after trainer down and trainer up")
        await install_runtimes(client, version)
    code = await _status(state)
    say(f"\nexport KUBECONFIG={shlex.quote(str(state.kubeconfig))}    # lets kubectl talk to it")
    return code


def _version(served: list[str], wanted: Version | None) -> Version:
    """The version of TrainJobs to install on a cluster that serves these already."""
    present: Version | None = "v1alpha1" if "v1alpha1" in served else "v2alpha1" if "v2alpha1" in served else None
    if present is not None and wanted not in (None, present):
        raise CommandError(
            f"--api-version: this cluster serves {present}, and keeps it: delete it first (trainer down --delete)"
        )
    return present or wanted or "v2alpha1"


async def _start_manager(
    client: Client, manager: BackgroundProcess, state: StateDirectory, metrics_port: int, version: Version
) -> None:
    command = await prepare_manager(
        client,
        state.kubeconfig,
        kubeconfig=state.manager_kubeconfig,
        configuration=state.manager_configuration,
        metrics_port=metrics_port,
        version=version,
    )
    await manager.start(command, ready=READY)
    await wait_for_admission(client)


async def _down(state: StateDirectory, *, delete: bool) -> int:
    cluster, manager = _processes(state)
    for process in (manager, cluster):
        stopped = await process.stop()
        say(f"{process.name} {'stopped' if stopped else 'was not running'}")
    if delete:
        await run_sync(state.delete_data)
        say("objects, volumes and logs deleted")
    return ExitCode.OK


async def _status(state: StateDirectory) -> int:
    cluster, manager = _processes(state)
    is_cluster_up = await run_sync(cluster.running) is not None
    lines: list[tuple[str, str]] = []
    server, answers = "", True
    if is_cluster_up:
        try:
            async with connect(warning_user(ConnectionOptions(kubeconfig=state.kubeconfig))) as client:
                server = client.server
                served = await find_served(client)
                lines = [("API", f"{TRAIN_JOBS.group}/{served.version}"), *await _contents(served.client(client))]
        except KubeError as error:
            answers = False
            server = f"but {error}"
    is_manager_up = await run_sync(manager.running) is not None
    _say("cluster", ", ".join(filter(None, [await run_sync(_condition, cluster), server])))
    _say("manager", await run_sync(_condition, manager))
    for label, text in lines:
        _say(label, text)
    return ExitCode.OK if is_cluster_up and answers and is_manager_up else ExitCode.FAILED


async def _contents(client: Client) -> list[tuple[str, str]]:
    nodes = await client.list(NODES)
    modes = [annotations_of(node).get(_POD_NETWORK, "") for node in nodes.items if name_of(node) == _NODE]
    runtimes = await client.list(CLUSTER_TRAINING_RUNTIMES)
    jobs = await client.list(TRAIN_JOBS)
    states = Counter(JobState.of(job).word for job in jobs.items)
    summary = ", ".join(f"{count} {word}" for word, count in sorted(states.items()))
    return [
        ("pod network", "".join(modes) or "none: no kubelet runs"),
        ("runtimes", ", ".join(sorted(map(name_of, runtimes.items))) or "none"),
        ("TrainJobs", f"{len(jobs.items)} ({summary})" if summary else "0"),
    ]


def _condition(process: BackgroundProcess) -> str:
    run = process.running()
    if run is not None:
        uptime = duration((datetime.now(UTC) - run.started).total_seconds())
        return f"running, pid {run.process.pid}, for {uptime}"
    crash = process.crash()
    if crash is not None:
        return f"{crash}; its log is {process.log.path}; trainer up starts it again"
    return "not running; trainer up starts it"


def _say(label: str, text: str) -> None:
    say(f"{label:<12} {text}")
