"""The table of a soak: each figure of each process, how it develops, and what of it is a leak."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.soaking.observed import Sample
from benchmarks.soaking.trend import Trend, Verdict, trend

_MIB: Final = 2.0**20
_GROWN: Final = 8
"""Collections, and types of objects, that are named where something leaks."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One of the figures of a process."""

    name: str
    value: Callable[[Sample], float]
    step: float
    """By how much it differs between rests, or goes on settling in the later half of a run, without a leak."""
    text: Callable[[float], str]


def _mebibytes(value: float) -> str:
    return f"{value / _MIB:.1f} MiB"


def _number(value: float) -> str:
    return f"{value:,.0f}"


FIGURES: Final = (
    Figure("memory (RSS)", lambda each: each.rss, 4 * _MIB, _mebibytes),
    Figure("malloc", lambda each: each.malloc, 2 * _MIB, _mebibytes),
    Figure("blocks of memory", lambda each: each.blocks, 1000, _number),
    Figure("objects", lambda each: each.objects, 1000, _number),
    Figure("entries of caches", lambda each: sum(each.entries.values()), 50, _number),
    Figure("tasks", lambda each: each.tasks, 16, _number),
    Figure("files", lambda each: each.files, 16, _number),
    Figure("threads", lambda each: each.threads, 2, _number),
)


def trends(rests: Sequence[Sequence[Sample]]) -> dict[Figure, Trend]:
    """How the figures of a process develop, of which there are samples at each rest."""
    return {
        figure: trend([(samples[0].moment, [figure.value(each) for each in samples]) for samples in rests], figure.step)
        for figure in FIGURES
    }


def leaks(found: Mapping[Figure, Trend]) -> list[str]:
    """The names of the figures that leak."""
    return [figure.name for figure, each in found.items() if each.verdict is Verdict.LEAK]


def dubious(found: Mapping[Figure, Trend]) -> list[str]:
    """The names of those that seem to grow by more than their bound, where a leak is neither proved nor excluded."""
    return [figure.name for figure, each in found.items() if each.is_dubious]


def show(console: Console, name: str, found: Mapping[Figure, Trend]) -> None:
    """Print the table of a process."""
    columns = ("figure", "at rest", "an hour", "proved", "found from", "must find", "verdict")
    table = Table(*columns, title=name, title_justify="left")
    for figure, each in found.items():
        slopes = (f"{slope:+.1%}" for slope in (each.slope, each.proved, each.smallest_leak, each.bound))
        table.add_row(figure.name, figure.text(each.level), *slopes, each.verdict)
    console.print(table)


def grown(first: Sequence[Sample], last: Sequence[Sample]) -> list[str]:
    """The collections and the types that have gained most between two rests."""
    entries = _gains([each.entries for each in first], [each.entries for each in last])
    types = _gains([each.types for each in first], [each.types for each in last])
    return [f"{name} +{gain:.0f}" for gain, name in entries[:_GROWN] + types[:_GROWN] if gain >= 1]


def _gains(first: Sequence[Mapping[str, int]], last: Sequence[Mapping[str, int]]) -> list[tuple[float, str]]:
    """The differences between the means, the largest first."""

    def mean(some: Sequence[Mapping[str, int]], name: str) -> float:
        return sum(each.get(name, 0) for each in some) / len(some)

    names = {name for each in (*first, *last) for name in each}
    return sorted(((mean(last, name) - mean(first, name), name) for name in names), reverse=True)
