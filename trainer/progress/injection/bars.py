"""Bars of tqdm as progress: the outermost bar of the script itself, and that of a recipe of torchtune.

Bars that libraries draw, such as of downloads, say nothing of the training. A bar for each epoch counts for all of
them where its text says which one of how many it is ("Epoch 2/5").
"""

from __future__ import annotations

import functools
import re
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from trainer.progress.injection.startup import complain

_INTERVAL = 0.5
"""Seconds between two looks at a bar."""
_LIBRARIES = ("site-packages", "dist-packages", "/lib/python3")
_EPOCH = re.compile(r"epoch\W{0,3}(\d{1,9})\s*(?:/|of)\s*(\d{1,9})", re.IGNORECASE)
_METRIC = re.compile(r"([^\s=,:|]{1,64})(?:=|: )\s*([-+]?[0-9][-+0-9.eE]*)(?=[,:\s]|$)")
_RECIPE = ("total_epochs", "_steps_per_epoch", "global_step")
"""Attributes of all recipes of torchtune that train."""
_BYTES = ("B", "iB", "bytes")
"""Units of bars of downloads."""
_OUTERMOST = object()
"""The kind of the bars that are not of recipes."""
_KIND = "_trainer_reporter"
"""The attribute of a bar that says how it is read."""


def watch(bars: Any, report: Callable[..., None], report_recipe: Callable[..., None]) -> None:
    """Patch a class of progress bars, and so its subclasses, such as those for notebooks, to report their progress."""
    init, update, close = bars.__init__, bars.update, bars.close
    reader = _Reader(report, report_recipe)

    @functools.wraps(init)
    def new_init(self: Any, *given: Any, **options: Any) -> None:
        init(self, *given, **options)
        _safely(reader.begin, self, sys._getframe(1))  # noqa: SLF001

    @functools.wraps(update)
    def new_update(self: Any, *given: Any, **options: Any) -> Any:
        result = update(self, *given, **options)
        _safely(reader.read, self, False)
        return result

    @functools.wraps(close)
    def new_close(self: Any, *given: Any, **options: Any) -> Any:
        _safely(reader.read, self, True)
        return close(self, *given, **options)

    bars.__init__, bars.update, bars.close = new_init, new_update, new_close


def _safely(function: Callable[..., None], *given: Any) -> None:
    try:
        function(*given)
    except Exception as error:
        complain(error)


class _Reader:
    """Reads one bar at a time."""

    def __init__(self, report: Callable[..., None], report_recipe: Callable[..., None]) -> None:
        self._report, self._report_recipe = report, report_recipe
        self._due = 0.0
        self._first_epoch = 1
        """What the script calls its first epoch."""

    def begin(self, bar: Any, frame: FrameType | None) -> None:
        """Decide whether a bar counts: by who makes it."""
        while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == "tqdm":
            frame = frame.f_back
        if frame is None or getattr(bar, "disable", True):
            return
        owner = frame.f_locals.get("self")
        if all(hasattr(owner, name) for name in _RECIPE):
            setattr(bar, _KIND, owner)
            return
        is_library = any(part in frame.f_code.co_filename for part in _LIBRARIES)
        if not is_library and not getattr(bar, "pos", 0) and str(getattr(bar, "unit", "")) not in _BYTES:
            setattr(bar, _KIND, _OUTERMOST)

    def read(self, bar: Any, is_last: bool) -> None:
        """Report how far a bar is, now and then."""
        kind = getattr(bar, _KIND, None)
        if kind is None:
            return
        now = time.monotonic()
        if not is_last and now < self._due and bar.n != bar.total:
            return
        self._due = now + _INTERVAL
        metrics = _metrics(f"{getattr(bar, 'postfix', None) or ''} {getattr(bar, 'desc', None) or ''}")
        if kind is not _OUTERMOST:
            total = kind._steps_per_epoch * kind.total_epochs  # noqa: SLF001
            step = {"current_step": kind.global_step, "total_steps": total, "total_epochs": kind.total_epochs}
            self._report_recipe(**step, train_metrics=metrics, force=is_last)
        elif bar.total:
            self._report(**self._position(bar), train_metrics=metrics, force=is_last)
        if is_last:
            delattr(bar, _KIND)

    def _position(self, bar: Any) -> dict[str, Any]:
        found = _EPOCH.search(str(bar.desc or ""))
        if found is not None:
            epoch, epochs = int(found[1]), int(found[2])
            if epoch == 0:
                self._first_epoch = 0
            before = epoch - self._first_epoch
            done = before + (bar.n >= bar.total)
            position = {"current_epoch": done, "total_epochs": epochs}
            return {**position, "current_step": before * bar.total + bar.n, "total_steps": epochs * bar.total}
        if str(bar.desc or bar.unit).lower().startswith("epoch"):
            return {"current_epoch": bar.n, "total_epochs": bar.total}
        return {"current_step": bar.n, "total_steps": bar.total}


def _metrics(text: str) -> dict[str, float] | None:
    """The numbers with names in what stands beside a bar: `loss=0.12` of its postfix, `Loss: 0.12` of its text."""
    found = {}
    for name, value in _METRIC.findall(text):
        try:
            found[name] = float(value)
        except ValueError:
            continue
    return found or None
