"""Lines of logs, printed with their sources."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from trainer.cli.logs.live_line import BottomRow, LiveLine
from trainer.progress.lines.terminal_line import without_colors

_STYLES = ("cyan", "green", "magenta", "blue", "yellow", "bright_cyan", "bright_green", "bright_magenta")


class LogPrinter:
    """Prints lines of several sources, each source in its own colour on a terminal, and its lines in theirs.

    Args:
        console: where.
        live: the state of a line that goes on, which somebody else shows. Default: it is shown below the lines.
    """

    def __init__(self, console: Console, live: LiveLine | None = None) -> None:
        self._console = console
        self._live = live or LiveLine(console)
        self._bottom = BottomRow(console, self._live) if live is None and console.is_interactive else None
        self._is_colored = console.color_system is not None and not console.no_color
        self._styles: dict[str, str] = {}

    def print(self, source: str, *texts: str) -> None:
        """Print lines: each `source | text`, or the text alone when the source is empty."""
        if not texts:
            return
        self._live.end(source)
        self.make_room()
        if not source:
            self._write(texts)
        elif not self._console.is_terminal:
            self._write(f"{source} | {text}" for text in texts)
        else:
            for text in texts:
                self._console.print(self._line(source, text))
        if self._bottom is not None:
            self._bottom.draw()

    def show_state(self, source: str, text: str) -> None:
        """Show the state of a line that is written over, on a terminal; elsewhere the last one is for the end."""
        self._live.take(source, self._line(source, text))
        if self._bottom is not None:
            self._bottom.draw()

    def make_room(self) -> None:
        """Erase the state that is shown, before somebody else prints."""
        if self._bottom is not None:
            self._bottom.erase()

    def close(self) -> None:
        """Leave the state that is shown where it is, as the last line; where none is shown, print the last ones."""
        if self._bottom is not None:
            self._bottom.leave()
        else:
            for state in self._live.states:
                self._console.print(state)

    def _line(self, source: str, text: str) -> Text:
        shown = Text.from_ansi(text) if self._is_colored and "\x1b" in text else Text(without_colors(text))
        if not source:
            return shown
        style = self._styles.setdefault(source, _STYLES[len(self._styles) % len(_STYLES)])
        return Text.assemble((f"{source} | ", style), shown)

    def _write(self, lines: Iterable[str]) -> None:
        """Write without Rich, which is limited to a few thousand lines a second."""
        file = self._console.file
        text = "".join(f"{line}\n" for line in lines)
        file.write(text if self._is_colored else without_colors(text))
        file.flush()
