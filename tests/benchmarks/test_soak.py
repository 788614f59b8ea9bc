from __future__ import annotations

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
from benchmarks.soaking.report import grown
from benchmarks.soaking.trend import trend
from e2e.balancer import Balancer
from trainer.progress.curves import Curves
from trainer.progress.samples import MetricId

MIB = 2.0**20
RESTS = (60.0, 195.0, 330.0, 465.0, 600.0)
"""Moments of a run of ten minutes."""


def rests(value: Callable[[float], float], times: float = 1.0) -> list[tuple[float, list[float]]]:
    """Five values at each rest, by the seconds that have passed; a run that is so many times as long."""
    return [(moment * times, [value(moment * times + 2 * number) for number in range(5)]) for moment in RESTS]


def noise(seed: int, deviation: float) -> Callable[[float], float]:
    chance = random.Random(seed)
    return lambda _: chance.gauss(0, deviation)


def growing(bytes_a_second: float, deviation: float = 0.1 * MIB) -> Callable[[float], float]:
    wandering = noise(1, deviation)
    return lambda second: 90 * MIB + bytes_a_second * second + wandering(second)


@pytest.mark.parametrize(
    ("value", "resolution", "is_leak"),
    [
        pytest.param(growing(8 * 1024), MIB, True, id="4-kib-for-each-training"),
        pytest.param(growing(0), MIB, False, id="noise"),
        pytest.param(growing(1024, 0), MIB, False, id="less-than-the-resolution"),
        pytest.param(lambda second: 400_000 + 2 * second, 100, True, id="a-block-for-each-training"),
        pytest.param(lambda second: 400_000 * (1 + 0.012 * second / 3600), 100, True, id="just-above-the-limit"),
        pytest.param(lambda second: 400_000 * (1 + 0.009 * second / 3600), 100, False, id="just-below-the-limit"),
        pytest.param(lambda _: 400_000, 100, False, id="flat"),
        pytest.param(lambda second: 400_000 - second, 100, False, id="falls"),
        pytest.param(lambda second: 400_000 + 9_000 * (second > 300), 100, False, id="a-module-that-is-loaded-late"),
        pytest.param(lambda second: 400_000 + 9_000 * (second % 10 < 2), 100, False, id="a-peak-in-each-rest"),
        pytest.param(lambda second: 40 + second // 60, 1, True, id="a-descriptor-each-minute"),
        pytest.param(lambda second: 40 + second // 300, 1, False, id="one-descriptor-more"),
        pytest.param(lambda _: 0, 1, False, id="none"),
    ],
)
def test_trend(value: Callable[[float], float], resolution: float, *, is_leak: bool) -> None:
    """A leak is what grows from each rest to the next; noise, peaks and single steps are none."""
    assert trend(rests(value), resolution).is_leak is is_leak


def test_slope() -> None:
    """It is the share by which the figure grows in an hour."""
    found = trend(rests(lambda second: 1000 + second * 100 / 3600))
    assert found.slope == pytest.approx(0.1, rel=0.02)
    assert found.least == pytest.approx(0.1, rel=0.1)


def test_an_hour_tells_more() -> None:
    """What ten minutes cannot tell from a step of the figure is found in an hour."""
    value = growing(1024)
    assert not trend(rests(value), MIB).is_leak
    assert trend(rests(value, 6), MIB).is_leak


@pytest.mark.parametrize("deviation", [10, 300])
def test_smallest_leak(deviation: float) -> None:
    """A run says which growth it can find: more is found beside the same noise, and less is not."""
    wandering = noise(3, deviation)
    values = rests(lambda _: 400_000 + wandering(0))
    without = trend(values, 100)
    level = statistics.median(values[0][1])
    for share, is_leak in ((0.9, False), (1.1, True)):
        added = without.smallest_leak * share - without.slope
        more = [(at, [value + level * added * (at - RESTS[0]) / 3600 for value in some]) for at, some in values]
        assert trend(more, 100).is_leak is is_leak


def test_noise_is_rarely_a_leak() -> None:
    """Of 500 figures that differ between rests, few are taken for growing: four rises in a row are rare."""
    chance = random.Random(5)
    found = [trend([(at, [400_000 + chance.gauss(0, 500)] * 5) for at in RESTS]) for _ in range(500)]
    assert sum(each.is_leak for each in found) <= 5


@pytest.mark.parametrize(
    ("blocks", "seconds"),
    [
        pytest.param([500] * 5, 600, id="flat"),
        pytest.param([10**6, 10**6 + 200, 10**6 + 400, 10**6 + 600, 10**6 + 800], 600, id="below-the-limit"),
        pytest.param([500, 600, 700, 800, 900, 900], 735, id="settles"),
        pytest.param([500, 1000, 1500, 2000, 2500, 3000, 3500, 4000, 4500], 1140, id="leaks"),
    ],
)
def test_spells(blocks: Sequence[int], seconds: float, tmp_path: Path) -> None:
    """A run goes on while a figure has grown at each rest, but not without end."""
    command = [sys.executable, "-c", "import time; print('ready', flush=True); time.sleep(60)"]
    output, total, rests = StringIO(), 0.0, iter(blocks)
    with child("manager", command, tmp_path, ready="ready") as process:
        subject = Subject(process, tmp_path / "samples", [process.log])
        for spell in spells(Plan(600, rate=2, pages=2), [subject], Console(file=output, width=120)):
            total += spell
            subject.rests.append([msgspec.structs.replace(sample(), moment=total, blocks=next(rests))])
    assert total == pytest.approx(seconds)
    assert next(rests, None) is None
    assert output.getvalue().count("one more rest, since it has grown at each: blocks of memory of the manager") == (
        len(blocks) - 5
    )


def test_too_few_rests() -> None:
    """A step cannot be told from growth with two."""
    with pytest.raises(ValueError, match="2 rests: a trend takes 3"):
        trend(rests(float)[:2])


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
