"""Lost nodes of the cluster with pods of a JobSet on them.

They are seen on the pods (`trainer.workloads.lost_nodes`), which are watched anyway: the manager neither watches nor
reads nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trainer.api.jobset_pods import place_of, recency_of
from trainer.api.trainjob_status import ConditionType
from trainer.framework import PodProblem, Reader
from trainer.kube.cache.store import CONTROLLER_UID
from trainer.kube.objects import Object, controller_of, is_being_deleted, mapping_at, name_of
from trainer.kube.resource import PODS
from trainer.plugins.jobset.pod_index import PodIndex
from trainer.plugins.jobset.wait import about
from trainer.workloads.lost_nodes import NODE_NOT_READY, node_lost_since

_SHOWN = 5
"""Most nodes, and most pods, that a message names."""


def lost_nodes(index: PodIndex) -> Iterator[PodProblem]:
    """One problem for all lost nodes."""
    found = (index.reader.get(PODS, key) for key in sorted(index.lost()))
    pods = [pod for pod in found if pod is not None and not _is_replaced(index.reader, pod)]
    if not pods:
        return
    since = min(node_lost_since(pod) or "" for pod in pods)
    nodes = sorted({str(mapping_at(pod, "spec").get("nodeName") or "") for pod in pods})
    which = f"node {nodes[0]} is" if len(nodes) == 1 else f"nodes {_listed(nodes)} are"
    count = f"{len(pods)} pods" if 1 < len(pods) <= _SHOWN else about(len(pods))
    headline = f"{which} not ready since {since}, with {count} on {'it' if len(nodes) == 1 else 'them'}"
    yield PodProblem(ConditionType.STOPPING, NODE_NOT_READY, headline, lambda: _listed([name_of(pod) for pod in pods]))


def _is_replaced(reader: Reader, pod: Object) -> bool:
    """Whether the Job has made another pod for the place of one that is being deleted."""
    if not is_being_deleted(pod):
        return False
    others = reader.keys(PODS, CONTROLLER_UID, (controller_of(pod) or {}).get("uid", ""))
    found = (reader.get(PODS, key) for key in others)
    newer = (other for other in found if other is not None and recency_of(other) > recency_of(pod))
    return any(place_of(other) == place_of(pod) for other in newer)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"
