"""Gives training containers more shared memory than the 64 MiB of a container runtime, which data loaders soon fill."""

from __future__ import annotations

from collections.abc import Iterator

from trainer.api.model import ApiModel, Quantity
from trainer.api.trainjob import TrainJob
from trainer.framework import AdmissionWarning, FieldError, PluginContext, RuntimeInfo, by_name, invalid, upsert
from trainer.kube.quantity import parse_quantity

ANNOTATION = "shared-memory.example.com/size"
PATH = f"metadata.annotations[{ANNOTATION}]"
MOUNT = {"name": "shared-memory", "mountPath": "/dev/shm"}


class Settings(ApiModel):
    """What the platform engineer may write under `plugins.configuration[shared-memory]`."""

    size: Quantity = "2Gi"
    """Shared memory of a node, unless the TrainJob asks for another amount. Defaults to 2Gi."""


class SharedMemory:
    """Mounts a volume in memory at /dev/shm, unless the runtime or the TrainJob mounts something there."""

    name = "shared-memory"
    ml_policy_sources: frozenset[str] = frozenset()  # it serves runtimes of every framework

    def __init__(self, context: PluginContext) -> None:
        self._default = context.settings(Settings).size

    def validate(
        self, info: RuntimeInfo, _old: TrainJob | None, new: TrainJob
    ) -> Iterator[FieldError | AdmissionWarning]:
        """Refuse what is no amount, and warn of memory that the container does not have."""
        size = self._size_for(new)
        try:
            wanted = parse_quantity(size)
        except ValueError as error:
            yield invalid(PATH, size, str(error))
            return
        limit = (info.trainer.main_container.resources.get("limits") or {}).get("memory")
        if limit is not None and wanted > parse_quantity(limit):
            text = f"shared memory counts as memory of the container, which is limited to {limit}; it may be killed"
            yield AdmissionWarning(PATH, text)

    def enforce_ml_policy(self, info: RuntimeInfo, train_job: TrainJob) -> None:
        """Add the volume to the nodes, and to an MPI launcher, which may train as well; mount it."""
        volume = {"name": MOUNT["name"], "emptyDir": {"medium": "Memory", "sizeLimit": str(self._size_for(train_job))}}
        for pods in filter(None, (info.launcher, info.trainer)):
            container = pods.main_container
            if all(mount.get("mountPath") != MOUNT["mountPath"] for mount in container.volume_mounts):
                upsert(pods.volumes, [volume], by_name)
                container.mount([MOUNT])

    def _size_for(self, train_job: TrainJob) -> int | float | str:
        return (train_job.metadata.annotations or {}).get(ANNOTATION, self._default)
