"""Options of the progress controller and of the status server."""

from __future__ import annotations

from dataclasses import dataclass, field

from trainer.kube.serving.tls import TlsOptions


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
    with_pushes: bool = False
    """Whether pods may also post their progress to the status server. Default: False, logs alone tell of it."""


@dataclass(frozen=True, slots=True)
class StatusServerOptions:
    """Where the server listens, and what it puts up with."""

    host: str = ""
    """Address to listen on. Default: "", all addresses of IPv4 and IPv6, since pods connect from elsewhere."""
    port: int = 10443
    """Port; 0 takes a free one, see `StatusServer.address`. Default: 10443, as in the released Trainer."""
    limit: tuple[float, int] | None = (5.0, 10)
    """Writes per second, and how many at once; None: no limit. Default: those of the released Trainer."""
    tls: TlsOptions = field(default_factory=TlsOptions)
    """What is spoken with clients. Default: those of its class."""
    certificate_timeout: float = 120.0
    """Seconds until there must be a certificate, else the manager stops. Default: 120, as for webhooks."""
