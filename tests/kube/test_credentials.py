"""Sources of the Authorization header."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import anyio
import pytest
from structlog.testing import capture_logs

from trainer.kube.credentials import FixedCredentials, RenewableCredentials, TokenFile
from trainer.kube.errors import ConfigurationError

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from trainer.kube.testing import ManualClock


async def test_fixed_credentials_never_change() -> None:
    """A rejected fixed token has no replacement."""
    credentials = FixedCredentials("Bearer a")
    assert await credentials.authorization() == "Bearer a"
    assert await credentials.renew("Bearer a") is None


@pytest.fixture
def token(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text("one\n")
    return path


async def test_token_file_is_read_again_each_minute(token: Path, clock: ManualClock) -> None:
    """The kubelet rotates the file; white space around the token is not part of it."""
    credentials = TokenFile(token, clock=clock)
    assert await credentials.authorization() == "Bearer one"
    await anyio.Path(token).write_text("two")
    await clock.advance(59)
    assert await credentials.authorization() == "Bearer one"
    await clock.advance(1)
    assert await credentials.authorization() == "Bearer two"


async def test_rejected_token_is_read_again_at_once(token: Path, clock: ManualClock) -> None:
    """401 means that the file may hold a newer token; the same token is not tried twice."""
    credentials = TokenFile(token, clock=clock)
    await credentials.authorization()
    assert await credentials.renew("Bearer one") is None
    await anyio.Path(token).write_text("two")
    assert await credentials.renew("Bearer one") == "Bearer two"
    assert await credentials.renew("Bearer one") == "Bearer two"
    assert await credentials.authorization() == "Bearer two"


@pytest.mark.parametrize("content", [None, ""], ids=["gone", "empty"])
async def test_old_token_survives_a_bad_moment(token: Path, clock: ManualClock, content: str | None) -> None:
    """While the file cannot be read, the last token stays in use."""
    credentials = TokenFile(token, clock=clock)
    await credentials.authorization()
    if content is None:
        await anyio.Path(token).unlink()
    else:
        await anyio.Path(token).write_text(content)
    await clock.advance(60)
    with capture_logs() as logs:
        assert await credentials.authorization() == "Bearer one"
    assert len(logs) == (1 if content is None else 0)


@pytest.mark.parametrize("content", [None, " \n"], ids=["missing", "empty"])
async def test_token_file_that_never_worked_is_an_error(tmp_path: Path, content: str | None) -> None:
    """The message names the file."""
    path = tmp_path / "token"
    if content is not None:
        await anyio.Path(path).write_text(content)
    with pytest.raises(ConfigurationError, match=str(path)):
        await TokenFile(path).authorization()


class Plugin:
    """Counts its runs and gives a new token each time."""

    def __init__(self, clock: ManualClock, lifetime: float | None) -> None:
        self.runs = 0
        self._clock = clock
        self._lifetime = lifetime

    async def __call__(self) -> tuple[str | None, datetime | None]:
        self.runs += 1
        expiry = None if self._lifetime is None else self._clock.now() + timedelta(seconds=self._lifetime)
        return f"Bearer {self.runs}", expiry


async def test_plugin_runs_again_before_its_token_expires(clock: ManualClock) -> None:
    """A token is replaced a minute early, and not before."""
    plugin = Plugin(clock, lifetime=600)
    credentials = RenewableCredentials("Bearer 0", clock.now() + timedelta(seconds=100), plugin, clock=clock)
    await clock.advance(40)
    assert await credentials.authorization() == "Bearer 0"
    await clock.advance(1)
    assert await credentials.authorization() == "Bearer 1"
    assert await credentials.authorization() == "Bearer 1"
    assert plugin.runs == 1


async def test_requests_that_are_rejected_together_renew_once(clock: ManualClock) -> None:
    """The plugin runs once for all of them."""
    plugin = Plugin(clock, lifetime=None)
    credentials = RenewableCredentials("Bearer 0", None, plugin, clock=clock)
    renewed: list[str | None] = []

    async def reject() -> None:
        renewed.append(await credentials.renew("Bearer 0"))

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(reject)
    assert renewed == ["Bearer 1"] * 5
    assert plugin.runs == 1
