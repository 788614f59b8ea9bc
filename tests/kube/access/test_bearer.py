"""Who is let in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from tests.kube.access.reviewers import TOKEN, Reviewer
from trainer.kube.access.authentication import Authenticator
from trainer.kube.access.authorization import Authorizer
from trainer.kube.access.bearer import BearerGate
from trainer.kube.errors import ForbiddenError

if TYPE_CHECKING:
    from trainer.kube.testing import ManualClock

UNKNOWN = 'Bearer error="invalid_token"'


def gate_of(client: Reviewer, clock: ManualClock) -> BearerGate:
    return BearerGate(Authenticator(client, clock=clock), Authorizer(client, clock=clock))


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
    refusal = await gate_of(Reviewer(allowed=(("get", "/metrics"),)), clock).refusal(authorization, "GET", path)
    if status is None:
        assert refusal is None
    else:
        assert refusal is not None
        assert (refusal.status, refusal.challenge) == (status, challenge)


async def test_what_can_be_no_token_is_not_asked_about(clock: ManualClock) -> None:
    """Neither does the API server get it, nor the log: nobody needs to know anything to send it."""
    client = Reviewer(allowed=(("get", "/metrics"),))
    client.failure = ForbiddenError(403, "must not be asked")
    refusal = await gate_of(client, clock).refusal("Bearer \udcff", "GET", "/metrics")
    assert refusal is not None
    assert refusal.status == 401


async def test_nobody_is_let_in_by_a_failure(clock: ManualClock) -> None:
    """Whoever asks learns no details; they are in the log, without the token."""
    client = Reviewer(allowed=(("get", "/metrics"),))
    client.failure = ForbiddenError(403, f"may not create tokenreviews, {TOKEN}")
    with capture_logs() as logs:
        refusal = await gate_of(client, clock).refusal(f"Bearer {TOKEN}", "GET", "/metrics")
    assert refusal is not None
    assert refusal.status == 503
    assert "may not create" not in refusal.text
    [entry] = logs
    assert "may not create tokenreviews" in entry["error"]
    assert TOKEN not in str(entry)
