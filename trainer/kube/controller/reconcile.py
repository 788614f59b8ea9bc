"""Reconcile: the function that a user of the machinery writes, and what it may answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from trainer.kube.objects import ObjectKey


@dataclass(frozen=True, slots=True)
class Result:
    """What a reconcile asks for after a success; with None in its place the key rests until something changes."""

    requeue_after: float | None = None
    """Seconds until the key is looked at again even if nothing changes. Default: None, only when something changes."""
    requeue: bool = False
    """Look again with the backoff of a failure, for a reconcile that waits for something whose time is not known.

    Unlike an exception it is neither logged nor counted as an error. `requeue_after` wins. Default: False."""
    priority: int | None = None
    """Priority of that look among the keys that wait. Default: None, that of the present round, as after a failure."""


Reconcile: TypeAlias = Callable[[ObjectKey], Awaitable[Result | None]]
"""Brings the world closer to what the object under the key asks for, which may be gone; called again after failures."""
