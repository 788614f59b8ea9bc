"""Parts of a line about progress: a bar, short numbers, and as many texts as fit."""

from __future__ import annotations

import math
from collections.abc import Iterable

from rich.cells import cell_len
from rich.text import Text

from trainer.cli.console import short_duration
from trainer.progress.pace import is_estimate
from trainer.view.progress import TrainingProgress

_SHORT = 7
"""Characters of a value that is not shortened."""


def short_value(text: str) -> str:
    """A number in few characters, with four significant digits: `0.2347`, `1e-05`."""
    if len(text) <= _SHORT:
        return text
    try:
        number = float(text)
    except ValueError:
        return text
    if not math.isfinite(number):
        return text
    return min(f"{number:.4g}", text, key=len)


def in_room(texts: Iterable[str], room: int | None) -> str:
    """Join as many whole texts as fit into `room` cells; None: all."""
    shown = ""
    for text in texts:
        longer = f"{shown}  {text}" if shown else text
        if room is not None and cell_len(longer) > room:
            break
        shown = longer
    return shown


_PARTS = " ▏▎▍▌▋▊▉"
"""Eighths of a cell."""


def progress_bar(percentage: int, width: int, *, ascii_only: bool = False) -> Text:
    """A bar of `width` cells; it is full at 100 percent only, and shows something from 1 percent on."""
    percentage = min(max(percentage, 0), 100)
    if ascii_only:
        done = width * percentage // 100
        return Text("#" * done, style="green").append("-" * (width - done), style="dim")
    eighths = max(width * 8 * percentage // 100, 1 if percentage else 0)
    whole, part = divmod(eighths, 8)
    bar = "█" * whole + (_PARTS[part] if part else "")
    return Text(bar, style="green").append("░" * (width - len(bar)), style="dim")


def short_remaining(progress: TrainingProgress) -> str:
    """The remaining time for a table: `9d5h`, or `~45m` for an estimate; empty when unknown."""
    if not progress.remaining or not progress.remaining_seconds:
        return progress.remaining
    return ("~" if is_estimate(progress.remaining) else "") + short_duration(progress.remaining_seconds)
