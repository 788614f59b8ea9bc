"""How the manager follows the progress of trainings."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from trainer.api.model import ApiModel


class ProgressConfiguration(ApiModel):
    """Progress and metrics of TrainJobs, read from logs (KEP-2779)."""

    enabled: bool = True
    """Whether logs are followed at all. Defaults to true; it needs the right to get pods/log."""
    status_interval_seconds: Annotated[float, Field(ge=0, le=3600)] = 5.0
    """The least time between two writes of the status of one TrainJob; only the end of a run is told at once. Defaults
    to 5: people read it, and a thousand TrainJobs make 200 requests a second of it."""
    read_interval_seconds: Annotated[float, Field(ge=0, le=60)] = 0.5
    """How long a log that says something is left alone until it is read again, so that many lines are read at once. 0
    reads each line as it comes. Defaults to 0.5, with which a thousand busy logs wake the manager 2,000 times a
    second."""
    history_samples: Annotated[int, Field(ge=0, le=100_000)] = 200
    """How many samples of each metric of a running TrainJob are kept. Defaults to 200."""
    serve_history: bool = False
    """Whether the samples are served at httpBindAddress, under /progress/v1/. Defaults to false, since everybody who
    reaches that port could read the metrics of all namespaces."""
    stall_timeout_seconds: Annotated[float, Field(gt=0)] | None = None
    """How long a training that has reported progress may go on without more before people are warned. Defaults to for
    ever; the annotation trainer.kubeflow.org/trainer-status-stall-seconds of a TrainJob takes precedence."""
