from __future__ import annotations

import math
import os
import random
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from benchmarks.child import child
from benchmarks.soak import Plan, spells
from benchmarks.soaking.faults import Faults
from benchmarks.soaking.observed import Sample
from benchmarks.soaking.observed import sample as observed_sample
from benchmarks.soaking.processes import Subject
from benchmarks.soaking.report import FIGURES, grown
from benchmarks.soaking.trend import HOUR, trend
from e2e.balancer import Balancer
from trainer.progress.curves import Curves
from trainer.progress.samples import MetricId

MIB = 2.0**20
RESTS = [0.1 + 0.9 * number / 8 for number in range(9)]
"""Moments of a run, as shares of it."""
STEPS = {figure.name: figure.step for figure in FIGURES}
RSS = STEPS["memory (RSS)"]
MEASURED = {
    "cluster": [261.4, 266.3, 267.8, 268.8, 268.2, 271.7, 272.3, 270.3],
    "manager": [112.6, 125.6, 127.0, 127.9, 125.1, 127.7, 127.6, 126.5],
    "recorder": [117.6, 120.0, 121.9, 121.9, 123.6, 123.2, 124.3, 123.5],
    "dashboard": [127.3, 145.3, 146.3, 147.3, 149.2, 149.8, 150.7, 150.0],
}
"""Resident MiB of processes without a leak, at rests of a run of an hour and its prolongation, 863 seconds apart."""
MANY = 200
"""Runs whose noise differs."""


def rests(
    value: Callable[[float], float], minutes: float = 60, shares: Sequence[float] = RESTS
) -> list[tuple[float, list[float]]]:
    """Values at each rest, by the hours that have passed."""
    moments = [share * minutes * 60 for share in shares]
    return [(moment, [value((moment + 2 * number) / HOUR) for number in range(5)]) for moment in moments]


def listed(values: Sequence[float], seconds: float) -> list[tuple[float, list[float]]]:
    """Rests with these values, so many seconds apart."""
    return [(number * seconds, [value]) for number, value in enumerate(values)]


def between(values: Sequence[float]) -> list[float]:
    """What there was at the nine rests of an hour, 480 seconds apart, of values 863 seconds apart."""
    places = [number * 480 / 863 for number in range(9)]
    return [values[int(at)] + (values[int(at) + 1] - values[int(at)]) * (at % 1) for at in places]


def wandering(seed: int, deviation: float) -> Callable[[float], float]:
    """Noise that is the same for all samples of a rest."""
    chance: dict[float, float] = {}
    source = random.Random(seed)
    return lambda hours: chance.setdefault(round(hours, 2), source.gauss(0, deviation))


def growing(level: float, leak: float, noise: Callable[[float], float]) -> Callable[[float], float]:
    """A value that grows by so much an hour."""
    return lambda hours: level + leak * hours + noise(hours)


def settling(hours: float) -> float:
    """Bytes that rise with the logarithm of the time, as those that the allocator keeps of peaks."""
    return (110 + 4 * math.log(hours * 10)) * MIB


