"""What a command that takes a while is doing, on a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

from trainer.cli.console import errors, unfinished_line
from trainer.kube.clock import Clock, SystemClock

_WIDTH = 44


class Steps:
    """Shows each step while it runs, and then how long it took; nothing where there is no terminal.

    Args:
        console: default: standard error, so that the output of the command stays the same everywhere.
        clock: measures the steps.
    """

    def __init__(self, console: Console | None = None, clock: Clock | None = None) -> None:
        self._console = console or errors()
        self._clock = clock or SystemClock()

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """One step; of one that fails nothing is left, since its error follows."""
        if not self._console.is_interactive:
            yield
            return
        begin = self._clock.monotonic()
        with unfinished_line(self._console, f"{title} ..."):
            yield
        self._console.file.write(f"{title:<{_WIDTH}} {self._clock.monotonic() - begin:5.1f} s\n")
        self._console.file.flush()
