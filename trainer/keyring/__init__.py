"""A certificate authority of our own and the serving certificates that it signs.

`python -m trainer.keyring` reads a `KeyringQuestion` and writes a `KeyringAnswer`, so that processes which last do
without the library that makes keys. Nothing here knows of clusters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

CA_CERTIFICATES, CA_KEY, CERTIFICATE, KEY = "ca.crt", "ca.key", "tls.crt", "tls.key"
"""Keys of the Secret: the trusted authorities with the one that signs first, its key, and the pair of the server."""


@dataclass(frozen=True, slots=True)
class KeyringQuestion:
    """The question which keys and certificates have to be made."""

    stored: Mapping[str, bytes] = field(repr=False)
    """Contents of the Secret; empty if there is none."""
    kept: Mapping[str, bytes] = field(repr=False)
    """The contents that are in use, to restore what somebody has deleted or broken; empty if none are."""
    names: frozenset[str]
    """DNS names and IP addresses that the certificate must have."""
    now: datetime


@dataclass(frozen=True, slots=True)
class KeyringAnswer:
    """The contents of the Secret, and when to ask again."""

    data: Mapping[str, bytes] | None = field(repr=False)
    """Contents of the Secret; None as long as it may stay as it is."""
    reasons: tuple[str, ...]
    """The steps that were done, for the log."""
    unusable: str
    """Why the contents that were stored cannot be used; "" if they can, or there are none."""
    next_step: datetime
    """The time of the next renewal, if the Secret holds this data and the names stay the same."""
    expiry: datetime
    """When the certificate expires."""
