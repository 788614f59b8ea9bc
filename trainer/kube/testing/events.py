"""A sink for events that keeps them for the test."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainer.kube.events.correlator import Occurrence


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
