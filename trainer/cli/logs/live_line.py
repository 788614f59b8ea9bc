"""The line at the bottom of a terminal that is written over, such as a progress bar."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text


class LiveLine:
    """The newest state of a line that goes on, of several sources the last one that has written.

    It is one row of the terminal at most, and vanishes when its line has ended, which is then printed like any other.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._states: dict[str, Text] = {}

    def take(self, source: str, state: Text) -> None:
        """Take the state of a source's line."""
        self._states.pop(source, None)
        self._states[source] = state

    def end(self, source: str) -> bool:
        """The line of a source has ended; returns whether a state of it was there."""
        return self._states.pop(source, None) is not None

    @property
    def states(self) -> list[Text]:
        """Those of all sources, the newest last."""
        return [*self._states.values()]

    @property
    def row(self) -> Text | None:
        """What is to be shown; None for nothing."""
        if not self._states:
            return None
        row = self._states[next(reversed(self._states))].copy()
        row.expand_tabs(8)
        row.truncate(max(self._console.width - 1, 1), overflow="ellipsis")
        return row


class BottomRow:
    """Draws a live line below what is printed, where nothing else owns the bottom of the terminal."""

    def __init__(self, console: Console, line: LiveLine) -> None:
        self._console = console
        self._line = line
        self._is_drawn = False

    def erase(self) -> None:
        """Make room for something else."""
        if self._is_drawn:
            self._console.file.write("\r\x1b[K")
            self._console.file.flush()
            self._is_drawn = False

    def draw(self) -> None:
        """Show the live line as it is now."""
        self.erase()
        row = self._line.row
        if row is not None:
            self._console.print(row, end="")
            self._console.file.flush()
            self._is_drawn = True

    def leave(self) -> None:
        """Keep what is shown, and go on below it."""
        if self._is_drawn:
            self._console.file.write("\n")
            self._console.file.flush()
            self._is_drawn = False
