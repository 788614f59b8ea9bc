"""The hostfile: the hosts that train, and the number of processes of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.framework import BuildError, Component, nodes_field, revise_while_suspended
from trainer.kube.field_errors import invalid
from trainer.kube.resource import CONFIG_MAPS
from trainer.kube.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainer.api.trainjob import TrainJob
    from trainer.framework import Reader, RuntimeInfo
    from trainer.kube.objects import Object
    from trainer.plugins.mpi.implementations import Implementation

HOSTFILE_LABEL = "trainer.kubeflow.org/mpi-hostfile"
"""Label of all hostfiles; only ConfigMaps with it are cached."""

HOSTFILES = Selection(label_selector=HOSTFILE_LABEL, metadata_only=True)
"""Watch of all hostfiles, metadata only, since tenants can label large ConfigMaps."""

VOLUME = "mpi-hostfile"
"""Name of the volume with the hostfile."""

DIRECTORY = "/etc/mpi"
"""Its directory in the launcher (KEP-2170)."""

_KEY = "hostfile"
PATH = f"{DIRECTORY}/{_KEY}"
"""Its path in the launcher."""

_LIMIT = 1024 * 1024
"""Most bytes of a ConfigMap."""


def hostfile_config_map(
    info: RuntimeInfo, train_job: TrainJob, implementation: Implementation, slots: int, reader: Reader
) -> Component:
    """The ConfigMap `<job>-mpi-hostfile`; once the JobSet runs, it stays as it is.

    Raises:
        BuildError: there are more nodes than a ConfigMap has room for.
    """
    lines: list[str] = []
    length = 0
    for host in _hosts(info, implementation):
        line = f"{implementation.hostfile_line(host, slots)}\n"
        length += len(line)
        if length > _LIMIT:
            rule = f"must be at most {len(lines)}: a ConfigMap has no room for the hostfile of more nodes"
            raise BuildError(invalid(nodes_field(info, train_job), _nodes(info), rule))
        lines.append(line)
    config_map: Object = {
        "apiVersion": CONFIG_MAPS.api_version,
        "kind": CONFIG_MAPS.kind,
        "metadata": {
            "name": _config_map_name(info),
            "namespace": train_job.metadata.namespace,
            "labels": {HOSTFILE_LABEL: info.job_name},
        },
        "data": {_KEY: "".join(lines)},
    }
    revise = revise_while_suspended(reader, train_job, config_map)
    return Component(CONFIG_MAPS, config_map, revise=revise, metadata_only=True)


def hostfile_volume(info: RuntimeInfo) -> Object:
    """The volume with the hostfile."""
    items = [{"key": _KEY, "path": _KEY, "mode": 0o444}]
    return {"name": VOLUME, "configMap": {"name": _config_map_name(info), "items": items}}


def hostfile_mount() -> Object:
    """The mount of the volume in the launcher."""
    return {"name": VOLUME, "mountPath": DIRECTORY, "readOnly": True}


def _hosts(info: RuntimeInfo, implementation: Implementation) -> Iterator[str]:
    """The hosts that train; a launcher that trains comes first, as the host of rank 0."""
    if info.launcher is not None and _launcher_trains(info):
        for name in info.endpoints_of(info.launcher):
            yield name if implementation.knows_itself_by_dns else name.partition(".")[0]
    yield from info.endpoints_of(info.trainer)


def _nodes(info: RuntimeInfo) -> int:
    return info.trainer.replicas * info.trainer.count + _launcher_trains(info)


def _launcher_trains(info: RuntimeInfo) -> bool:
    return info.ml_policy.mpi is not None and info.ml_policy.mpi.run_launcher_as_node


def _config_map_name(info: RuntimeInfo) -> str:
    return f"{info.job_name}-mpi-hostfile"
