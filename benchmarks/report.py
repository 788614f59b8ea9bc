"""The table: one for each scenario, a column for each library, and how much more or less than ours in brackets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.console import Console
from rich.table import Table

from benchmarks.measurement import Measurement, Unit
from benchmarks.results import Machine, Results, TrialResult
from benchmarks.scenarios.scenario import Scenario
from benchmarks.subjects import OURS, SUBJECTS


def print_report(console: Console, results: Results, scenarios: Sequence[Scenario]) -> None:
    """Print everything that was measured."""
    _print_machine(console, results.machine)
    for scenario in scenarios:
        console.print(_table(scenario, results))
    _print_footnotes(console, results)
    console.print(_targets(results))


def _print_machine(console: Console, machine: Machine) -> None:
    gibibytes = machine.memory_bytes / 2**30
    console.print(f"{machine.cpus} x {machine.cpu}, {gibibytes:.0f} GiB, Linux {machine.kernel}", highlight=False)
    versions = ", ".join(f"{name} {version}" for name, version in machine.versions.items())
    console.print(f"Python {machine.python}, {versions}", highlight=False)
    console.print(f"load average before the run: {machine.load_average}", highlight=False)


def _table(scenario: Scenario, results: Results) -> Table:
    table = Table("", "", title=f"{scenario.name}: {scenario.summary}", title_justify="left")
    for subject in SUBJECTS:
        table.add_column(subject.name, justify="right")
    for variant in scenario.variants:
        trials = [results.find(scenario.name, variant.name, subject.name) for subject in SUBJECTS]
        for index, name in enumerate(_names(trials)):
            table.add_row(variant.name if index == 0 else "", name, *(_cell(trial, trials, name) for trial in trials))
        table.add_section()
    return table


def _names(trials: Sequence[TrialResult | None]) -> Iterator[str]:
    """Names of all measurements; one empty row when there are none."""
    names = dict.fromkeys(found.name for trial in trials if trial is not None for found in trial.measurements)
    yield from names or [""]


def _cell(trial: TrialResult | None, trials: Sequence[TrialResult | None], name: str) -> str:
    if trial is None:
        return "not run"
    if trial.not_applicable:
        return "n/a"
    if trial.error:
        return "failed"
    found = _find(trial, name)
    if found is None:
        return ""
    ours = next((_find(other, name) for other in trials if other is not None and other.subject == OURS.name), None)
    if ours is None or trial.subject == OURS.name or not ours.value:
        return readable(found)
    ratio = found.value / ours.value
    return f"{readable(found)} ({ratio:,.0f}x)" if ratio >= 10 else f"{readable(found)} ({ratio:.2g}x)"


def _find(trial: TrialResult, name: str) -> Measurement | None:
    return next((found for found in trial.measurements if found.name == name), None)


def readable(measurement: Measurement) -> str:
    """A number with the unit that suits its size."""
    value = measurement.value
    match measurement.unit:
        case Unit.BYTES:
            return f"{value / 1024:,.1f} KiB"
        case Unit.PER_SECOND:
            return f"{value:,.0f}/s"
        case Unit.SECONDS:
            return _readable_time(value)


def _readable_time(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} us"


def _print_footnotes(console: Console, results: Results) -> None:
    console.print("(x): that number divided by ours. n/a:", highlight=False)
    reasons = {(trial.subject, trial.not_applicable) for trial in results.trials if trial.not_applicable}
    for subject, reason in sorted(reasons):
        console.print(f"  {subject}: {reason}", highlight=False)
    sizes = sorted({(trial.subject, trial.objects) for trial in results.trials if trial.objects})
    for subject, group in groupby(sizes, key=lambda size: size[0]):
        console.print(f"objects for {subject}: {', '.join(f'{size:,}' for _, size in group)}", highlight=False)
    for trial in results.errors:
        console.print(f"FAILED {trial.scenario}, {trial.variant}, {trial.subject}: {trial.error}", markup=False)


def _targets(results: Results) -> Table:
    table = Table("target", "measured", "", title="targets", title_justify="left")
    for target in results.targets:
        measured = "not run" if target.measured is None else f"{target.measured:,.4g}"
        table.add_row(target.target, measured, "" if target.measured is None else "met" if target.is_met else "missed")
    return table
