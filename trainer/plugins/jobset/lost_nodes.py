"""Lost nodes of the cluster with pods of a JobSet on them.

They are seen on the pods (`node_lost_since`), which are watched anyway: the manager neither watches nor
reads nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice

from trainer.api.jobset_pods import Place, place_of, recency_of
from trainer.api.trainjob_status import ConditionType
from trainer.framework import PodProblem, Reader
from trainer.kube.cache.store import CONTROLLER_UID
from trainer.kube.objects import Object, ObjectKey, controller_of, is_being_deleted, mapping_at, name_of
from trainer.kube.resource import PODS
from trainer.plugins.jobset.pod_index import PodIndex
from trainer.plugins.jobset.wait import about
from trainer.workloads.pod_life import NODE_NOT_READY, node_lost_since

_SHOWN = 5
"""Most nodes, and most pods, that a message names."""
_EXAMPLES = 64
"""Most pods that are looked at: a JobSet may have thousands on as many nodes, and they may be lost together."""


def lost_nodes(index: PodIndex) -> Iterator[PodProblem]:
    """One problem for all lost nodes."""
    lost = index.lost()
    pods = list(islice(_present(index.reader, lost), _EXAMPLES))
    if not pods:
        return
    count = len(pods) if len(pods) < _EXAMPLES else len(lost)
    since = min(map(node_lost_since, pods))
    nodes = sorted({str(mapping_at(pod, "spec").get("nodeName") or "") for pod in pods})
    which = f"node {nodes[0]} is" if len(nodes) == 1 else f"nodes {_listed(nodes)} are"
    with_pods = f"{count} pods" if 1 < count <= _SHOWN else about(count)
    headline = f"{which} not ready since {since}, with {with_pods} on {'it' if len(nodes) == 1 else 'them'}"
    yield PodProblem(ConditionType.STOPPING, NODE_NOT_READY, headline, lambda: _listed([name_of(pod) for pod in pods]))


def _present(reader: Reader, lost: AbstractSet[ObjectKey]) -> Iterator[Object]:
    """The pods that hold their places: a Job may have made another one for that of a pod that is being deleted."""
    newest: dict[str, dict[Place, str]] = {}
    for key in sorted(lost):
        pod = reader.get(PODS, key)
        if pod is None:
            continue
        job = str((controller_of(pod) or {}).get("uid") or "")
        if is_being_deleted(pod) and job not in newest:
            newest[job] = _newest(reader, job)
        if not is_being_deleted(pod) or newest[job].get(place_of(pod)) == name_of(pod):
            yield pod


def _newest(reader: Reader, job: str) -> dict[Place, str]:
    """The name of the newest pod of a Job at each place."""
    found = (reader.get(PODS, key) for key in reader.keys(PODS, CONTROLLER_UID, job))
    return {place_of(pod): name_of(pod) for pod in sorted(filter(None, found), key=recency_of)}


def _listed(names: Sequence[str]) -> str:
    more = " and others" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"
