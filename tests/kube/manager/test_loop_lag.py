"""The watch over the event loop, on a real one that really stands still for some hundredths of a second."""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable

import anyio
import pytest
import structlog
from structlog.testing import capture_logs

from tests.kube.conftest import Background
from trainer.kube.errors import KubeError
from trainer.kube.manager import loop_lag
from trainer.kube.manager.loop_lag import LoopLagWatch
from trainer.kube.metrics import Metrics


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds are much to stand still."""
    for name, seconds in (("INTERVAL", 0.01), ("WARN_AFTER", 0.05), ("UNHEALTHY_AFTER", 0.1), ("UNHEALTHY_FOR", 60)):
        monkeypatch.setattr(loop_lag, name, seconds)


def block_the_loop(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        """Computes something."""


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


def value(metrics: Metrics, name: str) -> float:
    return metrics.registry.get_sample_value(f"trainer_kube_event_loop_{name}") or 0


async def until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(10):
        while not condition():  # noqa: ASYNC110 - what another thread does
            await anyio.sleep(0.005)


async def test_lag_is_measured(metrics: Metrics, background: Background) -> None:
    """Each measurement is an observation; a loop that turns shows next to none."""
    background(LoopLagWatch(metrics).run())
    await until(lambda: value(metrics, "lag_seconds_count") >= 5)
    before = value(metrics, "lag_seconds_sum")
    block_the_loop(0.2)
    await until(lambda: value(metrics, "lag_seconds_sum") > before + 0.15)


async def test_standstill_is_reported_with_its_place(metrics: Metrics, background: Background) -> None:
    """While the loop hangs the log names function, line and task; afterwards it tells how long it took."""
    background(LoopLagWatch(metrics).run())
    await until(lambda: value(metrics, "lag_seconds_count") >= 1)
    standstills = 0
    with capture_logs() as logs:
        # On a machine that is too busy to run the watch itself, it says that the process stood still.
        while not logs or (logs[0]["event"] == "process stood still" and standstills < 10):
            logs.clear()
            standstills += 1
            block_the_loop(0.4)
            assert len(logs) == 1
            await until(lambda: len(logs) == 2)
    hang, end = logs
    assert hang["event"].startswith("event loop stands still")
    assert "test_loop_lag.py" in hang["where"]
    assert hang["where"].endswith(" block_the_loop")
    assert any("test_standstill_is_reported" in frame for frame in hang["frames"])
    assert "block_the_loop" in str(structlog.dev.ConsoleRenderer(colors=False)(None, "warning", dict(hang)))
    assert hang["task"]
    assert end["event"] == "event loop turns again"
    assert end["stood_still"] >= 0.35
    assert value(metrics, "stalls_total") == standstills


async def test_long_standstill_fails_the_health_check(background: Background) -> None:
    """The check fails for some time after the loop turns again, so that a probe can see it."""
    watch = LoopLagWatch(Metrics())
    background(watch.run())
    await anyio.sleep(0.02)
    await watch.check()
    block_the_loop(0.25)
    await anyio.sleep(0.02)
    with pytest.raises(KubeError, match=r"stood still for 0\.[23]\d* s"):
        await watch.check()


async def test_no_thread_is_left() -> None:
    """The watching thread ends with the task."""

    def watching() -> bool:
        running = list(sys._current_frames().values())
        return any(frame.f_code.co_name == "_watch" for top in running for frame, _ in traceback.walk_stack(top))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(LoopLagWatch(Metrics()).run)
        await until(watching)
        tasks.cancel_scope.cancel()
    await until(lambda: not watching())
