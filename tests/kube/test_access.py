"""Which requests are let in."""

from __future__ import annotations

import asyncio

import anyio
import pytest
from structlog.testing import capture_logs

from tests.kube.conftest import Background
from tests.kube.reviewers import PROMETHEUS, TOKEN, Reviewer
from trainer.kube.access import BearerGate
from trainer.kube.client import ObjectRequest
from trainer.kube.errors import ApiError, ForbiddenError, KubeError, TransportError, UnauthorizedError
from trainer.kube.objects import Object, ObjectKey
from trainer.kube.resource import PODS
from trainer_kube_testing import ManualClock

ALLOWED = (("get", "/metrics"),)
JANE: Object = {"username": "jane", "groups": ["devs"], "uid": "1", "extra": {"scopes": ["a", "b"]}}
UNKNOWN = 'Bearer error="invalid_token"'


async def test_owner_of_a_token(clock: ManualClock) -> None:
    """All that the API server tells is kept, since permissions may depend on it."""
    client = Reviewer()
    gate = BearerGate(client, clock=clock)
    assert await gate.user_of(TOKEN) == PROMETHEUS
    assert client.asked("TokenReview") == [{"token": TOKEN}]
    assert await gate.user_of("another") is None


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
    assert await BearerGate(Reviewer(users), clock=clock).user_of(TOKEN, audiences) is None


async def test_answer_without_audiences_is_for_nobody(clock: ManualClock) -> None:
    """An authenticator that knows nothing of audiences has not checked them."""

    class Careless(Reviewer):
        def _token(self, spec: Object) -> Object:
            return {"authenticated": True, "user": PROMETHEUS}

    assert await BearerGate(Careless(), clock=clock).user_of(TOKEN, ("metrics",)) is None


async def test_audiences_of_a_question(clock: ManualClock) -> None:
    """What is remembered of a token for one audience says nothing about another."""
    client = Reviewer()
    client.audiences = ["jobs/a"]
    gate = BearerGate(client, clock=clock)
    assert await gate.user_of(TOKEN, ("jobs/a",)) == PROMETHEUS
    assert await gate.user_of(TOKEN, ("jobs/b",)) is None
    assert await gate.user_of(TOKEN, ("jobs/a",)) == PROMETHEUS
    assert [spec["audiences"] for spec in client.asked("TokenReview")] == [["jobs/a"], ["jobs/b"]]


@pytest.mark.parametrize(
    ("token", "seconds"), [pytest.param(TOKEN, 60, id="valid"), pytest.param("made-up", 10, id="wrong")]
)
async def test_tokens_are_known_for_a_while(token: str, seconds: float, clock: ManualClock) -> None:
    """A valid token for a minute, a wrong one for ten seconds."""
    client = Reviewer()
    gate = BearerGate(client, clock=clock)
    for _ in range(3):
        await gate.user_of(token)
    await clock.advance(seconds - 0.1)
    await gate.user_of(token)
    assert len(client.reviews) == 1
    client.users = {"made-up": PROMETHEUS}
    await clock.advance(0.1)
    assert (await gate.user_of(token) is None) == (token == TOKEN)
    assert len(client.reviews) == 2


async def test_who_asks_the_same_waits_for_one_answer(clock: ManualClock) -> None:
    """A hundred scrapes at once are one review."""
    client = Reviewer()
    gate = BearerGate(client, clock=clock)
    assert await asyncio.gather(*(gate.user_of(TOKEN) for _ in range(100))) == [PROMETHEUS] * 100
    assert len(client.reviews) == 1


async def test_number_of_known_tokens_is_bounded(clock: ManualClock) -> None:
    """Those that were asked about the longest ago are forgotten."""
    client = Reviewer()
    gate = BearerGate(client, clock=clock, capacity=2)
    for token in ("a", "b", "a", "c", "a"):
        await gate.user_of(token)
    assert [spec["token"] for spec in client.asked("TokenReview")] == ["a", "b", "c"]
    await gate.user_of("b")
    assert len(client.reviews) == 4


async def test_made_up_tokens_make_none_be_forgotten(clock: ManualClock) -> None:
    """However many wrong tokens are asked about, those that are right stay known."""
    client = Reviewer({"right": JANE})
    gate = BearerGate(client, clock=clock, capacity=2)
    for token in ("right", "wrong", "made up", "invented", "right"):
        await gate.user_of(token)
    assert [spec["token"] for spec in client.asked("TokenReview")] == ["right", "wrong", "made up", "invented"]


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
    gate = BearerGate(client, clock=clock)
    answers = [background(gate.user_of(f"made-up {number}")) for number in range(20)]
    await clock.advance(0)
    assert client.asking == 10
    client.go_on.set()
    assert await asyncio.gather(*answers) == [None] * 20


