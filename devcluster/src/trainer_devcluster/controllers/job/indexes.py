"""Completion indexes as Job status writes them: sorted ranges such as `0,2-5`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def parse_indexes(text: str, completions: int) -> frozenset[int]:
    """The indexes in `status.completedIndexes` below `completions`; parts that are not numbers are skipped."""
    indexes: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if not first.isdigit() or (last and not last.isdigit()):
            continue
        indexes.update(range(int(first), min(int(last or first) + 1, completions)))
    return frozenset(indexes)


def format_indexes(indexes: Iterable[int]) -> str:
    """The shortest text for the indexes; a run of two is written `3,4`, longer runs `3-5` (batch/v1 JobStatus)."""
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][-1] == index - 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return ",".join(_format_run(run) for run in runs)


def _format_run(run: list[int]) -> str:
    if len(run) > 2:
        return f"{run[0]}-{run[-1]}"
    return ",".join(str(index) for index in run)
