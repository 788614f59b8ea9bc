"""The nodes of a TrainJob on its page: pods, their containers, and the events about all that belongs to it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import msgspec

from trainer.api.jobset_pods import Place, node_name, place_of, recency_of
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.objects import Object, mapping_at, metadata_of, name_of, objects_in, uid_of
from trainer.progress.containers import started_containers
from trainer.workloads.containers import container_statuses
from trainer.workloads.pod_life import PodState, pod_life
from trainer.workloads.pod_requests import pod_requests
from trainer.workloads.related_events import owner_among
from trainer_dashboard.live.versions import Versions

EVENTS_SHOWN = 200
"""Of the newest."""
_SECOND = len("2026-01-01T00:00:00")


class _Row(NamedTuple):
    """A pod as pages get it, with its place among the others."""

    place: Place
    recency: tuple[object, ...]
    encoded: bytes

    @classmethod
    def of(cls, pod: Object) -> _Row:
        return cls(place_of(pod), recency_of(pod), msgspec.json.encode(_node(pod)))


class NodeRows:
    """The nodes of TrainJobs."""

    def __init__(self) -> None:
        self._versions = Versions(_Row.of)
        self._sorted: dict[str, tuple[list[_Row], msgspec.Raw]] = {}

    async def of(self, job: str, pods: Sequence[CachedObject]) -> msgspec.Raw:
        """The pods of a TrainJob by node, the present one of each node before those that it replaces, as JSON."""
        rows = await self._versions.of(job, pods)
        before, encoded = self._sorted.pop(job, ([], msgspec.Raw(b"[]")))
        if rows != before:
            newest_first = sorted(rows, key=lambda row: row.recency, reverse=True)
            in_order = sorted(newest_first, key=lambda row: row.place)
            encoded = msgspec.Raw(b"[" + b",".join(row.encoded for row in in_order) + b"]")
        if rows:
            self._sorted[job] = rows, encoded
        return encoded


def _node(pod: Object) -> Object:
    life, status = pod_life(pod), mapping_at(pod, "status")
    return {
        "uid": uid_of(pod),
        "name": name_of(pod),
        "node": node_name(pod),
        "phase": str(PodState.TERMINATING if life.is_going else status.get("phase") or ""),
        "host": str(mapping_at(pod, "spec").get("nodeName") or ""),
        "restarts": sum(each.get("restartCount") or 0 for each in container_statuses(pod)),
        "requests": _requests(pod),
        "reason": "" if life.state in _WELL else life.reason,
        "logs": [each.container for each in started_containers(pod)],
        "created": metadata_of(pod).get("creationTimestamp"),
        "image": _image(pod),
        **_runs(pod),
    }


def _image(pod: Object) -> str:
    """That of its first container which is no init container."""
    return next((str(each.get("image") or "") for each in objects_in(mapping_at(pod, "spec").get("containers"))), "")


def _runs(pod: Object) -> Object:
    """When the first container that is no init container has started, and the last restart within the pod.

    The status has the present run of a container and the one before: a container that has restarted more often has
    started about when its pod was initialized.
    """
    started: list[str] = []
    stopped, restarted = "", None
    for status in objects_in(mapping_at(pod, "status").get("containerStatuses")):
        present, before = _run(mapping_at(status, "state")), _run(mapping_at(status, "lastState"))
        first = present if not before.ended else before
        often = (status.get("restartCount") or 0) > 1
        started += filter(None, [(_initialized(pod) if often else "") or first.started])
        if before.ended > stopped:
            stopped, restarted = before.ended, present.started or None
    return {"started": min(started, default=None), "stopped": stopped or None, "restarted": restarted}


class _Run(NamedTuple):
    """Times of a run of a container; empty where it has not come to them."""

    started: str
    ended: str


def _run(state: Object) -> _Run:
    part = mapping_at(state, "running") or mapping_at(state, "terminated")
    return _Run(str(part.get("startedAt") or ""), str(part.get("finishedAt") or ""))


def _initialized(pod: Object) -> str:
    conditions = objects_in(mapping_at(pod, "status").get("conditions"))
    found = (each for each in conditions if each.get("type") == "Initialized" and each.get("status") == "True")
    return str(next(found, {}).get("lastTransitionTime") or "")


def _requests(pod: Object) -> dict[str, str]:
    """What the scheduler counts for all its containers, by resource."""
    try:
        return {name: str(amount) for name, amount in pod_requests(mapping_at(pod, "spec")).items()}
    except ValueError:
        return {}


_WELL = frozenset({PodState.STARTING, PodState.RUNNING, PodState.TERMINATING, PodState.SUCCEEDED})
"""States whose reasons are no news beside the phase."""


class EventRows:
    """The events about TrainJobs."""

    def __init__(self) -> None:
        self._versions = Versions(_EventRow.of)

    async def of(self, job: Object, candidates: Sequence[CachedObject], names: Collection[str]) -> list[Object]:
        """The events about a TrainJob and all that was made for it, the newest first.

        JobSet, Jobs and pods have its name with a suffix; so may another TrainJob, whose name then fits better.

        Args:
            job: the TrainJob.
            candidates: the events that `INVOLVED` has under its name.
            names: those of all TrainJobs in its namespace.
        """
        name, created = name_of(job), str(metadata_of(job).get("creationTimestamp") or "")[:_SECOND]
        rows = await self._versions.of(name, candidates)
        own = [row.shown for row in rows if owner_among(row.about, names) == name]
        current = sorted(
            (event for event in own if event["last"][:_SECOND] >= created), key=lambda event: event["last"]
        )
        return current[: -EVENTS_SHOWN - 1 : -1]


class _EventRow(NamedTuple):
    """An event as pages get it, and what names its object."""

    about: Object
    shown: Object

    @classmethod
    def of(cls, event: Object) -> _EventRow:
        about = {"name": mapping_at(event, "involvedObject").get("name")}
        return cls({"involvedObject": about}, _event(event))


def _event(event: Object) -> Object:
    involved = mapping_at(event, "involvedObject")
    times = (event.get("lastTimestamp"), mapping_at(event, "series").get("lastObservedTime"), event.get("eventTime"))
    last = next((str(time) for time in times if time), str(metadata_of(event).get("creationTimestamp") or ""))
    return {
        "uid": uid_of(event),
        "type": str(event.get("type") or ""),
        "reason": str(event.get("reason") or ""),
        "message": str(event.get("message") or ""),
        "object": f"{involved.get('kind') or ''} {involved.get('name') or ''}",
        "count": event.get("count") or 1,
        "last": last,
    }
