"""How the progress of trainings is followed."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import Field

from trainer.api.model import ApiModel
from trainer.configuration.duration import Duration, PositiveDuration, limits
from trainer.progress.options import ProgressOptions


class ProgressConfiguration(ApiModel):
    """Progress and metrics of TrainJobs, read from logs (KEP-2779), while the gate TrainJobProgress is on."""

    status_interval: Annotated[Duration, limits(least=timedelta(), most=timedelta(hours=1))] = timedelta(seconds=5)
    """The least time between two writes of the status of one TrainJob; only the end of a run is told at once. Defaults
    to 5s: people read it, and a thousand TrainJobs make 200 requests a second of it."""
    read_interval: Annotated[Duration, limits(least=timedelta(), most=timedelta(minutes=1))] = timedelta(
        milliseconds=500
    )
    """How long a log that says something is left alone until it is read again, so that many lines are read at once. 0s
    reads each line as it comes. Defaults to 500ms, with which a thousand busy logs wake the manager 2,000 times a
    second."""
    history_samples: Annotated[int, Field(ge=0, le=100_000)] = 200
    """How many samples of each metric of a running TrainJob are kept. Defaults to 200, some kilobytes each; they are
    served while the gate ProgressHistory is on."""
    stall_timeout: PositiveDuration | None = None
    """How long a training that has reported progress may go on without more before people are warned. Defaults to no
    limit, since only its author knows how long a step takes; the annotation
    trainer.kubeflow.org/trainer-status-stall-seconds of a TrainJob takes precedence."""

    def options(self, *, serve_history: bool) -> ProgressOptions:
        """What `trainer.progress` is told."""
        return ProgressOptions(
            status_interval=self.status_interval.total_seconds(),
            read_interval=self.read_interval.total_seconds(),
            history_samples=self.history_samples,
            serve_history=serve_history,
            stall_timeout=None if self.stall_timeout is None else self.stall_timeout.total_seconds(),
        )
