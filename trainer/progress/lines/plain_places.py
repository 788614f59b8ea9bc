"""How far a training is, by an ordinary line of its log: epoch, step, their totals or a percentage."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_TOTAL: Final = (
    r"(?:\s{{0,4}}(?:/|of(?=\s))\s{{0,8}}(?P<{0}>\d{{1,9}}+)(?![.\w])|\|(?P<{0}_>\d{{1,9}}+)(?=\]))?+(?!\s{{0,4}}/)"
)
_EPOCH: Final = re.compile(
    r"(?<![\w./-])(?<!per )epoch(?:\(train\))?['\"]?\s{0,4}[:=#]?\s{0,8}\[?\s{0,8}"
    r"(?P<epoch>\d{1,6}+)(?P<fraction>\.\d{1,18}+)?(?![\w.])" + _TOTAL.format("epochs"),
    re.IGNORECASE,
)
_STEP: Final = re.compile(
    r"(?<![\w./-])(?<!per )(?P<word>global_step|step|iter|iteration|batch|update|round|tree)(?:\(train\))?['\"]?"
    r"\s{0,4}[:=#]?\s{0,8}\[?\s{0,8}(?P<step>\d{1,9}+)(?![\w.]|:\d)" + _TOTAL.format("steps"),
    re.IGNORECASE,
)
_TRAIN: Final = re.compile(r"\btrain:\s{0,4}(?P<epoch>\d{1,6}+)(?=\s{1,4}\[)", re.IGNORECASE)
_PAIR: Final = re.compile(r"\s*+\[\s{0,4}(?P<epoch>\d{1,6}+),\s{1,8}(?P<step>\d{1,9}+)\](?=\s)")
_BRACKETS: Final = re.compile(r"\[\s{0,8}(?P<step>\d{1,9}+)\s{0,4}/\s{0,4}(?P<steps>\d{1,9}+)\s{0,4}(?=\(|\])")
_AFTER_EPOCH: Final = re.compile(r"\s{0,2}:\s{1,8}(?P<step>\d{1,9}+) / (?P<steps>\d{1,9}+)(?=\s)")
_BAR: Final = re.compile(r"(?<!\d)\d{1,3}+%\|[^|]{0,256}+\|\s{0,8}+(?P<step>\d{1,9}+)/(?P<steps>\d{1,9}+) ?\[")
_KERAS: Final = re.compile(r"\s*+(?P<step>\d{1,9}+)/(?P<steps>\d{1,9}+) ?(?:\[[=>.]{3,64}+\]|[━╸╺─]{3,64}+)")
_BOOSTING: Final = re.compile(
    r"\s*+(?:\[(?P<round>\d{1,9}+)\]\s+(?:[a-z_]+\w{0,16}-[\w@.-]{1,32}+:|\w{1,32}+'s )|(?P<tree>\d{1,9}+):\s+learn:)"
)
_PERCENT: Final = re.compile(
    r"\s{0,8}+\[\s{0,3}(?P<percent>\d{1,3}+)(?:\.\d{1,6}+)?\s?%\]|"
    r"(?:\W{0,8}(?:training )?progress\s?[:=]\s{0,4}|training\s?[:=]\s{0,4})(?P<progress>\d{1,3}+)(?:\.\d{1,6}+)?\s?%",
    re.IGNORECASE,
)
_OF_EPOCHS: Final = re.compile(r"\bepochs?\s{0,2}:?\s{0,2}$", re.IGNORECASE)
_ONLY_EPOCH: Final = re.compile(
    r"\W*+(?:(?:start(?:ing)?|begin(?:ning)?|training|train|running)\s)?epoch\W{0,8}\d++\W*+(?:start\w*+|begin\w*+)?\W*+",
    re.IGNORECASE,
)
_DONE: Final = re.compile(r"(?<![a-z])(?:took|done|finished|completed?|ended)(?![a-z])", re.IGNORECASE)


class Place(NamedTuple):
    """Where a training is, by one line."""

    epoch: int | None = None
    """As it is written, so that it may begin with 0 or 1."""
    epochs: int | None = None
    is_fraction: bool = False
    """Whether it is written as `1.2`, so that the whole epochs of it are done."""
    is_done: bool = False
    """Whether the line tells of the end of the epoch."""
    step: int | None = None
    steps: int | None = None
    is_of_all: bool = False
    """Whether a word of the line says that its steps are those of all epochs."""
    percent: int | None = None


def place_in(text: str, *, has_metrics: bool) -> tuple[Place, int] | None:
    """The place in a line, and where it stands in it; None without one.

    Without metrics a line has to be about nothing else, as prose and other programs have steps, too.
    """
    if (found := _PERCENT.match(text)) is not None:
        percent = int(found["percent"] or found["progress"])
        rest = text[found.end() :].strip()
        is_sure = percent <= 100 and (has_metrics or not rest[:1].isalpha())
        return (Place(percent=percent), found.start()) if is_sure else None
    if (found := _BOOSTING.match(text)) is not None and has_metrics:
        return Place(step=int(found["round"] or found["tree"]) + 1), 0
    if (found := _PAIR.match(text)) is not None and has_metrics:
        return Place(epoch=int(found["epoch"]), step=int(found["step"])), 0
    epoch = _EPOCH.search(text) or (_TRAIN.search(text) if has_metrics else None)
    bar = _BAR.search(text) or _KERAS.match(text)
    if epoch is None:
        return _without_epoch(text, bar, has_metrics=has_metrics)
    groups = epoch.groupdict()
    place = Place(
        int(groups["epoch"]), _integer(groups.get("epochs") or groups.get("epochs_")), bool(groups.get("fraction"))
    )
    end = epoch.end()
    step = bar or _AFTER_EPOCH.match(text, end) or _STEP.search(text, end) or _BRACKETS.search(text, end)
    step = step or _STEP.search(text, 0, epoch.start())
    if step is not None:
        place = _with_step(place, step)
    elif place.epochs is None and not (has_metrics or _ONLY_EPOCH.fullmatch(text) or _DONE.search(text, end)):
        return None
    is_done = step is None and (has_metrics or _DONE.search(text, end) is not None)
    return place._replace(is_done=is_done), min(epoch.start(), step.start() if step is not None else epoch.start())


def _without_epoch(text: str, bar: re.Match[str] | None, *, has_metrics: bool) -> tuple[Place, int] | None:
    if bar is not None:
        if _OF_EPOCHS.search(text, 0, bar.start()):
            return Place(epoch=int(bar["step"]), epochs=int(bar["steps"]), is_fraction=True), bar.start()
        place = _with_step(Place(), bar)
        return (place, bar.start()) if place.steps is not None else None
    step = _STEP.search(text)
    if step is None:
        step = _BRACKETS.search(text) if has_metrics else None
        return (_with_step(Place(), step), step.start()) if step is not None else None
    place = _with_step(Place(), step)
    rest = text[step.end() :].strip(" \t:,-|]()")
    if has_metrics or (place.steps is not None and not rest[:1].isalpha()):
        return place, step.start()
    return None


def _with_step(place: Place, found: re.Match[str]) -> Place:
    groups = found.groupdict()
    step, steps = int(groups["step"]), _integer(groups.get("steps") or groups.get("steps_"))
    is_of_all = (groups.get("word") or "").lower() == "global_step"
    return place._replace(step=step, steps=steps if steps and step <= steps else None, is_of_all=is_of_all)


def _integer(text: str | None) -> int | None:
    return None if text is None else int(text)
