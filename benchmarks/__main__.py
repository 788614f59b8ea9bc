"""`python -m benchmarks`: run the trials, print a table, write JSON."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from benchmarks.machine import this_machine
from benchmarks.report import print_report
from benchmarks.results import Results, TrialResult
from benchmarks.runner import Plan, run
from benchmarks.scenarios import SCENARIOS
from benchmarks.scenarios.scenario import Size
from benchmarks.targets import check

DEFAULT_OUTPUT = Path(__file__).parent / "results.json"

WIDTH = 150
"""Columns of the table in a file or pipe."""

DEFAULT_SIZE = Size()
DEFAULT_PLAN = Plan(SCENARIOS)

NAMES = [scenario.name for scenario in SCENARIOS]


def main(
    scenario: Annotated[
        list[str] | None, typer.Option(help=f"Run only this one; may be repeated. One of: {', '.join(NAMES)}.")
    ] = None,
    objects: Annotated[int, typer.Option(min=1, help="Objects in the API server.")] = DEFAULT_SIZE.objects,
    peer_objects: Annotated[
        int, typer.Option(min=1, help="The same for the other libraries.")
    ] = DEFAULT_PLAN.peer_objects,
    seconds: Annotated[
        float, typer.Option(min=0.01, help="Length of trials that follow a clock.")
    ] = DEFAULT_SIZE.seconds,
    output: Annotated[Path, typer.Option(help="JSON file to write.")] = DEFAULT_OUTPUT,
) -> None:
    """Measure trainer.kube, kopf and kubernetes_asyncio with the same work."""
    unknown = set(scenario or ()) - set(NAMES)
    if unknown:
        raise typer.BadParameter(f"there is no scenario {', '.join(sorted(unknown))}; choose from {', '.join(NAMES)}")
    plan = Plan(
        [each for each in SCENARIOS if not scenario or each.name in scenario], Size(objects, seconds), peer_objects
    )
    machine = this_machine()
    results = Results(machine, _run(plan))
    results = msgspec.structs.replace(results, targets=list(check(results)))
    output.write_bytes(msgspec.json.format(msgspec.json.encode(results)))
    print_report(Console(width=None if sys.stdout.isatty() else WIDTH), results, plan.scenarios)
    if any(results.errors):
        sys.exit(1)


def _run(plan: Plan) -> list[TrialResult]:
    progress, found = Console(stderr=True), list[TrialResult]()
    total = sum(1 for _ in plan.trials())
    with progress.status("starting") as status:
        for result in run(plan):
            found.append(result)
            status.update(f"{len(found)} of {total}: done with {result.scenario}, {result.variant}, {result.subject}")
    return found


if __name__ == "__main__":
    typer.run(main)
