"""The last complete checkpoint of a training, and what would be lost without a later one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from trainer.api.invalid_object import InvalidObjectError
from trainer.api.trainjob_status import Checkpoint, State
from trainer.kube.clock import parse_timestamp
from trainer.kube.logs.escaping import visible

_TRAINS = (State.RUNNING, State.STALLED)
_ENDED = (State.COMPLETE, State.FAILED)


@dataclass(frozen=True, slots=True)
class LastCheckpoint:
    """`status.trainerStatus.checkpoint`, and how far the training was after it."""

    step: int
    saved: datetime
    """When it was complete."""
    path: str = ""
    """Its path within TRAINER_CHECKPOINT_DIR; empty when unknown."""
    steps_since: int | None = None
    """Steps that were reported beyond it; 0 where a run is behind it, None where no steps are reported."""

    @classmethod
    def of(cls, progress: Mapping[str, Any]) -> LastCheckpoint | None:
        """Read `status.trainerStatus`, as JSON; None without a checkpoint, or if that is malformed."""
        shown, current = progress.get("checkpoint"), progress.get("currentStep")
        try:
            checkpoint = Checkpoint.from_object(shown) if isinstance(shown, dict) else None
            saved = parse_timestamp(checkpoint.time) if checkpoint is not None else None
        except (InvalidObjectError, ValueError):
            return None
        if checkpoint is None or saved is None:
            return None
        since = max(current - checkpoint.step, 0) if isinstance(current, int) else None
        return cls(checkpoint.step, saved, visible(checkpoint.path or ""), since)

    def unsaved_in(self, state: str) -> str:
        """What it means that no later one is complete, such as `85 steps would be lost now`; may be empty.

        Args:
            state: `status.state`: pods of a training that does not run have lost these steps already; those that
                are stopping may still save.
        """
        if self.steps_since is None or state in _ENDED:
            return ""
        steps = f"{self.steps_since} step{'' if self.steps_since == 1 else 's'}"
        if state in _TRAINS:
            return f"{steps if self.steps_since else 'nothing'} would be lost now"
        if not self.steps_since:
            return ""
        again = f"{steps} {'is' if self.steps_since == 1 else 'are'} to be done again"
        return f"{again}, unless it saves another as it ends" if state == State.STOPPING else again

    def age_at(self, now: datetime) -> str:
        """Such as `42 s ago`, `4 min ago`, `2 h 30 min ago`."""
        seconds = max(int((now - self.saved).total_seconds()), 0)
        for unit, size, part, part_size in (("d", 86400, "h", 3600), ("h", 3600, "min", 60)):
            if seconds >= size:
                return f"{seconds // size} {unit} {seconds % size // part_size} {part} ago"
        return f"{seconds // 60} min ago" if seconds >= 60 else f"{seconds} s ago"

    def sentence(self, state: str | None, now: datetime) -> str:
        """Such as `last checkpoint step 1200, 4 min ago; 85 steps would be lost now`.

        Args:
            state: see `unsaved_in`; None for a TrainJob that is gone, which loses nothing more.
            now: the present time.
        """
        unsaved = self.unsaved_in(state) if state is not None else ""
        parts = (f"last checkpoint step {self.step}, {self.age_at(now)}", unsaved)
        return "; ".join(part for part in parts if part)
