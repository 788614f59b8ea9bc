"""Steps: long work in stretches, between which the event loop serves others."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, TypeAlias, TypeVar

if TYPE_CHECKING:
    from trainer.kube.clock import Clock

_T = TypeVar("_T")
_PAUSES = 3.0
"""Length of a pause, in that of the stretch before it: long work gets a quarter of the time."""
Steps: TypeAlias = Generator[None, None, _T]
"""Work that yields between two stretches, and returns its result."""


def at_once(steps: Steps[_T]) -> _T:
    """The result of all steps, without a pause."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: _T = end.value
            return result


async def with_pauses(steps: Steps[_T], clock: Clock) -> _T:
    """The result of all steps; each is followed by a pause of several times its length, in which others are served.

    A mere checkpoint would not do: an exchange with a peer takes several turns of the event loop, and would wait for a
    stretch of work in each of them.
    """
    while True:
        began = clock.monotonic()
        try:
            next(steps)
        except StopIteration as end:
            result: _T = end.value
            await _pause(clock, began)
            return result
        await _pause(clock, began)


async def _pause(clock: Clock, began: float) -> None:
    await clock.sleep((clock.monotonic() - began) * _PAUSES)
