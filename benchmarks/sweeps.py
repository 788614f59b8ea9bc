"""`python -m benchmarks.sweeps`: how good the trials of a sweep are by each algorithm, and what choosing them costs.

Sweeps are simulated as the controller runs them, with `trainer_sweeps.search` and a few trials at once; what a training
would report is computed. The same functions, seeds and numbers of trials for each algorithm.
"""

from __future__ import annotations

import asyncio
import math
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Annotated, Any, Final, TypeAlias

import anyio
import anyio.to_thread
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.machine import this_machine
from benchmarks.stalls import LoopStalls
from trainer.kube.objects import Object
from trainer_sweeps.api.optimizationjob import OptimizationJobSpec, TrialState
from trainer_sweeps.search import PastTrial, prune_reason, suggestion

WIDTH: Final = 110
STEPS: Final = 81
"""Steps of each training of the comparison of pruning."""

PRUNINGS: Final[dict[str, Object | None]] = {
    "none": None,
    "median": {"median": {"warmupSteps": 3}},
    "asha": {"asha": {}},
    "asha from 9": {"asha": {"warmupSteps": 9}},
}
Assignment: TypeAlias = Mapping[str, str]
ALGORITHMS: Final = ("random", "tpe", "cmaEs", "gp")


def _numbers(name: str, low: float, high: float, kind: str = "uniform", of: str = "Float") -> Object:
    return {"name": name, "searchSpace": {kind: {"min": str(low), "max": str(high), "type": of}}}


def _choice(name: str, *texts: str) -> Object:
    return {"name": name, "searchSpace": {"categorical": {"choices": [*texts]}}}


def _branin(at: Assignment) -> float:
    x, y = float(at["x"]), float(at["y"])
    bowl = (y - 5.1 / (4 * math.pi**2) * x**2 + 5 / math.pi * x - 6) ** 2
    return bowl + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10


def _training(at: Assignment) -> float:
    """Made up after what trainings do: one parameter matters most, some depend on another, one is a choice."""
    rate, decay = math.log10(float(at["lr"])), math.log10(float(at["weight_decay"]))
    optimizer = {"sgd": 0.5, "adam": 0.0, "lion": 0.2}[at["optimizer"]]
    depends = 0.3 * (decay + 4) ** 2 * (1 if at["optimizer"] == "sgd" else 0.3)
    return (
        (rate + 2.7) ** 2 + depends + optimizer + 0.02 * (int(at["layers"]) - 5) ** 2 + abs(float(at["dropout"]) - 0.2)
    )


def _rosenbrock(at: Assignment) -> float:
    values = [float(value) for value in at.values()]
    return sum(100 * (b - a**2) ** 2 + (1 - a) ** 2 for a, b in pairwise(values))


def _ackley(at: Assignment) -> float:
    values = [float(value) for value in at.values()]
    far = math.exp(-0.2 * math.sqrt(statistics.fmean(value**2 for value in values)))
    near = math.exp(statistics.fmean(math.cos(2 * math.pi * value) for value in values))
    return 20 + math.e - 20 * far - near


TRAINING: Final = [
    _numbers("lr", 1e-5, 1, "logUniform"),
    _numbers("weight_decay", 1e-7, 1e-1, "logUniform"),
    _choice("optimizer", "sgd", "adam", "lion"),
    _numbers("layers", 1, 12, of="Int"),
    _numbers("dropout", 0, 0.8),
]


@dataclass(frozen=True, slots=True)
class Function:
    """What is minimized; its least value is 0, but Branin's 0.398. None has it in the middle of its space."""

    name: str
    parameters: Sequence[Object]
    value: Callable[[Assignment], float]


FUNCTIONS: Final = (
    Function("Branin, 2 numbers", [_numbers("x", -5, 10), _numbers("y", 0, 15)], _branin),
    Function("a training, 5 of all kinds", TRAINING, _training),
    Function("Rosenbrock, 6 numbers", [_numbers(f"x{n}", -5, 2) for n in range(6)], _rosenbrock),
    Function("Ackley, 10 numbers", [_numbers(f"x{n}", -2, 10) for n in range(10)], _ackley),
)


