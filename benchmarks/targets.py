"""What the project wants to reach on two cores of a common server; reported, never asserted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.results import Results, TargetResult
from benchmarks.subjects import OURS

_PEER = "kubernetes_asyncio"


@dataclass(frozen=True, slots=True)
class Target:
    """A bound for the worst of some numbers of ours, or for a peer's number divided by ours."""

    text: str
    scenario: str
    variants: tuple[str, ...]
    measurement: str
    at_most: float | None = None
    at_least: float | None = None
    against: str | None = None
    """The peer by whose number ours is divided. Default: None, the number itself counts."""

    def check(self, results: Results) -> TargetResult:
        """Compare with what was measured."""
        numbers = [self._number(results, variant) for variant in self.variants]
        known = [number for number in numbers if number is not None]
        if len(known) < len(numbers):
            return TargetResult(self.text, None, is_met=False)
        measured = max(known) if self.at_most is not None else min(known)
        is_met = (self.at_most is None or measured <= self.at_most) and (
            self.at_least is None or measured >= self.at_least
        )
        return TargetResult(self.text, measured, is_met)

    def _number(self, results: Results, variant: str) -> float | None:
        ours = self._of(results, variant, OURS.name)
        if self.against is None or ours is None:
            return ours
        theirs = self._of(results, variant, self.against)
        return None if theirs is None or not ours else theirs / ours

    def _of(self, results: Results, variant: str, subject: str) -> float | None:
        trial = results.find(self.scenario, variant, subject)
        return None if trial is None else trial.value(self.measurement)


TARGETS = (
    Target(
        "RSS of a cached 8 KB pod at most 6 KiB",
        "memory",
        ("pods, list", "pods, WatchList"),
        "init: RSS per object",
        at_most=6 * 1024,
    ),
    Target(
        f"at least 20 times fewer bytes per watch event than {_PEER}",
        "watch-events",
        ("pods",),
        "RSS per event",
        at_least=20,
        against=_PEER,
    ),
    Target(
        f"at least 50 times less CPU per watch event than {_PEER}",
        "watch-events",
        ("pods",),
        "CPU per event",
        at_least=50,
        against=_PEER,
    ),
    Target(
        "at least 20,000 empty reconciles a second, at any number of workers",
        "reconciles",
        tuple(f"empty, {workers}, from the queue" for workers in ("1 worker", "10 workers", "100 workers")),
        "reconciles",
        at_least=20_000,
    ),
    Target(
        "longest stall under 25 ms while the pods load",
        "load",
        ("list in pages", "list in one piece", "WatchList"),
        "longest stall",
        at_most=0.025,
    ),
)


def check(results: Results) -> Iterable[TargetResult]:
    """All targets."""
    return (target.check(results) for target in TARGETS)
