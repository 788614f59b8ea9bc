"""What a fake remembers: requests, and events of a controller."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from trainer.kube.events.correlator import Occurrence
from trainer.kube.resource import Resource
from trainer.kube.selection import Selection

WRITES = frozenset({"create", "update", "patch", "apply", "delete", "deletecollection"})
"""Verbs of the requests that change something."""


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """A request that a fake has received."""

    verb: str
    """get, list, watch, create, update, patch, apply, delete, deletecollection or log."""
    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    body: Any = None
    """Object or patch as it was sent; the options of a list, watch, deletion or log."""
    field_manager: str = ""
    selection: Selection | None = None
    """The selection of a list, a watch or a deletion of a collection; None for all others."""
    dry_run: bool = False
    """Whether it was to store nothing."""
    time: float = 0.0
    """When it arrived, by the monotonic time of the fake's clock."""


class RecordedEvents:
    """Stands in for the event sender: `EventRecorder(RecordedEvents(), "my-controller")` writes to no API server."""

    def __init__(self) -> None:
        self.occurrences: list[Occurrence] = []
        """All that was recorded, repeats included, in order."""

    def submit(self, occurrence: Occurrence) -> None:
        """See `EventSink.submit`."""
        self.occurrences.append(occurrence)

    @property
    def reasons(self) -> list[str]:
        """Reason of each occurrence."""
        return [occurrence.reason for occurrence in self.occurrences]
