"""The dev cluster process: API server, controllers and kubelet, wired together and stopped in order."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import NoReturn, TypeVar

import anyio
import structlog
import yaml

import trainer_devcluster
from trainer.kube.client import Client
from trainer.kube.clock import SystemClock, move_on_after
from trainer.kube.errors import AlreadyExistsError, KubeError
from trainer.kube.logs.logs import configure_logging
from trainer.kube.manager.manager import Manager
from trainer.kube.manager.signals import run_until_signal
from trainer.kube.memory import limit_memory
from trainer.kube.objects import Object, is_condition_true, name_of
from trainer.kube.quantity import parse_amounts
from trainer.kube.resource import CUSTOM_RESOURCE_DEFINITIONS
from trainer.kube.rest.connection import ConnectionOptions, connect
from trainer_devcluster import apiserver, controllers, kubelet, scheduler
from trainer_devcluster.apiserver.server import ServerOptions, serve
from trainer_devcluster.apiserver.storage.data_directory import write_private
from trainer_devcluster.container_commands import CommandRunner
from trainer_devcluster.feature_gates import DEFAULT_FEATURE_GATES, FeatureGates
from trainer_devcluster.kubelet import fake
from trainer_devcluster.kubelet.fake.life import EXITS_WITH, RUNS_FOR
from trainer_devcluster.kubelet.volumes import without_number

log = structlog.get_logger(__name__)
T = TypeVar("T")

ESTABLISH_TIMEOUT = 30.0
"""Seconds until a definition that was just stored must be served."""
ESTABLISH_POLL = 0.02
AUDIT_LOG_VARIABLE = "TRAINER_AUDIT_LOG_PATH"
"""Variable of the environment that names the audit log of clusters that are started without one."""
_PROGRAM = "trainer cluster"
_MAX_PORT = 65535


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """How a dev cluster runs."""

    data_dir: Path
    """Certificates, the token, container logs, volumes and, with `persistent`, the objects."""
    kubeconfig: Path
    """Written with mode 0600 before the cluster is ready."""
    persistent: bool = False
    """Whether objects outlive the process. Default: no, for a data directory that goes away with it."""
    port: int = 0
    """TCP port of the API server on 127.0.0.1. Default: 0, any free one."""
    run_pods: bool = True
    """Whether pods run. Default: yes; without it they stay Pending until somebody sets their status."""
    fake_pods: bool = False
    """Whether pods only say that they run, see `kubelet.fake`. Default: no."""
    pod_network: kubelet.PodNetworkMode = kubelet.PodNetworkMode.AUTO
    """How pods reach each other. Default: the best way that works here."""
    node_resources: Mapping[str, str] = field(default_factory=dict)
    """Amounts that the Node has in place of those of the machine. Default: none."""
    gang_schedulers: Sequence[scheduler.GangScheduler] = ()
    """Whose PodGroups are installed. Default: none, as on a cluster without such a scheduler. What installs the kind
    later, as `kubectl apply` may, is scheduled for all the same."""
    feature_gates: FeatureGates = DEFAULT_FEATURE_GATES
    """Features that API server and controllers have on. Default: what the gates themselves have as default."""
    audit_log: Path | None = None
    """File to which the API server appends every request with its outcome. Default: none."""


def run_cluster(options: ClusterOptions) -> None:
    """Run until SIGTERM, SIGINT or SIGHUP; prints one line to stdout when everything is ready.

    Raises:
        ExceptionGroup: of OSError, if the port is taken or a file cannot be written; of KubeError, if a part failed.
    """

    async def command() -> int:
        await _serve_and_control(options)
        return 0

    # A second signal is ignored: the kubelet has processes to end.
    run_until_signal(command)


async def _serve_and_control(options: ClusterOptions) -> None:
    # Contexts close from the inside: the kubelet ends its pods while the API server still answers.
    gates, is_started = options.feature_gates, anyio.Event()
    server_options = ServerOptions(
        options.data_dir,
        options.port,
        persistent=options.persistent,
        feature_gates=gates,
        audit_log=options.audit_log,
        is_ready=is_started.is_set,
    )
    commands = CommandRunner()
    async with serve(server_options, commands=commands) as server:
        await anyio.to_thread.run_sync(write_private, options.kubeconfig, server.kubeconfig().encode())
        user_agent = f"trainer-devcluster/{trainer_devcluster.__version__}"
        async with connect(ConnectionOptions(kubeconfig=options.kubeconfig, user_agent=user_agent)) as client:
            await install_definition(client, await anyio.to_thread.run_sync(jobset_definition))
            for gang_scheduler in options.gang_schedulers:
                definition = await anyio.to_thread.run_sync(scheduler.definition_of, gang_scheduler)
                await install_definition(client, definition)
            manager = Manager(client)
            controllers.register_all(manager, controllers.ControllerOptions(feature_gates=gates))
            started: list[Callable[[], Awaitable[None]]] = [manager.wait_for_start]
            if options.run_pods:
                started.append(_run_pods(manager, options, server.url, commands))
            async with anyio.create_task_group() as tasks:
                text = f"cluster ready: {server.url} kubeconfig={options.kubeconfig}"
                tasks.start_soon(_announce, started, is_started, text)
                await manager.run()


def _run_pods(
    manager: Manager, options: ClusterOptions, api_server: str, commands: CommandRunner
) -> Callable[[], Awaitable[None]]:
    """Add scheduler and kubelet to the manager; returns what waits for their start."""
    kubelet_options = kubelet.KubeletOptions(
        options.data_dir,
        api_server=api_server,
        pod_network=options.pod_network,
        node_resources=options.node_resources,
    )
    scheduler.register(manager, kubelet_options.node_name, options.feature_gates)
    if options.fake_pods:
        return fake.register(manager, kubelet_options).wait_for_start
    return kubelet.register(manager, kubelet_options, commands).wait_for_start


async def _announce(started: Sequence[Callable[[], Awaitable[None]]], is_started: anyio.Event, text: str) -> None:
    for wait in started:
        await wait()
    is_started.set()  # /readyz succeeds
    # The one line that scripts wait for, in one write: print makes two of it where output is not buffered, and the
    # thread that writes the log may come between.
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


async def install_definition(client: Client, definition: Object) -> None:
    """Store a CustomResourceDefinition, or bring a stored one up to date, and wait until it is served.

    Raises:
        KubeError: it is not served in time, or is refused.
    """
    try:
        await client.create(CUSTOM_RESOURCE_DEFINITIONS, definition)
    except AlreadyExistsError:
        stored = await client.get(CUSTOM_RESOURCE_DEFINITIONS, name_of(definition))
        await client.update(CUSTOM_RESOURCE_DEFINITIONS, {**stored, "spec": definition["spec"]})
    clock = SystemClock()
    async with move_on_after(clock, ESTABLISH_TIMEOUT):
        while True:
            stored = await client.get(CUSTOM_RESOURCE_DEFINITIONS, name_of(definition))
            if is_condition_true(stored, "Established"):
                return
            await clock.sleep(ESTABLISH_POLL)
    raise KubeError(f"{name_of(definition)} was not established within {ESTABLISH_TIMEOUT:.0f} seconds")


def jobset_definition() -> Object:
    """The CustomResourceDefinition of JobSet, which the cluster brings along; reads a file."""
    text = (resources.files(apiserver) / "data" / "jobset_crd.yaml").read_bytes()
    definition: Object = yaml.load(text, Loader=yaml.CSafeLoader)
    return definition


class _ArgumentParser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see --help)\n")


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line; a wrong one ends the process with exit code 2 and one line on stderr."""
    parser = _ArgumentParser(prog=_PROGRAM, description="Run the dev cluster in the foreground, for development only.")
    parser.add_argument("--port", type=_port, default=0, metavar="N", help="port on 127.0.0.1; default: a free one")
    parser.add_argument(
        "--data-dir",
        type=Path,
        metavar="DIR",
        help="keep objects here when the cluster ends; default: a temporary directory that goes away with it",
    )
    parser.add_argument("--kubeconfig", type=Path, metavar="PATH", help="default: kubeconfig in the data directory")
    pods = parser.add_mutually_exclusive_group()
    pods.add_argument("--no-kubelet", action="store_true", help="keep pods as objects without running them")
    pods.add_argument(
        "--fake-pods",
        action="store_true",
        help=f"let pods only say that they run: they end at once, or as their annotations {RUNS_FOR} (2s) and "
        f"{EXITS_WITH} (1) say",
    )
    parser.add_argument(
        "--node-resources",
        type=_read_by(parse_amounts),
        default={},
        metavar="NAME=QUANTITY,...",
        help="resources of the node, such as nvidia.com/gpu=8,cpu=4, instead of those of the machine: requests of pods "
        "count against them, but a GPU that the machine does not have is only counted",
    )
    parser.add_argument(
        "--gang-schedulers",
        type=_read_by(scheduler.parse_gang_schedulers),
        default=(),
        metavar="NAME,...",
        help="install the PodGroups of coscheduling, volcano or both: pods of these schedulers wait until minMember of "
        "their PodGroup fit; default: none",
    )
    parser.add_argument(
        "--pod-network",
        type=_pod_network_mode,
        default=kubelet.PodNetworkMode.AUTO,
        metavar="MODE",
        help=f"how pods reach each other: {', '.join(kubelet.PodNetworkMode)}; default: auto",
    )
    parser.add_argument(
        "--feature-gates",
        type=_read_by(FeatureGates.parse),
        default=DEFAULT_FEATURE_GATES,
        metavar="NAME=true|false,...",
        help="features to switch on or off; ElasticJobSet (default: false) resizes Jobs of a JobSet, WatchList (true) "
        "streams lists, GenericWorkload (false) serves the Workload API, GangScheduling (false) schedules its gangs",
    )
    parser.add_argument(
        "--audit-log-path",
        type=Path,
        default=os.environ.get(AUDIT_LOG_VARIABLE) or None,
        metavar="FILE",
        help="append every request with its user, its outcome and why it was allowed to this file when it ends; "
        "watches when they do. JSON lines of audit.k8s.io/v1 Event, as kube-apiserver writes them with policy level "
        f"Metadata and stage ResponseComplete; default: ${AUDIT_LOG_VARIABLE}, or none",
    )
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the dev cluster; returns the exit code."""
    parsed = parse_arguments(sys.argv[1:] if arguments is None else arguments)
    limit_memory()
    configure_logging()
    with ExitStack() as stack:
        data_dir = parsed.data_dir
        if data_dir is None:
            data_dir = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="trainer-dev-")))
        data_dir = data_dir.absolute()
        options = ClusterOptions(
            data_dir,
            (parsed.kubeconfig or data_dir / "kubeconfig").absolute(),
            persistent=parsed.data_dir is not None,
            port=parsed.port,
            run_pods=not parsed.no_kubelet,
            fake_pods=parsed.fake_pods,
            node_resources=parsed.node_resources,
            gang_schedulers=parsed.gang_schedulers,
            pod_network=parsed.pod_network,
            feature_gates=parsed.feature_gates,
            audit_log=parsed.audit_log_path and parsed.audit_log_path.absolute(),
        )
        try:
            run_cluster(options)
        except* OSError as group:
            code = _complain(group, 2)
        except* KubeError as group:
            code = _complain(group, 1)
        else:
            code = 0
    return code


def _complain(group: BaseExceptionGroup[Exception], code: int) -> int:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    sys.stderr.write(f"{_PROGRAM}: {' '.join(without_number(error).split())}\n")
    return code


def _pod_network_mode(text: str) -> kubelet.PodNetworkMode:
    try:
        return kubelet.PodNetworkMode(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not one of {', '.join(kubelet.PodNetworkMode)}") from error


def _read_by(parse: Callable[[str], T]) -> Callable[[str], T]:
    """A type of arguments whose error is that of `parse`."""

    def read(text: str) -> T:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return read


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) > _MAX_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port number between 0 and {_MAX_PORT}")
    return int(text)
