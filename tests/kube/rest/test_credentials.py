"""Sources of identities."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import anyio
import pytest
from structlog.testing import capture_logs

from trainer.kube.errors import ConfigurationError
from trainer.kube.rest.credentials import Identity, RenewableCredentials, TokenFile
from trainer.kube.rest.tls import ClientCertificate
from trainer_kube_testing import ManualClock


def test_secrets_are_not_shown() -> None:
    """An identity that ends up in a log or a traceback gives nothing away."""
    identity = Identity("Bearer secret", ClientCertificate(b"chain", b"secret"))
    assert "secret" not in repr(identity)
    assert "secret" not in repr(ClientCertificate(b"chain", b"secret"))


@pytest.fixture
def token(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text("one\n")
    return path


async def test_token_file_is_read_again_ten_seconds_before_each_minute(token: Path, clock: ManualClock) -> None:
    """The kubelet rotates the file; white space around the token is not part of it."""
    credentials = TokenFile(token, clock=clock)
    assert await credentials.current() == Identity("Bearer one")
    await anyio.Path(token).write_text("two")
    await clock.advance(49)
    assert await credentials.current() == Identity("Bearer one")
    await clock.advance(2)
    assert await credentials.current() == Identity("Bearer two")


async def test_rejected_token_is_read_again_at_once(token: Path, clock: ManualClock) -> None:
    """401 means that the file may hold a newer token; the same token is not tried twice."""
    one, two = Identity("Bearer one"), Identity("Bearer two")
    credentials = TokenFile(token, clock=clock)
    await credentials.current()
    assert await credentials.renew(one) is None
    await anyio.Path(token).write_text("two")
    assert await credentials.renew(one) == two
    await anyio.Path(token).write_text("three")
    assert await credentials.renew(one) == two
    assert await credentials.current() == two


@pytest.mark.parametrize(
    ("content", "complaints"),
    [pytest.param(None, 1, id="gone"), pytest.param(b"", 0, id="empty"), pytest.param(b"\xff", 1, id="not-text")],
)
async def test_old_token_survives_a_bad_moment(
    token: Path, clock: ManualClock, content: bytes | None, complaints: int
) -> None:
    """While the file cannot be read, the last token stays in use."""
    credentials = TokenFile(token, clock=clock)
    await credentials.current()
    if content is None:
        await anyio.Path(token).unlink()
    else:
        await anyio.Path(token).write_bytes(content)
    await clock.advance(60)
    with capture_logs() as logs:
        assert await credentials.current() == Identity("Bearer one")
    assert len(logs) == complaints


@pytest.mark.parametrize("content", [None, " \n"], ids=["missing", "empty"])
async def test_token_file_that_never_worked_is_an_error(tmp_path: Path, content: str | None) -> None:
    """The message names the file."""
    path = tmp_path / "token"
    if content is not None:
        await anyio.Path(path).write_text(content)
    with pytest.raises(ConfigurationError, match=str(path)):
        await TokenFile(path).current()


class Plugin:
    """Counts its runs and gives a new token each time, with this many seconds to live."""

    def __init__(self, clock: ManualClock, lifetime: float | None = None) -> None:
        self.runs = 0
        self.fails = False
        self.lifetime = lifetime
        self._clock = clock

    async def __call__(self) -> Identity:
        self.runs += 1
        if self.fails:
            raise ConfigurationError("the plugin is broken")
        expiry = None if self.lifetime is None else self._clock.now() + timedelta(seconds=self.lifetime)
        return Identity(f"Bearer {self.runs}", None, expiry)


def renewable(plugin: Plugin, clock: ManualClock) -> RenewableCredentials:
    return RenewableCredentials(plugin, description="those of a plugin", clock=clock)


async def test_plugin_runs_again_before_its_token_expires(clock: ManualClock) -> None:
    """A token is replaced ten seconds early, and not before."""
    plugin = Plugin(clock, lifetime=100)
    credentials = renewable(plugin, clock)
    assert await credentials.current() == Identity("Bearer 1")
    await clock.advance(90)
    assert await credentials.current() == Identity("Bearer 1")
    await clock.advance(1)
    assert await credentials.current() == Identity("Bearer 2")
    assert await credentials.current() == Identity("Bearer 2")


async def test_plugin_with_short_tokens_does_not_run_for_each_request(clock: ManualClock) -> None:
    """A plugin that gives out what it has cached is asked again after ten seconds, and when that has expired."""
    plugin = Plugin(clock, lifetime=5)
    credentials = renewable(plugin, clock)
    for _ in range(3):
        assert await credentials.current() == Identity("Bearer 1")
    await clock.advance(5)
    assert await credentials.current() == Identity("Bearer 2")


async def test_valid_token_survives_a_plugin_that_fails(clock: ManualClock) -> None:
    """Only when the old token has expired, too, the failure is an error."""
    plugin = Plugin(clock, lifetime=100)
    credentials = renewable(plugin, clock)
    await credentials.current()
    plugin.fails = True
    await clock.advance(95)
    with capture_logs() as logs:
        assert await credentials.current() == Identity("Bearer 1")
        assert await credentials.current() == Identity("Bearer 1")
    assert [entry["log_level"] for entry in logs] == ["warning"]
    await clock.advance(5)
    with pytest.raises(ConfigurationError, match="the plugin is broken"):
        await credentials.current()


async def test_plugin_that_hangs_is_reported(clock: ManualClock) -> None:
    """Nobody has to guess why nothing happens; a line comes every fifteen seconds, and the last one with the end."""
    answer = anyio.Event()

    async def load() -> Identity:
        await answer.wait()
        return Identity("Bearer late")

    credentials = RenewableCredentials(load, description="those of a plugin", clock=clock)
    with capture_logs() as logs:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(credentials.current)
            await clock.advance(14)
            assert logs == []
            await clock.advance(20)
            answer.set()
        await clock.advance(60)
    assert [entry["event"] for entry in logs] == ["requests wait for credentials"] * 2
    assert logs[0]["credentials"] == "those of a plugin"
    assert await credentials.current() == Identity("Bearer late")


async def test_requests_that_are_rejected_together_renew_once(clock: ManualClock) -> None:
    """The plugin runs once for all of them."""
    plugin = Plugin(clock)
    credentials = renewable(plugin, clock)
    first = await credentials.current()
    renewed: list[Identity | None] = []

    async def reject() -> None:
        renewed.append(await credentials.renew(first))

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(reject)
    assert renewed == [Identity("Bearer 2")] * 5
    assert plugin.runs == 2


async def test_plugin_that_has_nothing_new_is_not_tried_twice(clock: ManualClock) -> None:
    """The same identity with another expiry is no reason to repeat a request."""

    async def same() -> Identity:
        return Identity("Bearer a", None, clock.now())

    credentials = RenewableCredentials(same, description="those of a plugin", clock=clock)
    assert await credentials.renew(await credentials.current()) is None


@pytest.mark.parametrize("fails", [pytest.param(False, id="nothing-new"), pytest.param(True, id="failure")])
async def test_requests_that_fail_together_share_the_answer(clock: ManualClock, fails: bool) -> None:
    """A plugin that does not help, and perhaps takes its time for that, runs once for all that wait; then again."""
    runs = 0

    async def load() -> Identity:
        nonlocal runs
        runs += 1
        await clock.sleep(5)
        if fails and runs > 1:
            raise ConfigurationError("log in")
        return Identity("Bearer a")

    credentials = RenewableCredentials(load, description="those of a plugin", clock=clock)
    answers: list[Identity | str | None] = []

    async def reject() -> None:
        try:
            answers.append(await credentials.renew(Identity("Bearer a")))
        except ConfigurationError as error:
            answers.append(str(error))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(credentials.current)
        await clock.advance(5)
        for _ in range(5):
            tasks.start_soon(reject)
        await clock.advance(30)
    assert runs == 2
    assert answers == ["log in" if fails else None] * 5
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reject)
        await clock.advance(5)
    assert runs == 3
