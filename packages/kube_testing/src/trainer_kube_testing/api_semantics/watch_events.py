"""Watch events: how a change looks to a watch, and bookmarks."""

from __future__ import annotations

from collections.abc import Callable

from trainer.kube.client import INITIAL_EVENTS_END, EventType
from trainer.kube.objects import Object, metadata_of, resource_version_of
from trainer.kube.resource import Resource


def event_of(
    previous: Object | None, current: Object, select: Callable[[Object], bool], *, is_deletion: bool
) -> tuple[EventType, Object] | None:
    """The event of a change; None when the watch does not see it.

    What leaves the selection is deleted, what enters it is added.
    """
    before = previous is not None and select(previous)
    if is_deletion:
        return (EventType.DELETED, current) if before else None
    if select(current):
        return (EventType.MODIFIED if before else EventType.ADDED), current
    if not before or previous is None:
        return None
    metadata = {**metadata_of(previous), "resourceVersion": resource_version_of(current)}
    return EventType.DELETED, {**previous, "metadata": metadata}


def bookmark(resource: Resource, version: int, *, ends_initial_events: bool = False) -> Object:
    """The object of a bookmark, which carries nothing but its resource version."""
    metadata: Object = {"resourceVersion": str(version)}
    if ends_initial_events:
        metadata["annotations"] = {INITIAL_EVENTS_END: "true"}
    return {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
