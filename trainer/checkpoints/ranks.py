"""The processes of a training, and numbers by which they agree without a collective of their devices.

PyTorch and JAX both keep a small key-value store with which their processes have met. An exchange is one round trip to
it, so it waits for no GPU, mixes with no collective of the training, and fails soon when the store is gone.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from trainer.progress.report import rank as reported_rank

_PREFIX = f"{__package__}/"
_LONGEST_PAUSE = 0.25


class Group:
    """All ranks of a training, with counters that all of them see."""

    def __init__(
        self,
        rank: int,
        size: int,
        add: Callable[[str, int], int],
        delete: Callable[[str], object],
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.rank, self.size = rank, size
        self.clock = clock
        self.sleep = sleep
        self._add, self._delete = add, delete
        self._turns: Counter[str] = Counter()

    def turn(self, what: str) -> str:
        """A key for the next time that all ranks do something."""
        self._turns[what] += 1
        return f"{what}/{self._turns[what]}"

    def add(self, key: str, number: int = 0) -> int:
        """Add to a counter, which is 0 at first and has 32 bits; returns what it is then.

        Raises:
            Exception: the store cannot be reached.
        """
        return int(self._add(_PREFIX + key, number))

    def delete(self, key: str) -> None:
        """Delete a counter, where the store can."""
        with suppress(Exception):
            self._delete(_PREFIX + key)

    def wait(self, key: str, enough: int, seconds: Callable[[], float]) -> int:
        """The counter once it has reached a number; `seconds` is asked how long to wait, as it may change.

        Raises:
            TimeoutError: it has not.
            Exception: the store cannot be reached.
        """
        began, pause = self.clock(), 0.0005
        while True:
            number = self.add(key)
            if number >= enough:
                return number
            if self.clock() - began > seconds():
                raise TimeoutError(f"waited {self.clock() - began:.0f} s")
            self.sleep(pause)
            pause = min(_LONGEST_PAUSE, pause * 1.5)


def group() -> Group | None:
    """The ranks, once they have met; None for a process that is alone, or knows of no others."""
    return _of_torch() or _of_jax()


def rank() -> int:
    """The rank of this process, also before all have met."""
    found = group()
    return (reported_rank() or 0) if found is None else found.rank


def _of_torch() -> Group | None:
    distributed = sys.modules.get("torch.distributed")
    with suppress(Exception):  # built without it, half imported, or without a store, as with MPI
        if distributed is not None and distributed.is_initialized() and distributed.get_world_size() > 1:
            store: Any = distributed.distributed_c10d._get_default_store()  # noqa: SLF001 no other way to it
            if store is not None:
                return Group(distributed.get_rank(), distributed.get_world_size(), store.add, store.delete_key)
    return None


def _of_jax() -> Group | None:
    distributed = sys.modules.get("jax._src.distributed")
    with suppress(Exception):  # a JAX without this
        state: Any = distributed.global_state if distributed is not None else None
        if state is not None and state.client is not None and state.num_processes > 1:
            add, delete = state.client.key_value_increment, state.client.key_value_delete
            return Group(state.process_id, state.num_processes, add, delete)
    return None
