"""Nodes that are lost with pods of the training on them: since when, what Kubernetes does about it, and what helps.

Kubernetes documentation, "Nodes" and "Node Shutdowns". Nothing of ours deletes a pod by force: whether a node that
nobody hears of is down, or only cut off, a person has to know.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from trainer.explain.cause import Cause, Subject, describe, kubectl, one_line
from trainer.explain.snapshot import Snapshot
from trainer.kube.clock import parse_timestamp, timestamp
from trainer.kube.field_errors import listed
from trainer.kube.objects import Object, find_condition, is_being_deleted, is_condition_true, mapping_at, name_of
from trainer.kube.resource import NODES
from trainer.workloads.disruption import deletion_of
from trainer.workloads.pod_life import NODE_NOT_READY, node_lost_since
from trainer.workloads.tolerations import NO_EXECUTE, NOT_READY, OUT_OF_SERVICE, UNREACHABLE, eviction_time, has_taint

_SHOWN = 5
"""Most pods that a sentence or a command names."""
_NODES = 8
"""Most nodes that are named; each is read for it."""


def lost_pods(snapshot: Snapshot) -> dict[str, list[Object]]:
    """The pods on lost nodes, by the name of the node; of a few nodes."""
    found: dict[str, list[Object]] = {}
    for pod in snapshot.pods:
        name = str(mapping_at(pod, "spec").get("nodeName") or "")
        if node_lost_since(pod) and (name in found or len(found) < _NODES):
            found.setdefault(name, []).append(pod)
    return found


def lost_nodes(snapshot: Snapshot) -> Iterator[Cause]:
    """One cause for each node."""
    for name, pods in lost_pods(snapshot).items():
        node = next((each for each in snapshot.of_kind(NODES.kind) if name_of(each) == name), None)
        is_gone = node is None and not snapshot.could_not_read(NODES.plural)
        yield _LostNode(name, node, pods, snapshot.namespace, is_gone=is_gone).cause(snapshot.now)


_LATER = "they stay Terminating, and none takes their place, until it is back or somebody takes it out of service"


@dataclass(frozen=True, slots=True)
class _LostNode:
    """A node with pods of the training on it."""

    name: str
    node: Object | None
    """None if it does not exist, or may not be read."""
    pods: Sequence[Object]
    namespace: str
    """Of the pods."""
    is_gone: bool

    @property
    def since(self) -> str:
        """Since when the first of its pods is not heard of."""
        return min(map(node_lost_since, self.pods))

    def cause(self, now: datetime) -> Cause:
        """What has happened, what Kubernetes does about it, and what helps."""
        about = Subject(NODES.kind, self.name)
        message = f"node {self.name} is not ready since {self.since}, with {self._named_pods()} on it: {self._state()}"
        remedy, commands = self._remedy(now)
        details = tuple(map(one_line, self._future(now)))
        return Cause(
            NODE_NOT_READY, about, one_line(message), remedy, describe(about), details=details, commands=commands
        )

    def _state(self) -> str:
        ready = find_condition(self.node or {}, "Ready") or {}
        if self.is_gone:
            return "it does not exist any more"
        if ready.get("status") == "False":
            return f"its kubelet says so ({ready.get('message') or ready.get('reason')})"
        if ready.get("status") == "True":
            return "it is back, and its kubelet has yet to say how its pods are"
        return "its kubelet does not answer, so its programs may still be running"

    def _named_pods(self) -> str:
        return f"{'pod' if len(self.pods) == 1 else 'pods'} {listed([*map(name_of, self.pods)], _SHOWN)}"

    def _future(self, now: datetime) -> Iterator[str]:
        """What Kubernetes has done and will do, and when."""
        if self.is_gone:
            yield "the garbage collection of pods deletes them within a minute, because they have no node"
            return
        if self._is_given_up(now):
            yield "it is out of service, so that Kubernetes deletes its pods by force within half a minute"
            return
        deleted = [pod for pod in self.pods if is_being_deleted(pod)]
        if deleted:
            since = min(map(deletion_of, deleted))
            is_all = len(deleted) == len(self.pods)
            which = "its pods have" if is_all else f"{len(deleted)} of its {len(self.pods)} pods have"
            yield f"{which} been deleted at {since}; {_LATER}"
        if len(deleted) == len(self.pods) or is_condition_true(self.node or {}, "Ready"):
            return
        times = [self._eviction(pod) for pod in self.pods if pod not in deleted]
        first = min((time for time in times if time is not None), default=None)
        if first is None:
            yield "its pods tolerate that without an end, so that Kubernetes deletes none of them by itself"
            return
        left = int((first - now).total_seconds())
        when = f"at {timestamp(first)}, in {left} s" if left > 0 else "now"
        yield f"unless it is back by then, Kubernetes deletes its pods {when} (tolerationSeconds); {_LATER}"

    def _eviction(self, pod: Object) -> datetime | None:
        since, node = node_lost_since(pod), self.node or {}
        if not any(has_taint(node, key) for key in (UNREACHABLE, NOT_READY, OUT_OF_SERVICE)):
            # It may not be read, or is about to get it.
            node = {"spec": {"taints": [{"key": UNREACHABLE, "effect": NO_EXECUTE, "timeAdded": since}]}}
        return eviction_time(pod, node, parse_timestamp(since))

    def _is_given_up(self, now: datetime) -> bool:
        """Whether somebody has taken it out of service, and no pod tolerates that."""
        times = (self._eviction(pod) for pod in self.pods if not is_being_deleted(pod))
        return has_taint(self.node or {}, OUT_OF_SERVICE) and all(time is not None and time <= now for time in times)

    def _remedy(self, now: datetime) -> tuple[str, tuple[str, ...]]:
        """It, and the commands that it is about."""
        if self.is_gone:
            return "wait a moment; if the pods stay, have the controllers of Kubernetes checked", ()
        if self._is_given_up(now):
            taint = kubectl("taint", "nodes", self.name, f"{OUT_OF_SERVICE}-")
            return "wait a moment; once the node is back, remove the taint, so that it takes pods again", (taint,)
        taint = kubectl("taint", "nodes", self.name, f"{OUT_OF_SERVICE}=nodeshutdown:NoExecute")
        # To delete a pod by force ends nothing where its Job has a podFailurePolicy: it waits until the pod has failed.
        delete = kubectl("delete", "node", self.name)
        remedy = (
            "wait until it is back, or have it repaired; once it is known to be shut down, and not before, take it out "
            "of service, or delete it if it does not come back: a program that still runs would write the same files"
        )
        return remedy, (taint, delete)