async def test_api_server_that_does_not_answer(clock: ManualClock, background: Background) -> None:
    """It is given ten seconds; the next one asks anew."""
    client = Hanging()
    gate = BearerGate(client, clock=clock)

    async def ask() -> str:
        with pytest.raises(TransportError) as raised:
            await gate.user_of(TOKEN)
        return str(raised.value)

    asking = background(ask())
    await clock.advance(10)
    assert await asking == "the API server did not answer a TokenReview within 10 s"
    client.go_on.set()
    assert await gate.user_of(TOKEN) == PROMETHEUS


async def test_caller_that_goes_away_takes_nobody_along(clock: ManualClock, background: Background) -> None:
    """Another one who waits for the same answer gets it."""
    client = Hanging()
    gate = BearerGate(client, clock=clock)
    first, second = (background(gate.user_of(TOKEN)) for _ in range(2))
    await clock.advance(0)
    first.cancel()
    await clock.advance(0)
    client.go_on.set()
    assert await second == PROMETHEUS


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
async def test_failures_of_authentication(failure: KubeError, text: str, clock: ManualClock) -> None:
    """They are raised, without the token, and not remembered."""
    client = Reviewer()
    client.failure = failure
    gate = BearerGate(client, clock=clock)
    with pytest.raises(KubeError) as raised:
        await gate.user_of(TOKEN)
    assert text in str(raised.value)
    assert TOKEN not in repr(raised.value)
    assert raised.value.__cause__ is None
    client.failure = None
    assert await gate.user_of(TOKEN) == PROMETHEUS


async def test_tokens_are_not_kept(clock: ManualClock) -> None:
    """In memory there are only hashes of them."""
    gate = BearerGate(Reviewer(), clock=clock)
    await gate.user_of(TOKEN)
    users = gate._users
    assert TOKEN not in str(users._known)
    assert [len(answers) for answers in users._known.values()] == [1, 0]
    assert not users._asking


async def test_question(clock: ManualClock) -> None:
    """The API server gets all that is known of the user."""
    client = Reviewer(allowed=ALLOWED)
    gate = BearerGate(client, clock=clock)
    assert await gate.is_allowed(JANE, "get", "/metrics")
    assert not await gate.is_allowed(JANE, "head", "/metrics")
    assert not await gate.is_allowed(JANE, "get", "/other")
    assert client.asked("SubjectAccessReview")[0] == {
        "user": "jane",
        "groups": ["devs"],
        "uid": "1",
        "extra": {"scopes": ["a", "b"]},
        "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
    }


@pytest.mark.parametrize(
    ("path", "seconds"), [pytest.param("/metrics", 300, id="allowed"), pytest.param("/other", 30, id="denied")]
)
async def test_permissions_are_known_for_a_while(path: str, seconds: float, clock: ManualClock) -> None:
    """A permission for five minutes, the lack of one for thirty seconds."""
    client = Reviewer(allowed=ALLOWED)
    gate = BearerGate(client, clock=clock)
    await gate.is_allowed(JANE, "get", path)
    await clock.advance(seconds - 0.1)
    await gate.is_allowed(JANE, "get", path)
    assert len(client.reviews) == 1
    await clock.advance(0.1)
    await gate.is_allowed(JANE, "get", path)
    assert len(client.reviews) == 2


@pytest.mark.parametrize(
    ("key", "subresource", "asked"),
    [
        pytest.param(ObjectKey("", ""), "", {}, id="all"),
        pytest.param(ObjectKey("ns", ""), "log", {"namespace": "ns", "subresource": "log"}, id="of-a-namespace"),
        pytest.param(ObjectKey("ns", "p"), "", {"namespace": "ns", "name": "p"}, id="one"),
    ],
)
async def test_resources(key: ObjectKey, subresource: str, asked: Object, clock: ManualClock) -> None:
    """A question about a resource names what it is about, and nothing that is empty."""
    client = Reviewer(allowed=(("get", "pods"),))
    gate = BearerGate(client, clock=clock)
    assert await gate.may(JANE, "get", PODS, key, subresource=subresource)
    assert not await gate.may(JANE, "list", PODS, key, subresource=subresource)
    attributes = client.asked("SubjectAccessReview")[0]["resourceAttributes"]
    assert attributes == {"verb": "get", "resource": "pods"} | asked


