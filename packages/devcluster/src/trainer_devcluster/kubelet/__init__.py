"""The kubelet of the dev cluster: runs the pods of its one node as groups of local processes.

Kubernetes documentation, "Pod Lifecycle"; what is different here is in the docstrings of `Kubelet`, `shim` and
`support`. `fake` has a kubelet that only says that pods run.
"""

from trainer_devcluster.kubelet.kubelet import Kubelet, register
from trainer_devcluster.kubelet.node import POD_NETWORK_ANNOTATION
from trainer_devcluster.kubelet.options import KubeletOptions, PodNetworkMode

__all__ = ["POD_NETWORK_ANNOTATION", "Kubelet", "KubeletOptions", "PodNetworkMode", "register"]
