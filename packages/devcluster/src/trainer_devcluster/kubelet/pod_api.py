"""What a pod worker asks of the API server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import structlog

from trainer.kube.client import Client, DeleteOptions
from trainer.kube.clock import Clock
from trainer.kube.errors import ConflictError, NotFoundError
from trainer.kube.events.recorder import EventKind, EventRecorder
from trainer.kube.objects import Object, name_of, namespace_of, uid_of
from trainer.kube.resource import PODS
from trainer_devcluster.kubelet.environment import ConfigReader, PodFacts
from trainer_devcluster.kubelet.errors import PodGoneError
from trainer_devcluster.kubelet.network.pod_network import ApiAddress, PodAddressing
from trainer_devcluster.kubelet.options import KubeletOptions
from trainer_devcluster.kubelet.outage import Outage
from trainer_devcluster.kubelet.pod_directory import PodDirectory
from trainer_devcluster.kubelet.pod_names import HostsFiles, PodNames
from trainer_devcluster.kubelet.sandbox import RunningContainer, Sandbox
from trainer_devcluster.kubelet.service_account_tokens import TokenSource
from trainer_devcluster.kubelet.termination import Termination
from trainer_devcluster.kubelet.volumes import ReadyVolume

log = structlog.get_logger(__name__)


class PodApi:
    """Writes how a pod is doing, once its node is not lost.

    Preconditions on the uid keep it from touching a pod that took over the name.
    """

    def __init__(self, client: Client, outage: Outage) -> None:
        self._client = client
        self._outage = outage

    async def write_status(self, pod: Object, status: Object) -> None:
        """Replace the pod's status fields.

        Raises:
            PodGoneError: the pod is gone or is another one now.
            KubeError: anything else that the server or the network has against it; worth another try.
        """
        await self._outage.over()
        patch = {"metadata": {"uid": uid_of(pod)}, "status": status}
        try:
            await self._client.patch(PODS, name_of(pod), patch, namespace_of(pod), subresource="status")
        except (NotFoundError, ConflictError) as error:
            raise PodGoneError(str(error)) from error

    async def finish_deletion(self, pod: Object) -> None:
        """Remove a pod whose processes have ended; no error if it is gone. Raises `KubeError`."""
        await self._outage.over()
        options = DeleteOptions(grace_period_seconds=0, uid=uid_of(pod))
        try:
            await self._client.delete(PODS, name_of(pod), namespace_of(pod), options)
        except (NotFoundError, ConflictError) as error:
            log.debug("pod was gone before the last delete", pod=name_of(pod), error=str(error))


@dataclass(frozen=True, slots=True)
class PodHost:
    """The node, from a pod's point of view."""

    options: KubeletOptions
    api: PodApi
    recorder: EventRecorder
    reader: ConfigReader
    tokens: TokenSource
    api_server: ApiAddress | None
    """Where pods reach the API server; None if they do not."""
    network: PodAddressing
    hosts_files: HostsFiles
    clock: Clock
    allocatable: Mapping[str, str]
    """Resources of the node."""


class Announce(Protocol):
    """Writes events about a pod."""

    def __call__(self, kind: EventKind, reason: str, message: str, *, container: str = "") -> None:
        """Write an event about the pod, or about one of its containers."""


@dataclass(frozen=True, slots=True)
class RunningPod:
    """The pod around a container."""

    pod: Object
    names: PodNames
    host: PodHost
    directory: PodDirectory
    facts: PodFacts
    volumes: Mapping[str, ReadyVolume]
    sandbox: Sandbox
    termination: Termination
    running: dict[str, RunningContainer]
    """The containers that run, by name."""
    publish: Callable[[], None]
    """A record has changed: write the pod's status."""
    announce: Announce
