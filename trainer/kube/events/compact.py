"""What a cache keeps of an event: whoever may write events in a namespace can make them as large as objects may be."""

from __future__ import annotations

from trainer.kube.objects import Object

MESSAGE_LIMIT = 1024
"""Characters of a message; events.k8s.io/v1 allows no more, and v1 any number."""

_TEXT_LIMIT = 256
"""Characters of every other text."""

_SECONDS = len("2026-01-01T00:00:00")

_IDENTITY = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
_ABOUT = ("kind", "name", "uid")
_OWN = ("reason", "type", "lastTimestamp", "eventTime")


def compact_event(event: Object) -> Object:
    """The event with what is read of it: what it is about, what it says, and when it was seen last."""
    metadata, about = event.get("metadata") or {}, event.get("involvedObject") or {}
    last = (event.get("series") or {}).get("lastObservedTime")
    return {
        "apiVersion": event.get("apiVersion"),
        "kind": event.get("kind"),
        "metadata": {name: metadata[name] for name in _IDENTITY if name in metadata},
        "involvedObject": _texts(about, _ABOUT),
        **_texts(event, _OWN),
        **({"series": {"lastObservedTime": str(last)[:_TEXT_LIMIT]}} if last else {}),
        **({"count": count} if isinstance(count := event.get("count"), int) else {}),
        "message": str(event.get("message") or "")[:MESSAGE_LIMIT],
    }


def _texts(obj: Object, names: tuple[str, ...]) -> Object:
    return {name: str(obj[name])[:_TEXT_LIMIT] for name in names if obj.get(name)}


def last_seen(event: Object) -> str:
    """When an event was repeated last, to the second, as texts that sort; empty if it does not say.

    Args:
        event: as events of v1 show it, whichever version it was written in.
    """
    times = (event.get("lastTimestamp"), (event.get("series") or {}).get("lastObservedTime"), event.get("eventTime"))
    seen = max((str(time)[:_SECONDS] for time in times if time), default="")
    return seen or str((event.get("metadata") or {}).get("creationTimestamp") or "")[:_SECONDS]