@pytest.mark.parametrize(
    ("value", "step", "verdict"),
    [
        pytest.param(lambda _: 400_000, 100, "flat", id="flat"),
        pytest.param(lambda _: 0, 0, "flat", id="none"),
        pytest.param(lambda hours: 400_000 * (1 - hours / 2), 100, "flat", id="falls"),
        pytest.param(lambda hours: 400_000 * (1 + 0.012 * hours), 100, "leak", id="just-above-the-limit"),
        pytest.param(lambda hours: 400_000 * (1 + 0.009 * hours), 100, "flat", id="just-below-the-limit"),
        pytest.param(lambda hours: 400_000 + 9_000 * (hours > 0.3), 100, "flat", id="a-module-that-is-loaded-late"),
        pytest.param(lambda hours: min(4_000, 8_000 * hours), 50, "flat", id="a-cache-that-fills"),
        pytest.param(lambda hours: 4_000 + 2_000 * hours, 50, "leak", id="a-cache-without-bound"),
        pytest.param(lambda hours: 40 + 60 * hours // 1, 16, "leak", id="a-descriptor-each-minute"),
        pytest.param(lambda hours: 40 + 6 * hours // 1, 16, "flat", id="a-few-descriptors"),
        pytest.param(settling, RSS, "flat", id="settles"),
        pytest.param(lambda hours: settling(hours) + 12 * hours * MIB, RSS, "leak", id="settles-and-leaks"),
    ],
)
def test_trend(value: Callable[[float], float], step: float, verdict: str) -> None:
    """In an hour a leak is what goes on growing; what settles, fills or happens once is none."""
    assert trend(rests(value), step).verdict == verdict


@pytest.mark.parametrize(
    ("values", "seconds", "verdict"),
    [
        pytest.param([100, 105, 110, 110, 120], 810, "leak", id="one-flat-step-in-an-hour"),
        pytest.param([100, 104, 104, 112, 116], 135, "leak", id="one-flat-step-in-ten-minutes"),
        pytest.param([100, 106, 105, 106, 105], 810, "flat", id="one-step-in-an-hour"),
        pytest.param([100, 104, 104, 103, 105], 135, "cannot tell", id="noise-in-ten-minutes"),
        *(pytest.param(values, 863, "flat", id=name) for name, values in MEASURED.items()),
        *(pytest.param(between(values), 480, "flat", id=f"{name}-in-an-hour") for name, values in MEASURED.items()),
    ],
)
def test_resident_memory(values: Sequence[float], seconds: float, verdict: str) -> None:
    """Growth that pauses once is a leak; what a process without one has been measured to hold is none."""
    assert trend(listed([value * MIB for value in values], seconds), RSS).verdict == verdict


@pytest.mark.parametrize("leak", [pytest.param(15, id="15-mib-an-hour"), pytest.param(30, id="30-mib-an-hour")])
@pytest.mark.parametrize(("name", "values"), MEASURED.items())
def test_a_leak_in_resident_memory(name: str, values: Sequence[float], leak: float) -> None:
    """It is found beside what processes differ between rests."""
    grown = [(value + leak * 863 / HOUR * number) * MIB for number, value in enumerate(values)]
    assert trend(listed(grown, 863), RSS).verdict == "leak", name


@pytest.mark.parametrize("pause", range(8))
def test_a_leak_that_pauses(pause: int) -> None:
    """A leak that does not grow from one of the rests to the next is found all the same."""
    values = [(120 + 3 * (number - (number > pause))) * MIB for number in range(9)]
    assert trend(listed(values, 405), RSS).verdict == "leak"


def test_slope() -> None:
    """It is the share by which the figure grows in an hour; one rest that differs does not change it."""
    values = rests(lambda hours: 1000 + 100 * hours)
    found = trend(values)
    assert found.slope == pytest.approx(100 / 1055, rel=0.01)
    assert found.proved == pytest.approx(100 / 1055, rel=0.01)
    values[-2] = (values[-2][0], [5000.0] * 5)
    assert trend(values).slope == pytest.approx(found.slope, rel=0.01)


def test_ten_minutes_tell_less() -> None:
    """What an hour finds cannot be told from what settles in ten minutes, which say so."""
    short, long = (trend(rests(lambda hours: (90 + 15 * hours) * MIB, minutes), RSS) for minutes in (10, 60))
    assert (short.verdict, long.verdict) == ("cannot tell", "leak")
    assert short.smallest_leak > short.bound
    assert long.smallest_leak <= long.bound


@pytest.mark.parametrize("deviation", [0, 300, 4000])
def test_smallest_leak(deviation: float) -> None:
    """A run says which growth it can find: more is found beside the same noise, and less is not."""
    noise = wandering(3, deviation)
    values = rests(lambda hours: 400_000 + noise(hours))
    without = trend(values, 500)
    level = statistics.median(values[4][1])
    for share, is_leak in ((0.9, False), (1.1, True)):
        added = without.smallest_leak * share - without.slope
        more = [(at, [value + level * added * at / HOUR for value in some]) for at, some in values]
        assert (trend(more, 500).verdict == "leak") is is_leak


@pytest.mark.parametrize(
    ("level", "deviation", "step", "leak"),
    [
        pytest.param(150 * MIB, 0.8 * MIB, RSS, 20 * MIB, id="memory"),
        pytest.param(560_000, 2_500, STEPS["blocks of memory"], 40_000, id="blocks"),
        pytest.param(127_000, 200, STEPS["entries of caches"], 7_200, id="entries"),
        pytest.param(40, 13, STEPS["files"], 150, id="files"),
    ],
)
def test_noise(level: float, deviation: float, step: float, leak: float) -> None:
    """Of many figures that differ between rests as measured, few fail a run of an hour, and most that leak do."""
    noises = [wandering(seed, deviation) for seed in range(MANY)]
    flat = [trend(rests(growing(level, 0, noise)), step) for noise in noises]
    leaking = [trend(rests(growing(level, leak, noise)), step) for noise in noises]
    failing = [sum(each.verdict == "leak" or each.is_dubious for each in found) for found in (flat, leaking)]
    assert failing[0] <= 0.05 * MANY
    assert failing[1] >= 0.9 * MANY


def test_dubious() -> None:
    """Where growth is above the bound, and the rests differ too much to prove it, it is neither leak nor flat."""
    found = trend(listed([100_000, 101_000, 140_000, 110_000, 112_000, 118_000], 810), 500)
    assert (found.verdict, found.is_dubious) == ("cannot tell", True)
    assert not trend(listed([100_000, 130_000, 100_000, 130_000, 100_000], 810), 500).is_dubious


@pytest.mark.parametrize(
    ("blocks", "minutes", "further"),
    [
        pytest.param([500] * 9, 10, 0, id="flat"),
        pytest.param([10**6 + 20 * number for number in range(9)], 10, 0, id="below-the-limit"),
        pytest.param([10**6 + 5000 * number for number in range(9)] + [10**6], 10, 1, id="settles"),
        pytest.param([10**6 + 5000 * number for number in range(13)], 10, 4, id="leaks"),
        pytest.param([10**5 * (10 + number + number % 2 * 3) for number in range(9)], 10, 0, id="dubious"),
        pytest.param([10**5 * (10 + number + number % 2 * 3) for number in range(13)], 60, 4, id="dubious-in-an-hour"),
    ],
)
def test_spells(blocks: Sequence[int], minutes: float, further: int, tmp_path: Path) -> None:
    """A run goes on while a figure would fail it, but not without end."""
    command = [sys.executable, "-c", "import time; print('ready', flush=True); time.sleep(60)"]
    output, total, rests = StringIO(), 0.0, iter(blocks)
    plan = Plan(minutes * 60, rate=2, pages=2)
    with child("manager", command, tmp_path, ready="ready") as process:
        subject = Subject(process, tmp_path / "samples", [process.log])
        for spell in spells(plan, [subject], Console(file=output, width=120)):
            total += spell
            subject.rests.append([msgspec.structs.replace(sample(), moment=total, blocks=next(rests))])
    assert total == pytest.approx(plan.seconds + further * plan.spells[-1])
    assert next(rests, None) is None
    text = "one more rest, since there may be a leak: blocks of memory of the manager"
    assert output.getvalue().count(text) == further


def test_too_few_rests() -> None:
    """Chance cannot be told from growth with four."""
    with pytest.raises(ValueError, match="4 rests: a trend takes 5"):
        trend(rests(float)[:4])


def sample(**types: int) -> Sample:
    return Sample(moment=0, rss=0, malloc=0, blocks=0, objects=0, tasks=0, files=0, threads=0, types=types)


def test_grown() -> None:
    """The types that have grown most are named, those that have not are left out."""
    first, last = sample(Leaky=100, Steady=500, Fewer=300), sample(Leaky=900, Steady=500, Fewer=200)
    assert grown([first], [last]) == ["Leaky +800"]


def test_sample() -> None:
    """A process knows which attribute of which class holds much, also where two objects share it."""
    curves, other = Curves(), Curves()
    for number in range(100):
        curves.add(MetricId(is_eval=False, name=f"m{number}"), 0.0, 0, 1.0)
    other.by_metric = curves.by_metric
    found = observed_sample()
    assert found.entries["trainer.progress.curves.Curves.by_metric"] == 100
    assert min(found.rss, found.malloc, found.blocks, found.objects, found.files, found.threads) > 0


def test_sample_of_caches(tmp_path: Path) -> None:
    """Entries of caches of functions count, of those without a bound all, and of those with one as many as they may."""
    (tmp_path / "trainer_soaked.py").write_text("""
import functools, gc, os, signal

@functools.cache
def unbounded(number): ...

@functools.lru_cache
def bounded(number): ...

def main():
    gc.freeze()
    for number in range(50):
        unbounded(number)
        bounded(number)
    os.kill(os.getpid(), signal.SIGUSR1)
""")
    file = tmp_path / "samples"
    command = [sys.executable, "-m", "benchmarks.soaking.observed", str(file), "20", "trainer_soaked"]
    path = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[2])])
    subprocess.run(command, check=True, env=os.environ | {"PYTHONPATH": path})
    entries = msgspec.json.decode(file.read_bytes(), type=Sample).entries
    found = {name: many for name, many in entries.items() if name.startswith("trainer_soaked")}
    assert found == {"trainer_soaked.unbounded": 50, "trainer_soaked.bounded": 20}


