"""Which process of a training this is."""

from __future__ import annotations

import sys
from contextlib import suppress

from trainer.progress.report import rank as reported_rank


def rank() -> int:
    """The rank of this process; that of PyTorch once its processes have met."""
    distributed = sys.modules.get("torch.distributed")
    with suppress(Exception):  # built without it, half imported, being destroyed
        if distributed is not None and distributed.is_initialized():
            return int(distributed.get_rank())
    return reported_rank() or 0