def spec_of(parameters: Sequence[Object], algorithm: str, pruning: Object | None = None) -> OptimizationJobSpec:
    """The spec of a sweep that minimizes loss, with all else by default."""
    spec: dict[str, Any] = {
        "objectives": [{"metric": "loss"}],
        "searchAlgorithm": {algorithm: {}},
        "parameters": [*parameters],
        "trainJobTemplate": {"spec": {}},
    }
    return OptimizationJobSpec.from_object(spec | ({} if pruning is None else {"pruneAlgorithm": pruning}))


@dataclass(slots=True)
class Sweep:
    """A sweep whose trials run side by side, each a step at a time."""

    spec: OptimizationJobSpec
    seed: int
    loss: Callable[[Assignment, int], float]
    """The loss of a training after a step."""
    steps: int = 1
    """Steps of a training."""
    steps_made: int = 0

    def run(self, trials: int, parallel: int) -> list[PastTrial]:
        """Run it to its end."""
        known: dict[int, PastTrial] = {}
        while len(known) < trials or any(trial.state is TrialState.RUNNING for trial in known.values()):
            running = [trial for trial in known.values() if trial.state is TrialState.RUNNING]
            for number in range(len(known) + 1, min(trials, len(known) + parallel - len(running)) + 1):
                assignment = suggestion(self.spec, self.seed, [*known.values()], number)
                known[number] = PastTrial(number, TrialState.RUNNING, assignment)
                running.append(known[number])
            for trial in running:
                known[trial.number] = self._after_a_step(trial, [*known.values()])
        return [*known.values()]

    def _after_a_step(self, trial: PastTrial, others: Sequence[PastTrial]) -> PastTrial:
        self.steps_made += 1
        step = len(trial.points) + 1
        value = self.loss(trial.assignment, step)
        after = PastTrial(trial.number, trial.state, trial.assignment, None, (*trial.points, (step, value)))
        if step == self.steps:
            return PastTrial(trial.number, TrialState.SUCCEEDED, trial.assignment, value, after.points)
        if prune_reason(self.spec, after, others) is not None:
            return PastTrial(trial.number, TrialState.PRUNED, trial.assignment, value, after.points)
        return after


def best_of(trials: Sequence[PastTrial]) -> float:
    """The least value of those that succeeded."""
    return min(trial.value for trial in trials if trial.state is TrialState.SUCCEEDED and trial.value is not None)


def values_found(
    functions: Sequence[Function], seeds: int, trials: int, parallel: int, *, algorithms: Sequence[str]
) -> Table:
    """The best value by function and algorithm."""
    title = f"best value after {trials} trials, {parallel} at once: median of {seeds} seeds"
    table = Table("function", *algorithms, title=title, title_justify="left")
    for function in functions:
        row = []
        for algorithm in algorithms:
            spec = spec_of(function.parameters, algorithm)
            found = [
                best_of(Sweep(spec, seed, lambda at, _, of=function: of.value(at)).run(trials, parallel))  # type: ignore[misc]
                for seed in range(seeds)
            ]
            row.append(f"{statistics.median(found):.3g}")
        table.add_row(function.name, *row)
    return table


