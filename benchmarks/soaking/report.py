"""The table of a soak: each figure of each process, how it develops, and what of it is a leak."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.soaking.observed import Sample
from benchmarks.soaking.trend import Trend, trend

_MIB: Final = 2.0**20
_GROWN: Final = 8
"""Collections, and types of objects, that are named where something leaks."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One of the figures of a process."""

    name: str
    value: Callable[[Sample], float]
    resolution: float
    """What is less is no growth."""
    text: Callable[[float], str]


FIGURES: Final = (
    Figure("memory (RSS)", lambda each: each.rss, _MIB, lambda value: f"{value / _MIB:.1f} MiB"),
    Figure("malloc", lambda each: each.malloc, _MIB / 4, lambda value: f"{value / _MIB:.1f} MiB"),
    Figure("blocks of memory", lambda each: each.blocks, 100, lambda value: f"{value:,.0f}"),
    Figure("objects", lambda each: each.objects, 100, lambda value: f"{value:,.0f}"),
    Figure("tasks", lambda each: each.tasks, 1, lambda value: f"{value:.0f}"),
    Figure("files", lambda each: each.files, 1, lambda value: f"{value:.0f}"),
    Figure("threads", lambda each: each.threads, 1, lambda value: f"{value:.0f}"),
)


def trends(rests: Sequence[Sequence[Sample]]) -> dict[Figure, Trend]:
    """How the figures of a process develop, of which there are samples at each rest."""
    return {
        figure: trend(
            [(samples[0].moment, [figure.value(each) for each in samples]) for samples in rests], figure.resolution
        )
        for figure in FIGURES
    }


def leaks(found: Mapping[Figure, Trend]) -> list[str]:
    """The names of the figures that leak."""
    return [figure.name for figure, each in found.items() if each.is_leak]


def show(console: Console, name: str, found: dict[Figure, Trend]) -> None:
    """Print the table of a process."""
    table = Table("figure", "at rest", "an hour", "at least", "found from", "", title=name, title_justify="left")
    for figure, each in found.items():
        slopes = (f"{slope:+.1%}" for slope in (each.slope, each.least, each.smallest_leak))
        table.add_row(figure.name, figure.text(each.level), *slopes, "leak" if each.is_leak else "")
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