async def test_a_process_that_ends(tmp_path: Path) -> None:
    """The error has its last words: where the log lies is gone with the run."""
    command = [sys.executable, "-c", "import time; print('ready', flush=True); time.sleep(60)"]
    with child("manager", command, tmp_path, ready="ready") as process:
        process.kill()
        subject = Subject(process, tmp_path / "samples", [process.log])
        with pytest.raises(RuntimeError, match="the manager has ended:\nready"):
            await subject.take_sample()


BEGAN = datetime(2026, 1, 1, 12, tzinfo=UTC)


def line(level: str, second: float, event: str = "lost the connection", **fields: str) -> str:
    moment = (BEGAN + timedelta(seconds=second)).isoformat().replace("+00:00", "Z")
    more = "".join(f', "{name}": "{value}"' for name, value in fields.items())
    return f'{{"event": "{event}", "level": "{level}", "timestamp": "{moment}"{more}}}'


@pytest.mark.parametrize(
    ("log", "complaints"),
    [
        pytest.param([line("info", 100)], {}, id="information"),
        pytest.param([line("warning", 5)], {}, id="during-an-outage"),
        pytest.param([line("warning", 100), line("error", -1)], 2, id="at-another-time"),
        pytest.param([line("warning", 5, exception="Traceback (most recent call last)")], 1, id="with-traceback"),
        pytest.param(
            ["Traceback (most recent call last):", '  File "a.py", line 1', "KeyError: 'a'"], 2, id="traceback"
        ),
        pytest.param(["cluster ready: https://127.0.0.1:1", "{broken", ""], {}, id="other-lines"),
        pytest.param([line("warning", 100, logger="trainer.kube.manager.loop_lag")], {}, id="busy-machine"),
        pytest.param([line("warning", 100, "resource version is too old, listing again")], {}, id="short-history"),
    ],
)
def test_complaints(log: Sequence[str], complaints: dict[str, int] | int) -> None:
    """What a process says is a complaint unless an outage explains it, or the machine is busy."""
    with Balancer([1]) as balancer:
        faults = Faults(balancer, windows=[(BEGAN, BEGAN + timedelta(seconds=30))])
        found = faults.complaints(log)
    assert (found if isinstance(complaints, dict) else found.total()) == complaints


def test_pages_that_fail() -> None:
    """An outage explains what has failed during it, and nothing else."""
    with Balancer([1]) as balancer:
        faults = Faults(balancer, windows=[(BEGAN, BEGAN + timedelta(seconds=30))])
    failures = [(BEGAN + timedelta(seconds=second), "history: 503") for second in (1, 29, 31)]
    assert faults.unexplained(failures) == {"history: 503": 1}