async def latencies(ended: int, parameters: int, calls: int, algorithms: Sequence[str]) -> Table:
    """What a suggestion takes in a thread beside the event loop."""
    space = [
        _choice(f"c{n}", "a", "b", "c", "d")
        if n % 4 == 0
        else _numbers(f"i{n}", 1, 64, of="Int")
        if n % 4 == 1
        else _numbers(f"x{n}", 1e-5, 1, "logUniform")
        for n in range(parameters)
    ]
    drawn = [suggestion(spec_of(space, "random"), 0, [], number) for number in range(1, ended + 4)]
    history = [
        PastTrial(number, TrialState.SUCCEEDED, at, sum(float(text) for name, text in at.items() if name[0] != "c"))
        if number <= ended
        else PastTrial(number, TrialState.RUNNING, at)
        for number, at in enumerate(drawn, 1)
    ]
    title = f"a suggestion after {ended} trials and beside 3, {parameters} parameters: {calls} calls"
    columns = "algorithm", "the first", "median", "its processor time", "worst", "longest stall of the loop"
    table = Table(*columns, title=title, title_justify="left")
    for algorithm in algorithms:
        spec, seconds, processor = spec_of(space, algorithm), list[float](), list[float]()
        stalls = LoopStalls(asyncio.get_running_loop())
        for number in range(calls + 1):
            begun, used = time.perf_counter(), time.process_time()
            with stalls.watching():
                await anyio.to_thread.run_sync(partial(suggestion, spec, 0, history, ended + 4 + number))
            seconds.append(time.perf_counter() - begun)
            processor.append(time.process_time() - used)
            if number == 0:
                stalls = LoopStalls(asyncio.get_running_loop())
        medians = statistics.median(seconds[1:]), statistics.median(processor[1:])
        shown = (seconds[0], *medians, max(seconds[1:]), stalls.longest_seconds)
        table.add_row(algorithm, *(f"{1000 * value:,.1f} ms" for value in shown))
    return table


def _curve(seed: int, at: Assignment, step: int) -> float:
    """A loss that falls to the value of the training, the faster the greater the learning rate, and noise."""
    rate = 0.02 + 0.03 * (math.log10(float(at["lr"])) + 5)
    noise = random.Random(f"{seed} {sorted(at.items())} {step}").gauss(0, 0.02)  # noqa: S311 - to be reproduced
    return _training(at) + 3 * math.exp(-rate * step) + noise


def steps_spent(seeds: int, trials: int, parallel: int) -> Table:
    """Steps and best values with and without pruning."""
    title = f"{trials} trials of {STEPS} steps, {parallel} at once: median of {seeds} seeds"
    table = Table("algorithm", "pruning", "steps", "of all", "best value", "ended", title=title, title_justify="left")
    for algorithm in ("random", "tpe"):
        for name, pruning in PRUNINGS.items():
            steps, best, ended = list[int](), list[float](), list[int]()
            for seed in range(seeds):
                sweep = Sweep(spec_of(TRAINING, algorithm, pruning), seed, partial(_curve, seed), STEPS)
                done = sweep.run(trials, parallel)
                steps.append(sweep.steps_made)
                best.append(best_of(done))
                ended.append(sum(trial.state is TrialState.SUCCEEDED for trial in done))
            made, share = statistics.median(steps), statistics.median(steps) / (trials * STEPS)
            found, left = f"{statistics.median(best):.3g}", f"{statistics.median(ended):.0f}"
            table.add_row(algorithm, name, f"{made:,.0f}", f"{share:.0%}", found, left)
    return table


def main(
    seeds: Annotated[int, typer.Option(help="Seeds of which the median is taken.")] = 20,
    trials: Annotated[int, typer.Option(help="Trials of a sweep.")] = 50,
    parallel: Annotated[int, typer.Option(help="Trials that run at once.")] = 4,
    calls: Annotated[int, typer.Option(help="Suggestions whose time is taken.")] = 20,
    functions: Annotated[int, typer.Option(help="How many of the functions, from the first.")] = len(FUNCTIONS),
    *,
    gp: Annotated[bool, typer.Option(help="With the Gaussian process, which takes minutes and needs torch.")] = False,
) -> None:
    """Compare the search algorithms of sweeps and the ways to prune, and print tables."""
    console = Console(width=WIDTH)
    machine = this_machine()
    console.print(f"{machine.cpus} x {machine.cpu}, Python {machine.python}", highlight=False)
    console.print(f"load average before the run: {machine.load_average}", highlight=False)
    algorithms = ALGORITHMS if gp else ALGORITHMS[:-1]
    console.print(anyio.run(latencies, 96, 20, calls, algorithms))
    console.print(values_found(FUNCTIONS[:functions], seeds, trials, parallel, algorithms=algorithms))
    console.print(steps_spent(seeds, trials, parallel))


if __name__ == "__main__":
    typer.run(main)