async def test_lifetime_and_number_of_permissions(clock: ManualClock) -> None:
    """Whoever needs it remembers permissions for less time, and more or fewer of them."""
    client = Reviewer(allowed=(("get", "pods"),))
    gate = BearerGate(client, clock=clock, permitted=60, capacity=1)
    one, another = ObjectKey("one", ""), ObjectKey("another", "")
    for key, seconds, reviews in ((one, 59.9, 1), (one, 0.1, 1), (one, 0, 2), (another, 0, 3), (one, 0, 4)):
        assert await gate.may(JANE, "get", PODS, key)
        assert len(client.reviews) == reviews
        await clock.advance(seconds)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(JANE | {"extra": {"scopes": ["a"]}}, id="extra"),
        pytest.param(JANE | {"groups": []}, id="groups"),
        pytest.param(JANE | {"username": "joe"}, id="name"),
    ],
)
async def test_each_user_is_asked_about(other: Object, clock: ManualClock) -> None:
    """An answer about one is none about another."""
    client = Reviewer(allowed=ALLOWED)
    gate = BearerGate(client, clock=clock)
    await gate.is_allowed(JANE, "get", "/metrics")
    await gate.is_allowed(other, "get", "/metrics")
    assert len(client.reviews) == 2


@pytest.mark.parametrize(
    "status",
    [
        pytest.param({"allowed": True, "denied": True}, id="both"),
        pytest.param({"allowed": "yes"}, id="no-boolean"),
        pytest.param({}, id="nothing"),
    ],
)
async def test_unclear_answers_are_denials(status: Object, clock: ManualClock) -> None:
    """Only a plain yes is one."""

    class Unclear(Reviewer):
        def _access(self, spec: Object) -> Object:
            return status

    assert not await BearerGate(Unclear(), clock=clock).is_allowed(JANE, "get", "/metrics")


@pytest.mark.parametrize(
    ("authorization", "path", "status", "challenge"),
    [
        pytest.param(f"Bearer {TOKEN}", "/metrics", None, "", id="allowed"),
        pytest.param(f"bearer  {TOKEN} ", "/metrics", None, "", id="any-case"),
        pytest.param(f"Bearer {TOKEN}", "/other", 403, "", id="not-this-path"),
        pytest.param("Bearer nonsense", "/metrics", 401, UNKNOWN, id="unknown-token"),
        pytest.param("Bearer t\udcc3\udc28", "/metrics", 401, UNKNOWN, id="not-unicode"),
        pytest.param("Bearer t\x7f", "/metrics", 401, UNKNOWN, id="not-printable"),
        pytest.param("", "/metrics", 401, "Bearer", id="nothing"),
        pytest.param("Bearer", "/metrics", 401, "Bearer", id="no-token"),
        pytest.param("Bearer  ", "/metrics", 401, "Bearer", id="blank-token"),
        pytest.param(TOKEN, "/metrics", 401, "Bearer", id="no-scheme"),
        pytest.param(f"Basic {TOKEN}", "/metrics", 401, "Bearer", id="other-scheme"),
    ],
)
async def test_gate(authorization: str, path: str, status: int | None, challenge: str, clock: ManualClock) -> None:
    """Only the owner of a known token, and only to what they may."""
    refusal = await BearerGate(Reviewer(allowed=ALLOWED), clock=clock).refusal(authorization, "GET", path)
    if status is None:
        assert refusal is None
    else:
        assert refusal is not None
        assert (refusal.status, refusal.challenge) == (status, challenge)


async def test_what_can_be_no_token_is_not_asked_about(clock: ManualClock) -> None:
    """Neither does the API server get it, nor the log: nobody needs to know anything to send it."""
    client = Reviewer(allowed=ALLOWED)
    client.failure = ForbiddenError(403, "must not be asked")
    refusal = await BearerGate(client, clock=clock).refusal("Bearer \udcff", "GET", "/metrics")
    assert refusal is not None
    assert refusal.status == 401


async def test_nobody_is_let_in_by_a_failure(clock: ManualClock) -> None:
    """Whoever asks learns no details; they are in the log, without the token."""
    client = Reviewer(allowed=ALLOWED)
    client.failure = ForbiddenError(403, f"may not create tokenreviews, {TOKEN}")
    with capture_logs() as logs:
        refusal = await BearerGate(client, clock=clock).refusal(f"Bearer {TOKEN}", "GET", "/metrics")
    assert refusal is not None
    assert refusal.status == 503
    assert "may not create" not in refusal.text
    [entry] = logs
    assert "may not create tokenreviews" in entry["error"]
    assert TOKEN not in str(entry)
