"""A complete checkpoint, as a training that starts finds it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer.checkpoints import ranks, sharded_state, state, trees


@dataclass(frozen=True)
class Checkpoint:
    """A complete checkpoint."""

    step: int
    """Steps that were completed when it was written."""
    path: Path
    """Its directory."""

    def load(self, into: object = None, *, map_location: Any = "cpu", weights_only: bool = True) -> dict[str, Any]:
        """What was saved, by name: state_dicts of what had them, and all else as it was.

        Args:
            into: a state such as the one that was saved: its modules, optimizers and the like take what is theirs.
                What is sharded, and arrays of JAX, need it: as many processes as now share what is loaded.
            map_location: where tensors are put, as for `torch.load`.
            weights_only: False loads objects of any class, which can run code.

        Raises:
            Exception: the checkpoint is not one of `save`, or does not fit.
        """
        if sharded_state.is_in(self.path):
            values = sharded_state.read(self.path, into)
        elif trees.is_in(self.path):
            values = trees.read(self.path, into)
        else:
            values = state.read(self.path, map_location, weights_only)
            if into is not None:
                state.put(values, into)
        state.read_own(self.path, ranks.rank(), into)
        return values
