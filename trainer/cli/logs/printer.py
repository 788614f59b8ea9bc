"""Lines of logs, printed with their sources."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

_STYLES = ("cyan", "green", "magenta", "blue", "yellow", "bright_cyan", "bright_green", "bright_magenta")


class LogPrinter:
    """Prints lines of several sources, each source in its own colour on a terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._styles: dict[str, str] = {}

    def print(self, source: str, *texts: str) -> None:
        """Print lines: each `source | text`, or the text alone when the source is empty."""
        if not source:
            self._write(texts)
            return
        # A progress bar overwrites itself: only its last state counts.
        shown = [text.rsplit("\r", 1)[-1] for text in texts]
        prefix = f"{source} | "
        if not self._console.is_terminal:
            self._write(prefix + text for text in shown)
            return
        style = self._styles.setdefault(source, _STYLES[len(self._styles) % len(_STYLES)])
        for text in shown:
            self._console.print(Text(prefix, style=style).append(text, style="default"))

    def _write(self, lines: Iterable[str]) -> None:
        """Write without Rich, which is limited to a few thousand lines a second."""
        file = self._console.file
        file.write("".join(f"{line}\n" for line in lines))
        file.flush()
