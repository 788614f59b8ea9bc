"""`python -m benchmarks.trial`: one trial in a process of its own, so that nothing of another is measured with it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

import msgspec

from benchmarks.measurement import Measurement
from benchmarks.scenarios import SCENARIOS
from benchmarks.scenarios.scenario import Size, Trial
from benchmarks.server.control import control
from benchmarks.subjects import SUBJECTS


class Order(msgspec.Struct, frozen=True):
    """Which trial to run; the process reads it from standard input and answers on standard output."""

    scenario: str
    variant: str
    subject: str
    server: str
    """Base URL of the stand-in."""
    size: Size


class Outcome(msgspec.Struct, frozen=True):
    """What it measured."""

    measurements: list[Measurement]


async def run(order: Order) -> Outcome:
    """Run one trial in this process."""
    [scenario] = [scenario for scenario in SCENARIOS if scenario.name == order.scenario]
    [variant] = [variant for variant in scenario.variants if variant.name == order.variant]
    [subject] = [subject for subject in SUBJECTS if subject.name == order.subject]
    async with control(order.server) as steering:
        measured: Sequence[Measurement] = await variant.run(Trial(subject, steering, order.size))
    return Outcome(list(measured))


def main() -> None:
    """Read an order, run it, write the outcome."""
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=Order)
    # Whatever a library prints must not get between the outcome and its reader.
    answer, sys.stdout = sys.stdout, sys.stderr
    outcome = asyncio.run(run(order))
    answer.buffer.write(msgspec.json.encode(outcome))
    answer.flush()


if __name__ == "__main__":
    main()
