"""What the containers of a pod share while it runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trainer.kube.events.recorder import EventKind
    from trainer.kube.objects import Object
    from trainer_devcluster.kubelet.downward import PodFacts
    from trainer_devcluster.kubelet.pod_directory import PodDirectory
    from trainer_devcluster.kubelet.pod_host import PodHost
    from trainer_devcluster.kubelet.pod_names import PodNames
    from trainer_devcluster.kubelet.sandbox import Sandbox
    from trainer_devcluster.kubelet.termination import Termination
    from trainer_devcluster.kubelet.volumes import Volume


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
    volumes: Mapping[str, Volume]
    sandbox: Sandbox
    termination: Termination
    publish: Callable[[], None]
    """A record has changed: write the pod's status."""
    announce: Announce
