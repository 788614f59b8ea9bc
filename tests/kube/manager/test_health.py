"""Health checks."""

from __future__ import annotations

import anyio
import pytest
from structlog.testing import capture_logs

from tests.kube.conftest import Background
from trainer.kube.manager.health import HealthChecks
from trainer_kube_testing import ManualClock


async def pass_() -> None:
    """Nothing is wrong."""


async def fail() -> None:
    raise OSError("the database is away")


@pytest.fixture
def checks(clock: ManualClock) -> HealthChecks:
    return HealthChecks("healthz", clock=clock)


async def test_changes_are_logged_with_the_reason(checks: HealthChecks) -> None:
    """The log tells why, once when it begins and once when it is over."""
    is_failing = True

    async def check() -> None:
        if is_failing:
            await fail()

    checks.add("db", check)
    with capture_logs() as logs:
        for is_failing in (True, True, False, False):  # noqa: B007 - read by the check
            await checks.failures()
    assert [(entry["event"], entry.get("reason")) for entry in logs] == [
        ("health check failed", "the database is away"),
        ("health check passes again", None),
    ]


async def test_check_that_hangs_fails(checks: HealthChecks, clock: ManualClock, background: Background) -> None:
    """A check has five seconds, and does not keep others from being heard."""
    checks.add("db", anyio.sleep_forever)
    running = background(checks.failures())
    await clock.advance(4.9)
    assert not running.done()
    await clock.advance(0.2)
    assert await running == {"db": "no answer within 5 s"}


@pytest.mark.parametrize("name", ["ping", "", "a/b"])
def test_names_must_be_usable(checks: HealthChecks, name: str) -> None:
    """They become part of a path, and are unique."""
    with pytest.raises(ValueError, match="check"):
        checks.add(name, pass_)
