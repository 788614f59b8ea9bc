from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from benchmarks.measurement import Measurement, Unit
from benchmarks.report import print_report, readable
from benchmarks.results import Results, TargetResult, TrialResult
from benchmarks.scenarios import SCENARIOS
from tests.benchmarks.test_targets import MACHINE


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        pytest.param(5632, Unit.BYTES, "5.5 KiB", id="bytes"),
        pytest.param(2.5, Unit.SECONDS, "2.50 s", id="seconds"),
        pytest.param(0.0125, Unit.SECONDS, "12.50 ms", id="milliseconds"),
        pytest.param(0.000042, Unit.SECONDS, "42.0 us", id="microseconds"),
        pytest.param(23456.7, Unit.PER_SECOND, "23,457/s", id="rate"),
    ],
)
def test_numbers_are_shown_with_a_fitting_unit(value: float, unit: Unit, text: str) -> None:
    """Bytes in KiB, times in the largest unit of which there is at least one."""
    assert readable(Measurement("x", value, unit)) == text


def test_report_shows_ratios_reasons_failures_and_targets() -> None:
    """Each trial has a cell: numbers beside ours with their ratio, n/a with the reason below, failures with theirs."""
    [load] = [scenario for scenario in SCENARIOS if scenario.name == "load"]
    pages, whole, _ = (variant.name for variant in load.variants)
    stall = "longest stall"
    results = Results(
        MACHINE,
        [
            TrialResult("load", pages, "trainer.kube", 10, [Measurement(stall, 0.002, Unit.SECONDS)]),
            TrialResult("load", pages, "kopf", 10, [Measurement(stall, 0.5, Unit.SECONDS)]),
            TrialResult("load", pages, "kubernetes_asyncio", not_applicable="it cannot"),
            TrialResult("load", whole, "kopf", 10, error="exit code 1: boom"),
        ],
        [TargetResult("short stalls", 0.002, is_met=True)],
    )
    output = StringIO()
    print_report(Console(file=output, width=150), results, [load])
    text = output.getvalue()
    for expected in (
        "2.00 ms",
        "500.00 ms (250x)",
        "kubernetes_asyncio: it cannot",
        f"FAILED load, {whole}, kopf: exit code 1: boom",
        "short stalls",
        "met",
        "not run",
    ):
        assert expected in text
