"""How long the certificates of an authority of our own last."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class RotationOptions:
    """How long certificates last."""

    name: str = "webhook"
    """Begin of the authority's common name, for those who look at it. Default: `webhook`."""
    authority_lifetime: timedelta = timedelta(days=3650)
    """How long an authority is valid. Default: ten years, renewed after six years and eight months."""
    lifetime: timedelta = timedelta(days=365)
    """How long a serving certificate is valid. Default: a year, renewed after eight months."""
    settling_time: timedelta = timedelta(hours=1)
    """How long a change of the authority may take to reach all replicas and API servers. Default: an hour; it takes
    little more than a minute while all of them run."""
    poll: float = 60.0
    """Seconds between two looks at the Secret. Default: 60, one small request."""

    def __post_init__(self) -> None:
        """Refuse times that cannot be kept.

        Raises:
            ValueError: names the field and the remedy.
        """
        if self.settling_time.total_seconds() < 2 * self.poll or self.poll <= 0:
            raise ValueError("settling_time must be at least twice poll, which must be more than 0")
        if self.lifetime < max(12 * self.settling_time, timedelta(hours=1)):
            raise ValueError("lifetime must be at least an hour, and twelve times settling_time")
        if self.authority_lifetime < 3 * self.lifetime:
            raise ValueError("authority_lifetime must be at least three times lifetime")
