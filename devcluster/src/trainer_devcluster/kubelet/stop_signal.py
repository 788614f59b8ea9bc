"""The signal that asks a container to end (core/v1 Lifecycle.stopSignal)."""

from __future__ import annotations

import re
import signal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_REAL_TIME = re.compile(r"SIGRTM(?:IN\+(?P<above>\d+)|AX-(?P<below>\d+))")


def stop_signal(container: Mapping[str, Any]) -> int:
    """Number of the signal; SIGTERM if the container names none.

    Raises:
        ValueError: the name is that of no signal.
    """
    name = (container.get("lifecycle") or {}).get("stopSignal") or "SIGTERM"
    if match := _REAL_TIME.fullmatch(name):
        above, below = match["above"], match["below"]
        return signal.SIGRTMIN + int(above) if above is not None else signal.SIGRTMAX - int(below)
    try:
        return signal.Signals[name]
    except KeyError as error:
        raise ValueError(f"{name!r} is no signal") from error
