"""Pods of lost nodes: what shows on them that nobody hears of their kubelet any more.

Nobody may have to watch nodes to know it: a cluster has thousands of them, and their heartbeats are many.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainer.kube.objects import find_condition, has_finished, is_condition_true

NODE_NOT_READY = "NodeNotReady"
"""Reason of the event that the node lifecycle controller sends about each ready pod of a node that is not ready."""


def node_lost_since(pod: Mapping[str, Any]) -> str | None:
    """Since when nobody hears of the kubelet of a pod that was ready before; None if nothing says so.

    The node lifecycle controller sets the condition Ready of such pods to False, and nothing else. A kubelet gives a
    reason whenever it says that a pod is not ready, and says as much of ContainersReady unless a readiness gate is the
    reason.
    """
    ready = find_condition(pod, "Ready") or {}
    if has_finished(pod) or ready.get("status") != "False" or ready.get("reason"):
        return None
    return str(ready.get("lastTransitionTime") or "") if is_condition_true(pod, "ContainersReady") else None
