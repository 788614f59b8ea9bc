"""`trainer up`: dev cluster, controller manager and recorder in the background."""

from __future__ import annotations

import errno
import shlex
import socket
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import urlsplit

import typer
import yaml
from anyio.to_thread import run_sync

from trainer.cli.console import note, quote, say
from trainer.cli.current_cluster import identity_of, warning_user
from trainer.cli.errors import CommandError
from trainer.cli.installation import install_definitions, install_runtimes
from trainer.cli.kinds import further_definitions
from trainer.cli.local.cluster import (
    FeatureGates,
    GangSchedulers,
    Network,
    NodeResources,
    PodNetworkMode,
    cluster_command,
)
from trainer.cli.local.dev_cluster import PROCESSES
from trainer.cli.local.manager import prepare_manager, publish_version, wait_for_admission
from trainer.cli.local.name import Name
from trainer.cli.local.other_version import stop_other_versions
from trainer.cli.local.readiness import cluster_answers, manager_answers
from trainer.cli.local.status import show_status
from trainer.cli.local.steps import Steps
from trainer.cli.options import WantedApiVersion
from trainer.cli.past import recorder_program
from trainer.cli.processes.background import BackgroundProcess
from trainer.cli.processes.contexts import Contexts
from trainer.cli.processes.state_directory import DEFAULT, StateDirectory
from trainer.cli.processes.supervisor import FORMER
from trainer.kube.client import Client
from trainer.kube.logs.logs import configure_logging
from trainer.kube.manager.signals import run_until_signal
from trainer.kube.rest.connection import ConnectionOptions, connect
from trainer.v1alpha1.discovery import Version, served_versions

MetricsPort = Annotated[
    int,
    typer.Option(
        min=0,
        max=65535,
        help="Serve the manager's metrics at http://127.0.0.1:PORT/metrics, for a Prometheus and "
        "everybody else on this machine. Default: 0, nowhere.",
    ),
]
KeptPort = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=65535,
        help="Port of the API server on 127.0.0.1; 0 picks a free one. Default: that of the last start, so that "
        "kubeconfigs stay valid.",
    ),
]
RecordHistory = Annotated[
    bool,
    typer.Option(
        "--history/--no-history",
        help="Whether trainings are recorded, for trainer get --history. Needs the extra dashboard.",
    ),
]
_SIGNALLED: Final = 128
"""Exit codes above it stand for signals."""
_HOST: Final = "127.0.0.1"
_FIXED_AT_START = ("--feature-gates", "--gang-schedulers", "--node-resources")


