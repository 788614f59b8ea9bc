"""The user's terminal, handed over to a command elsewhere."""

from __future__ import annotations

import os
import signal
import sys
import termios
import tty
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Self

import anyio


@dataclass(frozen=True, slots=True)
class Terminal:
    """A terminal at a descriptor."""

    descriptor: int

    @classmethod
    def of_input(cls) -> Self | None:
        """That of standard input; None if it is none."""
        if sys.stdin is None or not sys.stdin.isatty():
            return None
        return cls(sys.stdin.fileno())

    @contextmanager
    def raw(self) -> Iterator[None]:
        """Pass all keys on as they are, Ctrl-C included, until the context ends, however it does."""
        before = termios.tcgetattr(self.descriptor)
        try:
            # Without dropping what has been typed ahead.
            tty.setraw(self.descriptor, termios.TCSADRAIN)
            yield
        finally:
            with suppress(termios.error):  # its window was closed
                termios.tcsetattr(self.descriptor, termios.TCSADRAIN, before)

    async def sizes(self) -> AsyncIterator[tuple[int, int]]:
        """Columns and rows, now and whenever they change."""
        with anyio.open_signal_receiver(signal.SIGWINCH) as changes:
            yield self._size()
            async for _ in changes:
                yield self._size()

    def _size(self) -> tuple[int, int]:
        columns, rows = os.get_terminal_size(self.descriptor)
        return columns, rows
