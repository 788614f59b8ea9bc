"""Options of the progress controller."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ProgressOptions:
    """Options of the progress controller (KEP-2779)."""

    status_interval: float = 5.0
    """Least seconds between two writes of the status of one TrainJob; the end of a run is written at once. Default: 5,
    with which a thousand TrainJobs make 200 requests a second."""
    read_interval: float = 0.5
    """Seconds between two reads of a log that has new lines; 0 reads each line at once. Default: 0.5, with which a
    thousand busy logs wake the manager 2,000 times a second."""
    history_samples: int = 200
    """Samples kept of each metric of a running TrainJob. Default: 200."""
    serve_history: bool = False
    """Whether the samples are served under /progress/v1/. Default: False, since its readers see all namespaces."""
    stall_timeout: float | None = None
    """Seconds without progress after which a training counts as stalled; an annotation of the TrainJob takes
    precedence. Default: None, never."""
