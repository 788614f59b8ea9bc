"""Events about an object and all that was made for it, by names: what is made for it has its name with a suffix."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from trainer.kube.objects import mapping_at

INVOLVED = "related-events"
"""Index of events by what the name of their object begins with."""
_LONGEST_NAME = 253
"""Of any object; that of an Event's object is checked by nobody."""


def involved_names(event: Mapping[str, Any]) -> Iterator[str]:
    """Index function of `INVOLVED`: the name, and what is left of it without the parts behind each of its hyphens."""
    name = str(mapping_at(event.get("involvedObject")).get("name") or "")
    if len(name) > _LONGEST_NAME:
        return
    while name:
        yield name
        name, _, _ = name.rpartition("-")


def owner_among(event: Mapping[str, Any], names: Collection[str]) -> str:
    """The name that fits best among those of all objects that may be meant; empty if none does."""
    return next((name for name in involved_names(event) if name in names), "")
