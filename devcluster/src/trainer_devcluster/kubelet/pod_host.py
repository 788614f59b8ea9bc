"""What all pods of a kubelet share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainer.kube.clock import Clock
    from trainer.kube.events.recorder import EventRecorder
    from trainer_devcluster.kubelet.config_reader import ConfigReader
    from trainer_devcluster.kubelet.network.pod_network import PodNetwork
    from trainer_devcluster.kubelet.options import KubeletOptions
    from trainer_devcluster.kubelet.pod_api import PodApi
    from trainer_devcluster.kubelet.pod_names import HostsFiles
    from trainer_devcluster.kubelet.service_account_tokens import TokenSource
    from trainer_devcluster.kubelet.service_environment import ServiceEnvironment


@dataclass(frozen=True, slots=True)
class PodHost:
    """The node, from a pod's point of view."""

    options: KubeletOptions
    api: PodApi
    recorder: EventRecorder
    reader: ConfigReader
    tokens: TokenSource
    services: ServiceEnvironment
    network: PodNetwork
    hosts_files: HostsFiles
    clock: Clock
    allocatable: Mapping[str, str]
    """Resources of the node."""
