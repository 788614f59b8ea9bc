"""Events about the objects below a TrainJob, for problems that no status shows.

A Job whose pods are refused has no pods, a pod without its volumes is merely pending, and only events have the reason.
An event counts while the object that it is about, known by its uid, still lacks what the event reports: events stay for
an hour, and are repeated with each attempt. Volume claims, which are not read, are known by their names. Who may write
events in a namespace can forge them, so an event counts for objects of its own namespace only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trainer.api.jobset_labels import JOBSET_NAME
from trainer.api.jobset_pods import jobset_keys
from trainer.framework import Reader, Watch
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.controller.predicates import on
from trainer.kube.events.compact import last_seen
from trainer.kube.objects import Object, ObjectKey, labels_of, name_of
from trainer.kube.resource import EVENTS, JOBS, PERSISTENT_VOLUME_CLAIMS, PODS, Resource
from trainer.kube.selection import Selection
from trainer.plugins.jobset.wait import pod_specs
from trainer.workloads import JOBSETS

CLAIMS = "jobset-claims"
"""Name of the index of JobSets by the claims that their pods share, each as `<namespace>/<name>`."""

_SIGNS = (b"persistentVolumeClaim", b"volumeClaimPolicies")


def claims_of_jobset(jobset: CachedObject) -> tuple[str, ...]:
    """Index function of `CLAIMS`."""
    if not any(sign in jobset.raw for sign in _SIGNS):
        return ()
    return tuple(sorted({f"{jobset.key.namespace}/{name}" for name in shared_claims(jobset)}))


def shared_claims(jobset: Mapping[str, Any]) -> Iterator[str]:
    """Names of the claims that the pods mount, and of those that JobSet makes for them."""
    spec = jobset.get("spec") or {}
    for policy in spec.get("volumeClaimPolicies") or []:
        for template in policy.get("templates") or []:
            yield f"{(template.get('metadata') or {}).get('name')}-{name_of(jobset)}"
    for volume in _volumes(jobset):
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if claim:
            yield claim


def ephemeral_volumes(jobset: Mapping[str, Any]) -> Iterator[str]:
    """Names of the volumes for which each pod gets a claim of its own, `<pod>-<volume>`."""
    return (volume["name"] for volume in _volumes(jobset) if volume.get("ephemeral"))


def _volumes(jobset: Mapping[str, Any]) -> Iterator[Object]:
    return (volume for _, pods in pod_specs(jobset) for volume in pods.get("volumes") or [])


REASONS: dict[str, tuple[str, ...]] = {
    PODS.kind: ("FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox"),
    JOBS.kind: ("FailedCreate",),
    JOBSETS.kind: ("JobCreationFailed", "HeadlessServiceCreationFailed", "PVCCreationFailed"),
    PERSISTENT_VOLUME_CLAIMS.kind: ("ProvisioningFailed", "FailedBinding", "ExternalProvisioning"),
}
"""Reasons of the events that count, by the kind that they are about. Those of kubelet, attach-detach controller, Job
controller, JobSet and persistent volume controller."""

_HARMLESS = ("Provisioning", "ProvisioningSucceeded", "WaitForFirstConsumer", "WaitForPodScheduled")
"""Reasons of events that every claim gets."""

_SELECTORS = (
    *(f"involvedObject.kind={PODS.kind},reason={reason}" for reason in REASONS[PODS.kind]),
    *(f"involvedObject.kind={JOBS.kind},reason={reason}" for reason in REASONS[JOBS.kind]),
    f"involvedObject.kind={JOBSETS.kind},type=Warning",
    f"involvedObject.kind={PERSISTENT_VOLUME_CLAIMS.kind}{''.join(f',reason!={reason}' for reason in _HARMLESS)}",
)
"""Watches that select the events above with few others."""

_ABOUT = "jobset-events"
"""Name of the index of events by their object, and by the kind and namespace of their object."""

_DELAY = 0.5
"""Seconds in which events are debounced, since the pods of a Job have the same problem at the same time."""


@dataclass(frozen=True, slots=True)
class ProblemEvent:
    """One event."""

    reason: str
    message: str
    uid: str
    """Uid of its object; empty if the event lacks it."""
    is_warning: bool
    seen: str
    """Time of its last repetition, to the second, as a text that sorts."""

    @classmethod
    def of(cls, event: Object) -> ProblemEvent:
        """Read an event."""
        return cls(
            event.get("reason") or "",
            event.get("message") or "",
            (event.get("involvedObject") or {}).get("uid") or "",
            event.get("type") != "Normal",
            last_seen(event),
        )


def event_watches(reader: Reader) -> Iterator[Watch]:
    """Watches of the events, mapped to the TrainJob of their object."""
    for selector in _SELECTORS:
        yield Watch(
            EVENTS,
            Selection(field_selector=selector),
            train_jobs=lambda event: _train_jobs_of(reader, event),
            # A repetition may come after the object is cached; the deletion of an event means nothing.
            predicate=on(deleted=lambda _event: False),
            delay=_DELAY,
            indexes={_ABOUT: _values},
        )
    # An event names a Job that may have had a predecessor of the same name, so its metadata is compared.
    yield Watch(
        JOBS,
        Selection(label_selector=JOBSET_NAME, metadata_only=True),
        train_jobs=jobset_keys,
        predicate=on(
            added=lambda job: has_events(reader, JOBS, job.key),
            updated=lambda _old, _new: False,
            deleted=lambda _job: False,
        ),
        delay=_DELAY,
    )


def has_events(reader: Reader, resource: Resource, key: ObjectKey, reason: str = "") -> bool:
    """Whether there is an event about an object of this name, for a reason or any that counts; decodes none."""
    return bool(reader.keys(EVENTS, _ABOUT, _value(resource.kind, key, reason)))


def with_events(reader: Reader, resource: Resource, keys: Collection[ObjectKey], reason: str = "") -> set[ObjectKey]:
    """The objects, all of one namespace, that have an event; takes constant time when the namespace has none."""
    anything = ObjectKey(next((key.namespace for key in keys), ""), "")
    if not keys or not has_events(reader, resource, anything, reason):
        return set()
    return {key for key in keys if has_events(reader, resource, key, reason)}


def latest_event(
    reader: Reader, resource: Resource, key: ObjectKey, *, uid: str = "", reason: str = ""
) -> ProblemEvent | None:
    """The newest event about an object, of this uid if one is given; None without one."""
    events = (reader.get(EVENTS, event) for event in reader.keys(EVENTS, _ABOUT, _value(resource.kind, key, reason)))
    found = [ProblemEvent.of(event) for event in events if event is not None]
    ours = [each for each in found if not uid or each.uid == uid]
    return max(ours, key=lambda each: (each.seen, each.reason, each.message), default=None)


def _values(event: CachedObject) -> tuple[str, ...]:
    about, reason = event.get("involvedObject") or {}, event.get("reason") or ""
    kind = about.get("kind") or ""
    if reason not in REASONS.get(kind, ()):
        return ()
    # The namespace of the event counts, since its author may write into that namespace only.
    keys = ObjectKey(event.key.namespace, about.get("name") or ""), ObjectKey(event.key.namespace, "")
    return tuple(dict.fromkeys(_value(kind, key, each) for key in keys for each in ("", reason)))


def _value(kind: str, key: ObjectKey, reason: str = "") -> str:
    return f"{kind} {key} {reason}"


def _train_jobs_of(reader: Reader, event: CachedObject) -> Iterable[ObjectKey]:
    about = event.get("involvedObject") or {}
    kind, key = about.get("kind"), ObjectKey(event.key.namespace, about.get("name") or "")
    if event.get("reason") not in REASONS.get(kind or "", ()):
        return ()
    if kind == JOBSETS.kind:
        return (key,)
    if kind == PERSISTENT_VOLUME_CLAIMS.kind:
        return reader.keys(JOBSETS, CLAIMS, str(key))
    obj = reader.get(PODS if kind == PODS.kind else JOBS, key)
    name = labels_of(obj).get(JOBSET_NAME) if obj is not None else None
    return (ObjectKey(key.namespace, name),) if name else ()
