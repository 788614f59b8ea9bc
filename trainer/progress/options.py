"""How the progress of trainings is followed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ProgressOptions:
    """How progress and metrics of TrainJobs are read from logs (KEP-2779)."""

    status_interval: float = 5.0
    """Seconds between two writes of the status of one TrainJob, at least; only the end of a run is told at once.
    Default: 5, as people read it, and a thousand TrainJobs make 200 requests a second of it."""
    read_interval: float = 0.5
    """Seconds for which a log that says something is left alone until it is read again; 0: each line as it comes.
    Default: 0.5, with which a thousand busy logs wake the manager 2,000 times a second."""
    history_samples: int = 200
    """How many samples of each metric of a running TrainJob are kept. Default: 200."""
    serve_history: bool = False
    """Whether the samples are served under /progress/v1/. Default: False, since whoever may read them may read those of
    all namespaces."""
    stall_timeout: float | None = None
    """Seconds for which a training that has reported progress may go on without more before people are warned. Default:
    None, for ever; an annotation of a TrainJob takes precedence."""
