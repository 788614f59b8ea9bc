"""Remaining time in words, for people (KEP-2779, `estimatedRemainingTimeSummary`)."""

from __future__ import annotations

from itertools import dropwhile

_SECOND, _MINUTE, _HOUR, _DAY = 1, 60, 3600, 86400
_UNITS = ((_DAY, "day"), (_HOUR, "hour"), (_MINUTE, "minute"), (_SECOND, "second"))
_COARSE_STEPS = (1, 5, 10, 30, *(_MINUTE * n for n in (1, 5, 10, 30)), *(_HOUR * n for n in (1, 3, 6)), _DAY, 10 * _DAY)
_COARSE_SHARE = 8
"""An estimate is rounded to at most this part of itself."""


_ABOUT = "about "


def summarize(seconds: int, *, is_estimate: bool = False) -> str | None:
    """Remaining time in the two largest units at most, such as `9 days 5 hours`; None when nothing remains.

    An estimate is rounded more and says so: `about 45 minutes`.
    """
    if seconds <= 0:
        return None
    rounded = _round(seconds, _coarse_step(seconds) if is_estimate else _step(seconds))
    return _ABOUT + _words(rounded) if is_estimate else _words(rounded)


def is_estimate(summary: str | None) -> bool:
    """Whether a summary is our estimate and not the training's own."""
    return summary is not None and summary.startswith(_ABOUT)


def _step(seconds: int) -> int:
    if seconds < 10 * _MINUTE:
        return _SECOND
    if seconds < _DAY:
        return _MINUTE
    return _HOUR if seconds < 100 * _DAY else _DAY


def _coarse_step(seconds: int) -> int:
    return max((step for step in _COARSE_STEPS if step * _COARSE_SHARE <= seconds), default=_SECOND)


def _round(seconds: int, step: int) -> int:
    return (seconds + step // 2) // step * step


def _words(seconds: int) -> str:
    counts: list[tuple[int, str]] = []
    for size, unit in _UNITS:
        count, seconds = divmod(seconds, size)
        counts.append((count, unit))
    largest = list(dropwhile(lambda each: not each[0], counts))[:2]
    return " ".join(f"{count} {unit}{'' if count == 1 else 's'}" for count, unit in largest if count)
