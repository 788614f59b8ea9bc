"""Writes what examples, gangs, jobs of operators and Experiments are to become; `git diff` shows what has changed."""

from __future__ import annotations

from packages.v1_jobs.tests.golden import comparison
from packages.v1_jobs.tests.golden.manifests import manifests
from packages.v1_jobs.tests.katib import test_golden as katib
from packages.v1_jobs.tests.katib.samples import USUAL
from tests.golden import gang_cases
from tests.golden.rendering import EXPECTED, examples, expected, render


def main() -> None:
    """Replace what is in `expected`."""
    for stale in EXPECTED.rglob("*.yaml"):
        stale.unlink()
    for example in examples():
        file = expected(example)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(render(example), encoding="utf-8")
    for case in gang_cases.cases():
        gang_cases.expected(case).write_text(gang_cases.text_of(case), encoding="utf-8")
    comparison.EXPECTED.mkdir(exist_ok=True)
    for kind in manifests():
        text = comparison.text_of(comparison.comparisons(kind))
        comparison.expected(kind).write_text(text, encoding="utf-8")
    for experiment in USUAL:
        katib.expected(experiment).write_text(katib.text_of(experiment), encoding="utf-8")


main()
