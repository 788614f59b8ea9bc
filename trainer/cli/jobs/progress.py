"""Parts of a line about progress: a bar, short numbers, and as many texts as fit."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from rich.cells import cell_len
from rich.text import Text

from trainer.cli.columns import elided
from trainer.cli.console import short_duration
from trainer.progress.interest import MetricValue, label
from trainer.progress.pace import is_estimate
from trainer.view.progress import TrainingProgress

_DIGITS = 4
_LONGEST = 7
"""Characters of a value with few digits that stays as it is, and digits of a whole part that does."""


def short_value(text: str) -> str:
    """A number with four significant digits: `0.2347`, `1e-05`, `12346`; of up to seven digits the whole part stays."""
    try:
        number = float(text)
    except ValueError:
        return text
    digits = re.sub(r"[eE].*|[^0-9]", "", text).lstrip("0")
    if not math.isfinite(number) or (len(digits) <= _DIGITS and len(text) <= _LONGEST):
        return text
    is_whole = 10**_DIGITS <= abs(number) < 10**_LONGEST
    return min(f"{number:.0f}" if is_whole else f"{number:.{_DIGITS}g}", text, key=len)


def metric_text(metric: MetricValue) -> str:
    """Its name and short value: `eval loss 0.2347`."""
    return f"{label(metric)} {short_value(metric.value)}"


def metrics_in(metrics: Iterable[MetricValue], room: int | None, *, ascii_only: bool = False) -> str:
    """As many metrics as fit into `room` cells, None: all; the name of the first one is cut, and its value is not.

    Args:
        metrics: the most interesting one first.
        room: may be too small for a value, which is then left out.
        ascii_only: whether the terminal is limited to ASCII. Default: no.
    """
    texts = [metric_text(metric) for metric in metrics]
    if not texts or room is None or cell_len(texts[0]) <= room:
        return in_room(texts, room)
    name, _, value = texts[0].rpartition(" ")
    left = room - cell_len(value) - 1
    return f"{elided(name, left, ascii_only=ascii_only)} {value}" if left > 0 else in_room([value], room)


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
