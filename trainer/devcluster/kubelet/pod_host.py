"""What all pods of a kubelet share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainer.devcluster.kubelet.config_reader import ConfigReader
    from trainer.devcluster.kubelet.network.pod_network import PodNetwork
    from trainer.devcluster.kubelet.options import KubeletOptions
    from trainer.devcluster.kubelet.pod_api import PodApi
    from trainer.devcluster.kubelet.pod_names import HostsFiles
    from trainer.devcluster.kubelet.service_account_tokens import TokenSource
    from trainer.devcluster.kubelet.service_environment import ServiceEnvironment
    from trainer.kube.clock import Clock
    from trainer.kube.events.recorder import EventRecorder


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
