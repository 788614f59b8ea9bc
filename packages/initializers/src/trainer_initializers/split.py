"""SPLIT: which rows of a dataset are fetched, in the slicing syntax of the library datasets: `train[:10%]+test`.

Which files belong to which split is found as the library does it: by names such as `data/train-00000-of-00004.parquet`,
else by words in the names of files and directories; where there are none, all files are `train`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from trainer_initializers.errors import TransferError

_PART = re.compile(r"(\w{1,100}(?:\.\w{1,100}){0,4})(?:\[(?:(-?\d{1,15})(%?))?:(?:(-?\d{1,15})(%?))?\])?")
_SHARD = re.compile(r"(?:^|/)(\w{1,100}(?:\.\w{1,100}){0,4})-\d{5}-of-\d{5}[^/]*$")
_SPLITS = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("validation", "valid", "dev", "val"), "validation"),
    **dict.fromkeys(("test", "testing", "eval", "evaluation"), "test"),
}
_BETWEEN_WORDS = re.compile(r"[-._ 0-9/]")


@dataclass(frozen=True, slots=True)
class SplitSlice:
    """Consecutive rows of a split."""

    name: str
    start: int | None = None
    stop: int | None = None
    is_percent: bool = False

    def bounds(self, rows: int) -> tuple[int, int]:
        """The first row and the one behind the last, of so many."""

        def place(value: int) -> int:
            absolute = round(value / 100 * rows) if self.is_percent else value
            return min(max(absolute + rows if absolute < 0 else absolute, 0), rows)

        start = 0 if self.start is None else place(self.start)
        return start, max(start, rows if self.stop is None else place(self.stop))

    @property
    def needed(self) -> int | None:
        """Rows from the beginning that have to be there; None for all, since they have to be counted."""
        if self.is_percent or self.stop is None or self.stop < 0 or (self.start or 0) < 0:
            return None
        return self.stop


def parse_split(text: str) -> tuple[SplitSlice, ...]:
    """The slices that SPLIT names.

    Raises:
        TransferError: it is not written in the syntax.
    """
    slices = []
    for part in text.split("+"):
        found = _PART.fullmatch(part.strip())
        if found is None:
            raise _wrong(text, "train, train[:5000], train[10%:20%], train[-100:] or train+test")
        name, start, start_unit, stop, stop_unit = found.groups()
        units = {unit for value, unit in ((start, start_unit), (stop, stop_unit)) if value is not None}
        if len(units) > 1:
            raise _wrong(text, f"{name}[10%:20%] or {name}[10:20]: both numbers are rows, or both are percent")
        first, last = (None if value is None else int(value) for value in (start, stop))
        if "%" in units and max(abs(first or 0), abs(last or 0)) > 100:
            raise _wrong(text, f"{name}[10%:20%]: percent go from -100 to 100")
        slices.append(SplitSlice(name, first, last, is_percent="%" in units))
    return tuple(slices)


def splits_of(paths: Iterable[str]) -> Mapping[str, Sequence[str]]:
    """The files of each split, in the order of their names."""
    ordered = sorted(paths)
    shards = {path: found[1] for path in ordered if (found := _SHARD.search(path))}
    names = shards or {path: name for path in ordered if (name := _by_words(path))}
    splits: dict[str, list[str]] = {}
    for path in ordered:
        if not names or path in names:
            splits.setdefault(names.get(path, "train"), []).append(path)
    return splits


def _by_words(path: str) -> str:
    """The split that the last telling word of a path names; empty if there is none."""
    words = _BETWEEN_WORDS.split(path)
    return next((_SPLITS[word] for word in reversed(words) if word in _SPLITS), "")


def _wrong(text: str, example: str) -> TransferError:
    return TransferError(f"SPLIT={text!r} is no slice of a dataset: write it as {example}")
