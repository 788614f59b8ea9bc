from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from benchmarks.child import child
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
MINUTES = 9
"""Of a run of ten, those that count."""
PERIOD = 5.0


def samples(value: Callable[[float], float], minutes: float = MINUTES) -> list[tuple[float, float]]:
    """A value in each period, by the seconds that have passed."""
    return [(number * PERIOD, value(number * PERIOD)) for number in range(int(minutes * 60 / PERIOD))]


def wandering(seed: int, deviation: float, memory: float = 0.7) -> Callable[[float], float]:
    """Noise of which each value resembles the one before."""
    chance, last = random.Random(seed), 0.0

    def noise(_: float) -> float:
        nonlocal last
        last = memory * last + chance.gauss(0, deviation * math.sqrt(1 - memory**2))
        return last

    return noise


def growing(bytes_a_second: float) -> Callable[[float], float]:
    noise = wandering(1, 0.2 * MIB)
    return lambda second: 90 * MIB + bytes_a_second * second + noise(second)


def falling(second: float) -> float:
    """Full after two minutes, and then less."""
    return 90 * MIB + min(second, 120) * 1e4 - max(second - 120, 0) * 1e4


def with_peaks(second: float) -> float:
    return 90 * MIB + (20 * MIB if second % 60 == 0 else 0)


@pytest.mark.parametrize(
    ("value", "resolution", "is_leak"),
    [
        pytest.param(growing(8 * 1024), MIB, True, id="4-kib-for-each-training"),
        pytest.param(growing(0), MIB, False, id="noise"),
        pytest.param(growing(1024), MIB, False, id="less-than-the-resolution"),
        pytest.param(lambda second: 400_000 + 2 * second, 100, True, id="a-block-for-each-training"),
        pytest.param(lambda _: 400_000, 100, False, id="flat"),
        pytest.param(falling, MIB, False, id="falls"),
        pytest.param(with_peaks, MIB, False, id="peaks"),
        pytest.param(lambda second: 40 + second // 60, 1, True, id="a-descriptor-each-minute"),
        pytest.param(lambda second: 40 + second // 300, 1, False, id="one-descriptor-more"),
        pytest.param(lambda second: 40 + second % 60 // 6, 1, False, id="a-cycle-of-a-minute"),
        pytest.param(lambda _: 0, 1, False, id="none"),
    ],
)
def test_trend(value: Callable[[float], float], resolution: float, *, is_leak: bool) -> None:
    """A leak is found beside noise, and noise, peaks and single steps are none."""
    assert trend(samples(value), resolution).is_leak is is_leak


def test_slope() -> None:
    """It is the share by which the figure grows in an hour."""
    found = trend(samples(lambda second: 1000 + second * 100 / 3600))
    assert found.slope == pytest.approx(0.1, rel=0.02)
    assert found.lower == pytest.approx(found.slope)


def test_an_hour_tells_more() -> None:
    """What ten minutes cannot tell from noise is found in an hour."""
    value = growing(1024)
    assert not trend(samples(value), MIB).is_leak
    assert trend(samples(value, 54), MIB).is_leak


@pytest.mark.parametrize("deviation", [100, 3000])
def test_smallest_leak(deviation: float) -> None:
    """A run says which growth it can find: more is found beside the same noise, and less is not."""
    noise = wandering(3, deviation)
    values = [(at, 400_000 + noise(at)) for at, _ in samples(float)]
    without = trend(values, 100)
    for share, is_leak in ((0.9, False), (1.1, True)):
        missing = without.smallest_leak * share - without.slope
        growing = [(at, value + 400_000 * missing * at / 3600) for at, value in values]
        assert trend(growing, 100).is_leak is is_leak


def test_noise_is_rarely_a_leak() -> None:
    """Of 200 figures that wander, at most two are taken for growing, whatever the resolution."""
    noises = [wandering(seed, 1000) for seed in range(200)]
    found = [trend([(at, 400_000 + noise(at)) for at, _ in samples(float)]) for noise in noises]
    assert sum(each.is_leak for each in found) <= 2


def test_too_few_samples() -> None:
    """A bound needs a sample in each part of the time."""
    with pytest.raises(ValueError, match="5 samples: each of 12 equal parts of the time needs one"):
        trend([(float(number), 1.0) for number in range(5)])


def sample(**types: int) -> Sample:
    return Sample(moment=0, rss=0, blocks=0, objects=0, tasks=0, files=0, threads=0, types=types)


def test_grown() -> None:
    """The types that have grown most are named, those that have not are left out."""
    assert grown([sample(Leaky=100, Steady=500, Fewer=300), sample(Leaky=900, Steady=500, Fewer=200)]) == ["Leaky +800"]


def test_sample() -> None:
    """A process knows which attribute of which class holds much, also where two objects share it."""
    curves, other = Curves(), Curves()
    for number in range(100):
        curves.add(MetricId(is_eval=False, name=f"m{number}"), 0.0, 0, 1.0)
    other.by_metric = curves.by_metric
    found = observed_sample()
    assert found.entries["trainer.progress.curves.Curves.by_metric"] == 100
    assert min(found.rss, found.blocks, found.objects, found.files, found.threads) > 0


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
