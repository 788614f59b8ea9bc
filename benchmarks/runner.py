"""Running trials: one API server for all of them, a fresh process for each."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import msgspec

from benchmarks.results import TrialResult
from benchmarks.scenarios.scenario import Scenario, Size, Variant
from benchmarks.subjects import OURS, SUBJECTS
from benchmarks.subjects.subject import Subject
from benchmarks.trial import Order, Outcome

TRIAL_SECONDS = 180.0
"""Seconds after which a trial is ended."""

LAST_WORDS = 2_000
"""Characters of its standard error that the result of a failed trial keeps."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run."""

    scenarios: Sequence[Scenario]
    size: Size = field(default_factory=Size)
    peer_objects: int = 2_000
    """Objects for the other libraries, which take a hundred times as long. Default: 2,000, so that a run takes minutes.

    What is reported is per object or per event, and what grows faster than the number of objects is in their favour.
    """

    def trials(self) -> Iterator[tuple[Scenario, Variant, Subject]]:
        """All of them, in the order of the report."""
        for scenario in self.scenarios:
            for variant in scenario.variants:
                for subject in SUBJECTS:
                    yield scenario, variant, subject

    def size_for(self, subject: Subject) -> Size:
        """How much work the subject gets."""
        if subject is OURS:
            return self.size
        return replace(self.size, objects=min(self.peer_objects, self.size.objects))


def run(plan: Plan) -> Iterator[TrialResult]:
    """Run the trials one after the other."""
    with serving() as url:
        for scenario, variant, subject in plan.trials():
            yield run_one(plan, url, scenario, variant, subject)


def run_one(plan: Plan, server: str, scenario: Scenario, variant: Variant, subject: Subject) -> TrialResult:
    """Run one trial against the stand-in at this URL, unless the subject lacks what the variant needs."""
    lacking = [subject.lacks[feature] for feature in sorted(variant.needs) if feature in subject.lacks]
    if lacking:
        return TrialResult(scenario.name, variant.name, subject.name, not_applicable=lacking[0])
    return _run(Order(scenario.name, variant.name, subject.name, server, plan.size_for(subject)))


def _run(order: Order) -> TrialResult:
    names = (order.scenario, order.variant, order.subject, order.size.objects)
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "benchmarks.trial"],
            input=msgspec.json.encode(order),
            capture_output=True,
            timeout=TRIAL_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        said = (error.stderr or b"").decode(errors="replace")
        return TrialResult(*names, error=f"not done after {TRIAL_SECONDS:.0f} s: {said[-LAST_WORDS:]}")
    if ended.returncode:
        said = ended.stderr.decode(errors="replace")
        return TrialResult(*names, error=f"exit code {ended.returncode}: {said[-LAST_WORDS:]}")
    return TrialResult(*names, measurements=msgspec.json.decode(ended.stdout, type=Outcome).measurements)


@contextmanager
def serving() -> Iterator[str]:
    """Start the API server's stand-in and yield its URL."""
    command = [sys.executable, "-m", "benchmarks.server"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        if not url:
            raise RuntimeError("the API server's stand-in did not start; its error is above")
        # Leaving the block closes its standard input, at which it ends.
        yield url
