"""Options of the controllers."""

from __future__ import annotations

from dataclasses import dataclass

from trainer_devcluster.feature_gates import DEFAULT_FEATURE_GATES, FeatureGates


@dataclass(frozen=True, slots=True)
class ControllerOptions:
    """What may be tuned about the controllers of the dev cluster."""

    pod_backoff_base: float = 10.0
    """Seconds before a Job first replaces a failed pod, doubled with each further failure; 10 as in Kubernetes."""
    pod_backoff_cap: float = 600.0
    """Longest pause between two replacements, in seconds; 10 minutes as in Kubernetes."""
    workers: int = 4
    """Concurrent reconciles of each controller; a laptop has few cores."""
    namespace_poll: float = 0.2
    """Seconds between two looks at a namespace that is being emptied; pods need their grace period."""
    autoscaler_period: float = 15.0
    """Seconds between two looks of the autoscaler at its metrics; 15 as in Kubernetes."""
    feature_gates: FeatureGates = DEFAULT_FEATURE_GATES
    """What the controllers do beyond the usual. Default: what the gates themselves have as default."""
