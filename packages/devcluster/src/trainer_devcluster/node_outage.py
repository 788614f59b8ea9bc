"""Outages of the node, which a person makes to see what a training does about it.

In neither does the kubelet start or stop anything. Processes of pods go on meanwhile, as they do when it is the network
that has failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainer.kube.objects import annotations_of

READY_ANNOTATION = "devcluster.trainer/ready"
"""Of a Node, the status of its condition Ready: `Unknown` as if nobody heard of its kubelet, `False` as if that said
that it is not ready. Any other value means a node that is ready. Default: none."""
_OUTAGES = ("Unknown", "False")


def stated_readiness(node: Mapping[str, Any]) -> str:
    """The status that the condition Ready of a node shall have."""
    stated = annotations_of(node).get(READY_ANNOTATION)
    return stated if stated in _OUTAGES else "True"


def is_lost(node: Mapping[str, Any] | None) -> bool:
    """Whether the kubelet of a node does nothing that anybody sees."""
    return node is not None and stated_readiness(node) != "True"
