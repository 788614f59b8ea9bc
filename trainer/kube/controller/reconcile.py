"""Reconcile: the function that a user of the machinery writes, and what it may answer."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from trainer.kube.objects import ObjectKey


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a successful reconcile; None in its place requeues nothing until an event arrives.

    Raises:
        TypeError: a field is of another type, such as a timedelta: a failure of the reconcile that made it.
    """

    requeue_after: float | None = None
    """Seconds until the key is looked at again even if nothing changes; 0 or less: at once, after what waits already.
    Default: None, only when something changes."""
    requeue: bool = False
    """Requeue with the backoff of a failure, for a reconcile that waits for something whose time is not known.

    Unlike an exception it is neither logged nor counted as an error. `requeue_after` wins. Default: False."""
    error: Exception | None = None
    """A failure after which the reconcile went on. It is logged, counted and retried like a raised one, after
    `requeue_after` at the latest. Default: None."""
    priority: int | None = None
    """Priority of that look among the keys that wait. Default: None, that of the present round, as after a failure."""

    def __post_init__(self) -> None:
        """Refuse here, where the traceback shows whose it is, what the work queue could not compare with others."""
        seconds, priority = self.requeue_after, self.priority
        if seconds is not None and (not isinstance(seconds, int | float) or math.isnan(seconds)):
            raise TypeError(f"requeue_after must be seconds, not {seconds!r}")
        if priority is not None and not isinstance(priority, int):
            raise TypeError(f"priority must be an integer, not {priority!r}")


Reconcile: TypeAlias = Callable[[ObjectKey], Awaitable[Result | None]]
"""Brings the world closer to what the object under the key asks for, which may be gone; called again after failures."""
