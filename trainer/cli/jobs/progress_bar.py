"""A bar that shows how much of a training is done."""

from __future__ import annotations

from rich.text import Text

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
