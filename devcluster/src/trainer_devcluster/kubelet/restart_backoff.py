"""How long a container waits before it is started again."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainer.kube.backoff import Backoff


class RestartBackoff:
    """Pauses of one container: none before the first restart, then growing; they start over after a long run."""

    def __init__(self, backoff: Backoff, reset_after: float) -> None:
        self._backoff = backoff
        self._reset_after = reset_after
        self._restarts = 0

    def next_pause(self, ran_for: float) -> float:
        """Seconds to wait after a run of so many seconds."""
        if ran_for >= self._reset_after:
            self._restarts = 0
        self._restarts += 1
        return 0.0 if self._restarts == 1 else self._backoff.pause(self._restarts - 2)


def format_duration(seconds: float) -> str:
    """As Go prints durations: 10s, 1m20s, 5m0s."""
    minutes, rest = divmod(seconds, 60)
    return f"{int(minutes)}m{rest:g}s" if minutes else f"{rest:g}s"
