"""What users may."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.kube.access.reviewers import Reviewer
from trainer.kube.access.authentication import User
from trainer.kube.access.authorization import Authorizer
from trainer.kube.errors import KubeError, TransportError

if TYPE_CHECKING:
    from trainer.kube.objects import Object
    from trainer.kube.testing import ManualClock

JANE = User("jane", ("devs",), "1", {"scopes": ("a", "b")})


async def test_question(clock: ManualClock) -> None:
    """The API server gets all that is known of the user."""
    client = Reviewer(allowed=(("get", "/metrics"),))
    authorizer = Authorizer(client, clock=clock)
    assert await authorizer.is_allowed(JANE, "get", "/metrics")
    assert not await authorizer.is_allowed(JANE, "head", "/metrics")
    assert not await authorizer.is_allowed(JANE, "get", "/other")
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
async def test_answers_are_known_for_a_while(path: str, seconds: float, clock: ManualClock) -> None:
    """A permission for five minutes, the lack of one for thirty seconds."""
    client = Reviewer(allowed=(("get", "/metrics"),))
    authorizer = Authorizer(client, clock=clock)
    await authorizer.is_allowed(JANE, "get", path)
    await clock.advance(seconds - 0.1)
    await authorizer.is_allowed(JANE, "get", path)
    assert len(client.reviews) == 1
    await clock.advance(0.1)
    await authorizer.is_allowed(JANE, "get", path)
    assert len(client.reviews) == 2


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(User("jane", ("devs",), "1", {"scopes": ("a",)}), id="extra"),
        pytest.param(User("jane", (), "1", {"scopes": ("a", "b")}), id="groups"),
        pytest.param(User("joe", ("devs",), "1", {"scopes": ("a", "b")}), id="name"),
    ],
)
async def test_each_user_is_asked_about(other: User, clock: ManualClock) -> None:
    """An answer about one is none about another."""
    client = Reviewer(allowed=(("get", "/metrics"),))
    authorizer = Authorizer(client, clock=clock)
    await authorizer.is_allowed(JANE, "get", "/metrics")
    await authorizer.is_allowed(other, "get", "/metrics")
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

    assert not await Authorizer(Unclear(), clock=clock).is_allowed(JANE, "get", "/metrics")


async def test_failures(clock: ManualClock) -> None:
    """They are raised, and not remembered."""
    client = Reviewer(allowed=(("get", "/metrics"),))
    client.failure = TransportError("refused")
    authorizer = Authorizer(client, clock=clock)
    with pytest.raises(KubeError, match="does not answer a SubjectAccessReview: refused"):
        await authorizer.is_allowed(JANE, "get", "/metrics")
    client.failure = None
    assert await authorizer.is_allowed(JANE, "get", "/metrics")