def up(
    *,
    name: Name = DEFAULT,
    port: KeptPort = None,
    pod_network: Network = PodNetworkMode.AUTO,
    node_resources: NodeResources = "",
    gang_schedulers: GangSchedulers = "",
    feature_gates: FeatureGates = "",
    metrics_port: MetricsPort = 0,
    api_version: WantedApiVersion = None,
    history: RecordHistory = True,
) -> None:
    """Start a dev cluster and a controller manager in the background, with CRDs and runtimes applied.

    With --name there are further clusters beside it. The one that was started last is the current one, which other
    commands use unless they have --context, and kubectl with the KUBECONFIG that is printed.

    A cluster keeps its address, its credentials and the version of TrainJobs with which it was first started; by
    default that is v2alpha1. What is trained is recorded, if the history is installed.

    It can be run again at any time, also after Ctrl-C: running processes are left alone, crashed ones are reported and
    started again, as are those that another version of trainer has started; the cluster only when nothing is trained.
    """
    state, contexts = StateDirectory.of_user(name), Contexts.of_user()
    contexts.take_over(state, is_of_former=BackgroundProcess("cluster", state).other_version() == FORMER)
    kept = port if port is not None else kept_port(state.kubeconfig) if state.data.exists() else 0
    command = cluster_command(
        port=kept,
        data_dir=state.data,
        pod_network=pod_network,
        feature_gates=feature_gates,
        node_resources=node_resources,
        gang_schedulers=gang_schedulers,
    )
    configure_logging(json=False, level="error")
    arguments = [*command, "--kubeconfig", str(state.kubeconfig)]
    wanted = _Wanted(arguments, kept, metrics_port, api_version, is_recorded=history)
    with state.lock():
        code = run_until_signal(lambda: _up(state, contexts, wanted))
    if code > _SIGNALLED:
        note(f"interrupted; {state.command('up')} goes on from here, {state.command('down')} stops what runs")
    raise typer.Exit(code)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What `trainer up` is to start."""

    command: list[str]
    """Of the dev cluster."""
    port: int
    metrics_port: int
    version: Version | None
    is_recorded: bool


async def _up(state: StateDirectory, contexts: Contexts, wanted: _Wanted) -> int:
    cluster, manager, recorder = (BackgroundProcess(name, state) for name in PROCESSES)
    for process in (cluster, manager, recorder):
        if await run_sync(process.is_stopping):
            await process.stop()
        crash = await run_sync(process.crash)
        if crash is not None:
            quote(process.log.path, await run_sync(process.log.tail))
            say(f"the {process.name} {crash}; starting it again")
    await stop_other_versions(state)
    steps = Steps()
    await _start_cluster(cluster, (manager, recorder), wanted, steps)
    before = await run_sync(contexts.add, state)
    async with connect(warning_user(ConnectionOptions(kubeconfig=state.kubeconfig))) as client:
        await run_sync(state.identity_file.write_text, await identity_of(client))
        version = _version(await served_versions(client), wanted.version, state)
        with steps.step("install the definitions"):
            await install_definitions(client, version=version, further=await run_sync(further_definitions, version))
            if version == "v1alpha1":
                await publish_version(client)
        with steps.step("start the manager"):
            await _start_manager(client, manager, state, wanted.metrics_port, version)
        with steps.step("install the runtimes"):
            await install_runtimes(client, version)
    await _start_recorder(recorder, state, wanted, steps)
    code = await show_status(state)
    say()
    say(f"export KUBECONFIG={shlex.quote(str(contexts.path))}    # lets kubectl talk to it")
    if before not in ("", state.context):
        say(f"kubectl config use-context {before}    # goes back from {state.context}, the current context now")
    return code


async def _start_cluster(
    cluster: BackgroundProcess, clients: tuple[BackgroundProcess, ...], wanted: _Wanted, steps: Steps
) -> None:
    is_ready = cluster_answers(cluster.state.kubeconfig)
    if await run_sync(cluster.running) is None:
        for process in clients:  # they have the address and credentials of the cluster that is gone
            await process.stop()
        await run_sync(require_free, wanted.port, cluster.state)
        with steps.step("start the cluster"):
            await cluster.start(wanted.command, is_ready)
        return
    with steps.step("wait for the cluster"):
        await cluster.wait_until_ready(is_ready)
    fixed = [option for option in _FIXED_AT_START if option in wanted.command]
    if wanted.port and wanted.port != await run_sync(kept_port, cluster.state.kubeconfig):
        fixed.insert(0, "--port")
    if fixed:
        takes = f"{', '.join(fixed)} {'takes' if len(fixed) == 1 else 'take'}"
        again = f"{cluster.state.command('down')} and {cluster.state.command('up')}"
        say(f"the cluster is running already: {takes} effect after {again}")


def kept_port(kubeconfig: Path) -> int:
    """The port with which this cluster was started last; 0 when it was never. Blocks."""
    try:
        server = yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
        return urlsplit(server).port or 0
    except (OSError, ValueError, LookupError, TypeError, AttributeError, yaml.YAMLError):
        return 0


def require_free(port: int, state: StateDirectory) -> None:
    """Check that the API server can listen on its port; 0 is always free. Blocks.

    Raises:
        CommandError: another process has it.
    """
    try:
        socket.create_server((_HOST, port)).close()
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            return  # the cluster says what is wrong
        raise CommandError(
            f"port {port} of this cluster is taken by another process: end it (ss -ltnp 'sport = :{port}' shows it), "
            f"or move the cluster with {state.command('up')} --port 0, and use the new kubeconfig"
        ) from None


def _version(served: list[str], wanted: Version | None, state: StateDirectory) -> Version:
    """The version of TrainJobs to install on a cluster that serves these already."""
    present: Version | None = "v1alpha1" if "v1alpha1" in served else "v2alpha1" if "v2alpha1" in served else None
    if present is not None and wanted not in (None, present):
        raise CommandError(
            f"--api-version: this cluster serves {present}, and keeps it: start another one beside it (trainer up "
            f"--name NAME --api-version {wanted}), or delete it first ({state.command('down')} --delete)"
        )
    return present or wanted or "v2alpha1"


async def _start_manager(
    client: Client, manager: BackgroundProcess, state: StateDirectory, metrics_port: int, version: Version
) -> None:
    if await run_sync(manager.running) is not None:
        if metrics_port:
            again = f"{state.command('down')} and {state.command('up')}"
            say(f"the manager runs already: --metrics-port takes effect after {again}")
        await manager.wait_until_ready(await manager_answers(state.manager_configuration))
    else:
        command = await prepare_manager(
            client,
            state.kubeconfig,
            kubeconfig=state.manager_kubeconfig,
            configuration=state.manager_configuration,
            metrics_port=metrics_port,
            version=version,
        )
        await manager.start(command, await manager_answers(state.manager_configuration))
        if metrics_port:
            say(f"metrics: http://{_HOST}:{metrics_port}/metrics")
    await wait_for_admission(client)


async def _start_recorder(recorder: BackgroundProcess, state: StateDirectory, wanted: _Wanted, steps: Steps) -> None:
    """Start it where it is wanted and installed; a cluster without history is better than none."""
    if not wanted.is_recorded:
        if await recorder.stop():
            say("the recorder was stopped")
        return
    if await run_sync(recorder.running) is not None:
        return
    try:
        program = await run_sync(recorder_program, state.kubeconfig)
        if program is not None:
            with steps.step("start the recorder"):
                await recorder.start(program.command, partial(run_sync, recorder.log.has, program.ready))
    except CommandError as error:
        note(f"{error}: what is trained is not recorded", kind="warning")
