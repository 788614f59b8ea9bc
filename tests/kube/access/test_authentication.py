"""Whose token it is."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import anyio
import pytest

from tests.kube.access.reviewers import PROMETHEUS, TOKEN, Reviewer
from trainer.kube.access.authentication import Authenticator, AuthenticatorOptions, User
from trainer.kube.errors import ApiError, ForbiddenError, KubeError, TransportError, UnauthorizedError

if TYPE_CHECKING:
    from tests.kube.conftest import Background
    from trainer.kube.client import ObjectRequest
    from trainer.kube.objects import Object
    from trainer.kube.testing import ManualClock

USER = User(
    "system:serviceaccount:monitoring:prometheus",
    ("system:serviceaccounts", "system:authenticated"),
    "4711",
    {"authentication.kubernetes.io/pod-name": ("prometheus-0",)},
)


async def test_owner_of_a_token(clock: ManualClock) -> None:
    """All that the API server tells is kept, since permissions may depend on it."""
    client = Reviewer()
    authenticator = Authenticator(client, clock=clock)
    assert await authenticator.authenticate(TOKEN) == USER
    assert client.asked("TokenReview") == [{"token": TOKEN}]
    assert await authenticator.authenticate("another") is None


@pytest.mark.parametrize(
    ("users", "audiences"),
    [
        pytest.param({TOKEN: {"username": ""}}, (), id="without-a-name"),
        pytest.param({TOKEN: PROMETHEUS}, ("somebody-else",), id="for-somebody-else"),
        pytest.param({}, (), id="unknown"),
    ],
)
async def test_nobody(users: dict[str, Object], audiences: tuple[str, ...], clock: ManualClock) -> None:
    """What is not clearly somebody's token for us is nobody's."""
    options = AuthenticatorOptions(audiences=audiences)
    assert await Authenticator(Reviewer(users), clock=clock, options=options).authenticate(TOKEN) is None


async def test_answer_without_audiences_is_for_nobody(clock: ManualClock) -> None:
    """An authenticator that knows nothing of audiences has not checked them."""

    class Careless(Reviewer):
        def _token(self, spec: Object) -> Object:
            return {"authenticated": True, "user": PROMETHEUS}

    options = AuthenticatorOptions(audiences=("metrics",))
    assert await Authenticator(Careless(), clock=clock, options=options).authenticate(TOKEN) is None


@pytest.mark.parametrize(
    ("token", "seconds"), [pytest.param(TOKEN, 60, id="valid"), pytest.param("made-up", 10, id="wrong")]
)
async def test_answers_are_known_for_a_while(token: str, seconds: float, clock: ManualClock) -> None:
    """A valid token for a minute, a wrong one for ten seconds."""
    client = Reviewer()
    authenticator = Authenticator(client, clock=clock)
    for _ in range(3):
        await authenticator.authenticate(token)
    await clock.advance(seconds - 0.1)
    await authenticator.authenticate(token)
    assert len(client.reviews) == 1
    client.users = {"made-up": PROMETHEUS}
    await clock.advance(0.1)
    assert (await authenticator.authenticate(token) is None) == (token == TOKEN)
    assert len(client.reviews) == 2


async def test_who_asks_the_same_waits_for_one_answer(clock: ManualClock) -> None:
    """A hundred scrapes at once are one review."""
    client = Reviewer()
    authenticator = Authenticator(client, clock=clock)
    assert await asyncio.gather(*(authenticator.authenticate(TOKEN) for _ in range(100))) == [USER] * 100
    assert len(client.reviews) == 1


async def test_number_of_known_tokens_is_bounded(clock: ManualClock) -> None:
    """Those that were asked about the longest ago are forgotten."""
    client = Reviewer()
    authenticator = Authenticator(client, clock=clock, options=AuthenticatorOptions(capacity=2))
    for token in ("a", "b", "a", "c", "a"):
        await authenticator.authenticate(token)
    assert [spec["token"] for spec in client.asked("TokenReview")] == ["a", "b", "c"]
    await authenticator.authenticate("b")
    assert len(client.reviews) == 4


class Hanging(Reviewer):
    """Answers when the test says so, or not at all."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = anyio.Event()
        self.asking = 0

    async def send(self, request: ObjectRequest) -> Object | None:
        self.asking += 1
        try:
            await self.go_on.wait()
        finally:
            self.asking -= 1
        return await super().send(request)


async def test_number_of_questions_is_bounded(clock: ManualClock, background: Background) -> None:
    """Who sends many made-up tokens does not flood the API server."""
    client = Hanging()
    authenticator = Authenticator(client, clock=clock, options=AuthenticatorOptions(concurrency=3))
    answers = [background(authenticator.authenticate(f"made-up {number}")) for number in range(20)]
    await clock.advance(0)
    assert client.asking == 3
    client.go_on.set()
    assert await asyncio.gather(*answers) == [None] * 20


async def test_api_server_that_does_not_answer(clock: ManualClock, background: Background) -> None:
    """It is given ten seconds; the next one asks anew."""
    client = Hanging()
    authenticator = Authenticator(client, clock=clock)

    async def ask() -> str:
        with pytest.raises(TransportError) as raised:
            await authenticator.authenticate(TOKEN)
        return str(raised.value)

    asking = background(ask())
    await clock.advance(10)
    assert await asking == "the API server did not answer a TokenReview within 10 s"
    client.go_on.set()
    assert await authenticator.authenticate(TOKEN) == USER


async def test_caller_that_goes_away_takes_nobody_along(clock: ManualClock, background: Background) -> None:
    """Another one who waits for the same answer gets it."""
    client = Hanging()
    authenticator = Authenticator(client, clock=clock)
    first, second = (background(authenticator.authenticate(TOKEN)) for _ in range(2))
    await clock.advance(0)
    first.cancel()
    await clock.advance(0)
    client.go_on.set()
    assert await second == USER


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        pytest.param(
            ForbiddenError(403, f"may not create tokenreviews: {TOKEN}"),
            "the API server does not answer a TokenReview (403): may not create tokenreviews: [redacted]",
            id="not-allowed",
        ),
        pytest.param(UnauthorizedError(401, "who are you"), "a TokenReview (401): who are you", id="own-credentials"),
        pytest.param(ApiError(500, "etcd"), "a TokenReview (500): etcd", id="broken"),
        pytest.param(TransportError("refused"), "does not answer a TokenReview: refused", id="down"),
    ],
)
async def test_failures(failure: KubeError, text: str, clock: ManualClock) -> None:
    """They are raised, without the token, and not remembered."""
    client = Reviewer()
    client.failure = failure
    authenticator = Authenticator(client, clock=clock)
    with pytest.raises(KubeError) as raised:
        await authenticator.authenticate(TOKEN)
    assert text in str(raised.value)
    assert TOKEN not in repr(raised.value)
    assert raised.value.__cause__ is None
    client.failure = None
    assert await authenticator.authenticate(TOKEN) == USER


async def test_tokens_are_not_kept(clock: ManualClock) -> None:
    """In memory there are only hashes of them."""
    authenticator = Authenticator(Reviewer(), clock=clock)
    await authenticator.authenticate(TOKEN)
    verdicts = authenticator._verdicts
    assert TOKEN not in str(verdicts._known)
    assert len(verdicts._known) == 1
    assert not verdicts._asking
