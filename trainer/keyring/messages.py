"""What the process that makes keys is asked, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - msgspec reads annotations
from dataclasses import dataclass, field
from datetime import datetime  # noqa: TC003 - msgspec reads annotations

CA_CERTIFICATES, CA_KEY, CERTIFICATE, KEY = "ca.crt", "ca.key", "tls.crt", "tls.key"
"""Keys of the Secret: the trusted authorities with the one that signs first, its key, and the pair of the server."""


@dataclass(frozen=True, slots=True)
class KeyringQuestion:
    """What is due?"""

    stored: Mapping[str, bytes] = field(repr=False)
    """Contents of the Secret; empty if there is none."""
    kept: Mapping[str, bytes] = field(repr=False)
    """The contents that are in use, to restore what somebody has deleted or broken; empty if none are."""
    names: frozenset[str]
    """DNS names and IP addresses that the certificate must have."""
    now: datetime


@dataclass(frozen=True, slots=True)
class KeyringAnswer:
    """What the Secret is to hold, and when to ask again."""

    data: Mapping[str, bytes] | None = field(repr=False)
    """Contents of the Secret; None as long as it may stay as it is."""
    reasons: tuple[str, ...]
    """What was done, step by step, for the log."""
    unusable: str
    """Why the contents that were stored cannot be used; "" if they can, or there are none."""
    next_step: datetime
    """Until then nothing else is due, if the Secret holds this and the names are the same."""
    expiry: datetime
    """When the certificate expires."""
