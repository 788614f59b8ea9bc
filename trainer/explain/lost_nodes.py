"""Nodes that are lost with pods of the training on them: since when, what Kubernetes does about it, and what helps.

Kubernetes documentation, "Nodes" and "Node Shutdowns". Nothing of ours deletes a pod by force: whether a node that
nobody hears of is down, or only cut off, a person has to know.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from trainer.explain.cause import Cause, Subject, describe, kubectl, one_line
from trainer.explain.snapshot import Snapshot
from trainer.kube.clock import parse_timestamp, timestamp
from trainer.kube.objects import Object, find_condition, is_being_deleted, is_condition_true, mapping_at, name_of
from trainer.kube.resource import NODES
from trainer.workloads.disruption import deletion_of
from trainer.workloads.lost_nodes import NODE_NOT_READY, node_lost_since
from trainer.workloads.tolerations import NO_EXECUTE, NOT_READY, OUT_OF_SERVICE, UNREACHABLE, eviction_time, has_taint

_SHOWN = 5
"""Most pods that a sentence or a command names."""
_NODES = 8
"""Most nodes that are told of; each is read for it."""


def lost_pods(snapshot: Snapshot) -> dict[str, list[Object]]:
    """The pods on lost nodes, by the name of the node; of a few nodes."""
    found: dict[str, list[Object]] = {}
    for pod in snapshot.pods:
        name = str(mapping_at(pod, "spec").get("nodeName") or "")
        if node_lost_since(pod) is not None and (name in found or len(found) < _NODES):
            found.setdefault(name, []).append(pod)
    return found


def lost_nodes(snapshot: Snapshot) -> Iterator[Cause]:
    """One cause for each node."""
    for name, pods in lost_pods(snapshot).items():
        about = Subject(NODES.kind, name)
        node = next((each for each in snapshot.of_kind(NODES.kind) if name_of(each) == name), None)
        since = min(node_lost_since(pod) or "" for pod in pods)
        is_gone = node is None and not snapshot.could_not_read(NODES.plural)
        message = f"node {name} is not ready since {since}: {_state(node, is_gone=is_gone)}; on it {_named(pods)}"
        details = tuple(map(one_line, _future(snapshot, node or _unread(since), pods, is_gone=is_gone)))
        remedy = _remedy(snapshot, name, pods, is_gone=is_gone)
        yield Cause(NODE_NOT_READY, about, one_line(message), remedy, describe(about), details=details)


def _state(node: Object | None, *, is_gone: bool) -> str:
    ready = find_condition(node or {}, "Ready") or {}
    if is_gone:
        return "it does not exist any more"
    if ready.get("status") == "False":
        return f"its kubelet says so ({ready.get('message') or ready.get('reason')})"
    if ready.get("status") == "True":
        return "it is back, and its kubelet has yet to say how its pods are"
    return "nobody hears of its kubelet, so that its programs may run or not"


def _named(pods: Sequence[Object]) -> str:
    names = ", ".join(map(name_of, pods[:_SHOWN]))
    more = f" and {len(pods) - _SHOWN} more" if len(pods) > _SHOWN else ""
    return f"{'pod' if len(pods) == 1 else 'pods'} {names}{more}"


def _unread(since: str) -> Object:
    """A node that nobody may read, with the taint that it has by all appearances."""
    return {"spec": {"taints": [{"key": UNREACHABLE, "effect": NO_EXECUTE, "timeAdded": since}]}}


_LATER = "they stay Terminating, and none takes their place, until it is back or somebody takes it out of service"


def _future(snapshot: Snapshot, node: Object, pods: Sequence[Object], *, is_gone: bool) -> Iterator[str]:
    """What Kubernetes has done and will do, and when."""
    deleted = [pod for pod in pods if is_being_deleted(pod)]
    if is_gone:
        yield "the garbage collection of pods deletes them within a minute, because they have no node"
        return
    if has_taint(node, OUT_OF_SERVICE):
        yield "it is out of service, so that Kubernetes deletes its pods by force within half a minute"
        return
    if deleted:
        since = min(map(deletion_of, deleted))
        which = "its pods have" if len(deleted) == len(pods) else f"{len(deleted)} of its {len(pods)} pods have"
        yield f"{which} been deleted at {since}; {_LATER}"
    if len(deleted) == len(pods) or is_condition_true(node, "Ready"):
        return
    times = [_eviction(node, pod) for pod in pods if pod not in deleted]
    first = min((time for time in times if time is not None), default=None)
    if first is None:
        yield "its pods tolerate that without an end, so that Kubernetes deletes none of them by itself"
        return
    left = int((first - snapshot.now).total_seconds())
    when = f"at {timestamp(first)}, in {left} s" if left > 0 else "now"
    yield f"unless it is back by then, Kubernetes deletes its pods {when} (tolerationSeconds); {_LATER}"


def _eviction(node: Object, pod: Object) -> datetime | None:
    since = node_lost_since(pod) or ""
    is_tainted = has_taint(node, UNREACHABLE) or has_taint(node, NOT_READY)
    return eviction_time(pod, node if is_tainted else _unread(since), parse_timestamp(since))


def _remedy(snapshot: Snapshot, node: str, pods: Sequence[Object], *, is_gone: bool) -> str:
    if is_gone:
        return "wait a moment; if the pods stay, have the controllers of Kubernetes checked"
    taint = kubectl("taint", "nodes", node, f"{OUT_OF_SERVICE}=nodeshutdown:NoExecute")
    names = map(name_of, pods[:_SHOWN])
    delete = kubectl("delete", "pod", *names, "--force", "--grace-period=0", namespace=snapshot.namespace)
    return (
        "wait until it is back, or have it repaired. Once it is known to be shut down, and not before, for a program "
        f"that still runs would write the same files: {taint}, or for these pods alone {delete}"
    )
