"""`trainer cluster`: the dev cluster in the foreground."""

from __future__ import annotations

import importlib.util
import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from trainer.cli.errors import BadInputError
from trainer.kube.quantity import parse_amounts

CLUSTER_READY = "cluster ready: "
"""Begins the line that the dev cluster prints when it serves."""

_PROGRAM = "trainer_devcluster"
"""The module that runs the dev cluster."""


class PodNetwork(StrEnum):
    """How pods find each other by name and keep their ports apart."""

    AUTO = "auto"
    NETNS = "netns"
    HOSTS = "hosts"
    PLAIN = "plain"


class GangScheduler(StrEnum):
    """For which schedulers of gangs the dev cluster stands in, by the name of the plugin that makes their PodGroups."""

    COSCHEDULING = "coscheduling"
    VOLCANO = "volcano"


class FeatureGate(StrEnum):
    """What the dev cluster does or leaves as it is told, by the name of its gate."""

    ELASTIC_JOB_SET = "ElasticJobSet"
    RESTART_JOB = "RestartJob"
    WATCH_LIST = "WatchList"


Port = Annotated[int, typer.Option(min=0, max=65535, help="Port of the API server on 127.0.0.1; 0 picks a free one.")]
Network = Annotated[
    PodNetwork, typer.Option(help="How pods reach each other; auto chooses the best way that this machine allows.")
]
NodeResources = Annotated[
    str,
    typer.Option(
        metavar="NAME=QUANTITY,...",
        help="Resources of the node, such as nvidia.com/gpu=8,cpu=4, instead of those of this machine. Requests of "
        "pods count against them; a GPU that the machine does not have is only counted.",
    ),
]
GangSchedulers = Annotated[
    str,
    typer.Option(
        metavar="NAME,...",
        help="Install the PodGroups of coscheduling, volcano or both; pods of these schedulers then wait until "
        "minMember of their PodGroup fit. Default: none.",
    ),
]
FeatureGates = Annotated[
    str,
    typer.Option(
        metavar="NAME=true|false,...",
        help="Features to switch on or off; ElasticJobSet (default: false) lets the Jobs of a JobSet be resized; "
        "RestartJob (false) lets failure policies make single Jobs again; WatchList (true) serves streaming lists.",
    ),
]
AuditLogPath = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Append every request with its user, its outcome and why it was allowed to this file when it ends; "
        "watches when they do. JSON lines of audit.k8s.io/v1 Event, as kube-apiserver writes them with policy level "
        "Metadata and stage ResponseComplete. Default: $TRAINER_AUDIT_LOG_PATH, or none.",
    ),
]


def cluster_command(
    *,
    port: int = 0,
    data_dir: Path | None = None,
    kubeconfig: Path | None = None,
    kubelet: bool = True,
    pod_network: PodNetwork = PodNetwork.AUTO,
    feature_gates: str = "",
    fake_pods: bool = False,
    node_resources: str = "",
    gang_schedulers: str = "",
    audit_log_path: Path | None = None,
) -> list[str]:
    """The command line of the dev cluster, a program of its own."""
    _require_extra()
    command = [sys.executable, "-m", _PROGRAM, "--port", str(port), "--pod-network", pod_network.value]
    if data_dir is not None:
        if data_dir.exists() and not data_dir.is_dir():
            raise BadInputError(f"--data-dir: {data_dir} is not a directory")
        command += ["--data-dir", str(data_dir.absolute())]
    command += _file_option("--kubeconfig", kubeconfig, "write")
    command += _file_option("--audit-log-path", audit_log_path, "append to")
    if fake_pods and not kubelet:
        raise BadInputError("--fake-pods needs the kubelet: leave out --no-kubelet")
    if not kubelet:
        command.append("--no-kubelet")
    if fake_pods:
        command.append("--fake-pods")
    if node_resources:
        _check_node_resources(node_resources)
        command += ["--node-resources", node_resources]
    if gang_schedulers:
        _check_gang_schedulers(gang_schedulers)
        command += ["--gang-schedulers", gang_schedulers]
    if feature_gates:
        _check_feature_gates(feature_gates)
        command += ["--feature-gates", feature_gates]
    return command


def _file_option(name: str, path: Path | None, use: str) -> list[str]:
    if path is None:
        return []
    if path.is_dir():
        raise BadInputError(f"{name}: {path} is a directory: name the file to {use}")
    if not path.absolute().parent.is_dir():
        raise BadInputError(f"{name}: there is no directory {path.parent}")
    return [name, str(path.absolute())]


def _check_node_resources(text: str) -> None:
    try:
        parse_amounts(text)
    except ValueError as error:
        raise BadInputError(f"--node-resources: {error}") from error


def _check_gang_schedulers(text: str) -> None:
    for name in text.split(","):
        if name.strip() not in list(GangScheduler):
            raise BadInputError(f"--gang-schedulers: {name!r} is not one of: {', '.join(GangScheduler)}")


def _check_feature_gates(text: str) -> None:
    known = {f"{gate}={value}" for gate in FeatureGate for value in ("true", "false")}
    for entry in text.split(","):
        if entry.strip() not in known:
            names = ", ".join(FeatureGate)
            raise BadInputError(f"--feature-gates: {entry!r} is not NAME=true or NAME=false with one of: {names}")


def _require_extra() -> None:
    if importlib.util.find_spec(_PROGRAM) is None:
        raise BadInputError("the dev cluster is not installed: pip install 'trainer-operator[cluster]'")


def cluster(
    *,
    port: Port = 0,
    data_dir: Annotated[
        Path | None, typer.Option(help="Where objects and container logs are kept. Default: a temporary directory.")
    ] = None,
    kubeconfig: Annotated[
        Path | None, typer.Option(help="File to write the credentials to. Default: in the data directory.")
    ] = None,
    kubelet: Annotated[
        bool, typer.Option("--kubelet/--no-kubelet", help="Whether the dev cluster runs pods itself.")
    ] = True,
    fake_pods: Annotated[
        bool, typer.Option("--fake-pods", help="Do not run pods; only report the phases that their annotations name.")
    ] = False,
    node_resources: NodeResources = "",
    gang_schedulers: GangSchedulers = "",
    pod_network: Network = PodNetwork.AUTO,
    feature_gates: FeatureGates = "",
    audit_log_path: AuditLogPath = None,
) -> NoReturn:
    """Run the dev cluster in the foreground; SIGTERM or Ctrl-C stops it and every pod it runs.

    It serves the Kubernetes API on 127.0.0.1 and runs containers as local processes. It is for development only.
    """
    command = cluster_command(
        port=port,
        data_dir=data_dir,
        kubeconfig=kubeconfig,
        kubelet=kubelet,
        pod_network=pod_network,
        feature_gates=feature_gates,
        fake_pods=fake_pods,
        node_resources=node_resources,
        gang_schedulers=gang_schedulers,
        audit_log_path=audit_log_path,
    )
    os.execv(command[0], command)  # noqa: S606 - signals go straight to the cluster
