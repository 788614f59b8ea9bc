"""The hostfile: which hosts train, and how many processes each of them takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.framework.component import Component, Revision
from trainer.framework.errors import BuildError
from trainer.kube.field_errors import invalid
from trainer.kube.resource import CONFIG_MAPS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainer.api.trainjob import TrainJob
    from trainer.framework.runtime_info import RuntimeInfo
    from trainer.kube.objects import Object
    from trainer.plugins.mpi.implementations import Implementation

HOSTFILE_LABEL = "trainer.kubeflow.org/mpi-hostfile"
"""Label of all hostfiles, so that no other ConfigMap has to be cached."""

VOLUME = "mpi-hostfile"
"""Name of the volume with the hostfile."""

DIRECTORY = "/etc/mpi"
"""Where the launcher finds it (KEP-2170)."""

_KEY = "hostfile"
PATH = f"{DIRECTORY}/{_KEY}"
"""The hostfile in the launcher."""

_LIMIT = 1024 * 1024
"""Bytes that a ConfigMap holds."""


def hostfile_config_map(
    info: RuntimeInfo, train_job: TrainJob, implementation: Implementation, slots: int
) -> Component:
    """The ConfigMap `<job>-mpi-hostfile`; once the JobSet may run, it stays as it is.

    Raises:
        BuildError: there are more nodes than a ConfigMap has room for.
    """
    lines = [implementation.hostfile_line(host, slots) for host in _hosts(info)]
    text = "".join(f"{line}\n" for line in lines)
    if len(text) > _LIMIT:
        nodes = len(lines)
        room = nodes * _LIMIT // len(text)
        rule = f"a ConfigMap has no room for the hostfile of so many nodes ({_LIMIT} bytes); it holds about {room}"
        raise BuildError(invalid(_nodes_field(info, train_job), nodes, rule))
    config_map: Object = {
        "apiVersion": CONFIG_MAPS.api_version,
        "kind": CONFIG_MAPS.kind,
        "metadata": {
            "name": _config_map_name(info),
            "namespace": train_job.metadata.namespace,
            "labels": {HOSTFILE_LABEL: info.job_name},
        },
        "data": {_KEY: text},
    }
    revision = Revision(config_map) if train_job.spec.suspend else None
    return Component(CONFIG_MAPS, config_map, revise=lambda _existing: revision)


def hostfile_volume(info: RuntimeInfo) -> Object:
    """The volume with the hostfile."""
    items = [{"key": _KEY, "path": _KEY, "mode": 0o444}]
    return {"name": VOLUME, "configMap": {"name": _config_map_name(info), "items": items}}


def hostfile_mount() -> Object:
    """Where the launcher finds the volume."""
    return {"name": VOLUME, "mountPath": DIRECTORY, "readOnly": True}


def _hosts(info: RuntimeInfo) -> Iterator[str]:
    """DNS names of all that train; a launcher that does so comes first, as the host of rank 0."""
    mpi = info.ml_policy.mpi
    if mpi is not None and mpi.run_launcher_as_node and info.launcher is not None:
        yield from info.endpoints_of(info.launcher)
    yield from info.endpoints_of(info.trainer)


def _config_map_name(info: RuntimeInfo) -> str:
    return f"{info.job_name}-mpi-hostfile"


def _nodes_field(info: RuntimeInfo, train_job: TrainJob) -> str:
    trainer = train_job.spec.trainer
    is_own = trainer is not None and trainer.num_nodes is not None
    return "spec.trainer.numNodes" if is_own else f"{info.runtime} spec.mlPolicy.numNodes"
