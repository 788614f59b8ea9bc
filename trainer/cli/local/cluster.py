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
from trainer.distributions import OtherReleaseError, check_release
from trainer.kube.quantity import parse_amounts

_DISTRIBUTION = "trainer-devcluster"
_PROGRAM = "trainer_devcluster"
"""The module that runs the dev cluster."""


class PodNetworkMode(StrEnum):
    """How pods resolve names and separate their ports."""

    AUTO = "auto"
    NETNS = "netns"
    HOSTS = "hosts"
    PLAIN = "plain"


class GangScheduler(StrEnum):
    """Gang schedulers that the dev cluster can replace, by the name of the plugin that creates their PodGroups."""

    COSCHEDULING = "coscheduling"
    VOLCANO = "volcano"


class ClusterFeature(StrEnum):
    """Feature gates of the dev cluster."""

    ELASTIC_JOB_SET = "ElasticJobSet"
    WATCH_LIST = "WatchList"
    GENERIC_WORKLOAD = "GenericWorkload"
    GANG_SCHEDULING = "GangScheduling"
    TOPOLOGY_AWARE_WORKLOAD_SCHEDULING = "TopologyAwareWorkloadScheduling"
    WORKLOAD_AWARE_PREEMPTION = "WorkloadAwarePreemption"
    DRA_WORKLOAD_RESOURCE_CLAIMS = "DRAWorkloadResourceClaims"


Port = Annotated[int, typer.Option(min=0, max=65535, help="Port of the API server on 127.0.0.1; 0 picks a free one.")]
Network = Annotated[
    PodNetworkMode, typer.Option(help="How pods reach each other; auto chooses the best way that this machine allows.")
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
        help="Features to switch on or off; ElasticJobSet (default: false) allows resizing the Jobs of a JobSet; "
        "WatchList (true) serves streaming lists; GenericWorkload (false) serves the Workload API, and GangScheduling "
        "(false) schedules its PodGroups as gangs.",
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


def cluster_command(**options: Path | str | int | bool | None) -> list[str]:
    """The command line of the dev cluster, a program of its own, with the options of `trainer cluster` that are set."""
    if importlib.util.find_spec(_PROGRAM) is None:
        checkout = "pip install ./packages/kube_testing ./packages/devcluster"
        remedy = f"pip install 'trainer-operator[cluster]', or in a checkout {checkout}"
        raise BadInputError(f"the dev cluster is not installed: {remedy}")
    try:
        check_release(_DISTRIBUTION)
    except OtherReleaseError as error:
        raise BadInputError(str(error)) from error
    options = {"port": 0, "pod_network": PodNetworkMode.AUTO, **options}
    if options.get("fake_pods") and not options.get("kubelet", True):
        raise BadInputError("--fake-pods needs the kubelet: leave out --no-kubelet")
    command = [sys.executable, "-m", _PROGRAM]
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        if name == "kubelet":
            command += [] if value else ["--no-kubelet"]
        elif value is True:
            command.append(flag)
        elif isinstance(value, Path):
            _check_path(flag, value)
            command += [flag, str(value.absolute())]
        elif value or name == "port":
            _check_list(flag, str(value))
            command += [flag, str(value)]
    return command


def _check_path(flag: str, path: Path) -> None:
    if flag == "--data-dir":
        if path.exists() and not path.is_dir():
            raise BadInputError(f"--data-dir: {path} is not a directory")
    elif path.is_dir():
        raise BadInputError(f"{flag}: {path} is a directory: name the file to write")
    elif not path.absolute().parent.is_dir():
        raise BadInputError(f"{flag}: there is no directory {path.parent}")


def _check_list(flag: str, text: str) -> None:
    entries = [entry.strip() for entry in text.split(",")]
    match flag:
        case "--node-resources":
            try:
                parse_amounts(text)
            except ValueError as error:
                raise BadInputError(f"{flag}: {error}") from error
        case "--gang-schedulers":
            if wrong := [entry for entry in entries if entry not in list(GangScheduler)]:
                raise BadInputError(f"{flag}: {wrong[0]!r} is not one of: {', '.join(GangScheduler)}")
        case "--feature-gates":
            known = {f"{feature}={value}" for feature in ClusterFeature for value in ("true", "false")}
            if wrong := [entry for entry in entries if entry not in known]:
                names = ", ".join(ClusterFeature)
                raise BadInputError(f"{flag}: {wrong[0]!r} is not NAME=true or NAME=false with one of: {names}")


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
    pod_network: Network = PodNetworkMode.AUTO,
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
        fake_pods=fake_pods,
        node_resources=node_resources,
        gang_schedulers=gang_schedulers,
        pod_network=pod_network,
        feature_gates=feature_gates,
        audit_log_path=audit_log_path,
    )
    os.execv(command[0], command)  # noqa: S606 - signals go straight to the cluster
