"""The kubelet of the dev cluster: runs pods as groups of local processes, and schedules them onto its one node.

Kubernetes documentation, "Pod Lifecycle"; what is different here is in the docstrings of `Kubelet`, `Scheduler`, `shim`
and `support`.
"""

from trainer.devcluster.kubelet.kubelet import Kubelet, register
from trainer.devcluster.kubelet.node import POD_NETWORK_ANNOTATION
from trainer.devcluster.kubelet.options import KubeletOptions, PodNetworkMode

__all__ = ["POD_NETWORK_ANNOTATION", "Kubelet", "KubeletOptions", "PodNetworkMode", "register"]
