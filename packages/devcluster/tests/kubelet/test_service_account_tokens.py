"""Tokens of pods."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from packages.devcluster.tests.kubelet.fakes import FakeTokenSource, make_pod
from trainer.kube.client import Client
from trainer.kube.errors import KubeError
from trainer.kube.objects import Object
from trainer.kube.resource import SERVICE_ACCOUNTS, Resource
from trainer_devcluster.kubelet.errors import VolumeError
from trainer_devcluster.kubelet.service_account_tokens import PodTokens, TokenSource
from trainer_kube_testing import FakeClient, ManualClock


def tokens() -> tuple[PodTokens, FakeTokenSource, ManualClock]:
    """The tokens of a pod, where they come from, and the time."""
    clock = ManualClock()
    source = FakeTokenSource(clock)
    return PodTokens(make_pod("pod"), source, clock), source, clock


async def test_kept_until_it_is_due() -> None:
    """A token is used for 80 % of its life, and each audience has one of its own."""
    kept, source, clock = tokens()
    assert kept.seconds_to_renewal() is None
    assert await kept.get("", 1000) == "token-1"
    assert await kept.get("vault", 2000) == "token-2"
    assert kept.seconds_to_renewal() == 800
    await clock.advance(799)
    assert await kept.get("", 1000) == "token-1"
    await clock.advance(1)
    assert await kept.get("", 1000) == "token-3"
    assert source.requests == [("pod", "", 1000), ("pod", "vault", 2000), ("pod", "", 1000)]


async def test_no_token_is_older_than_a_day() -> None:
    """A token that lives for long is replaced daily."""
    kept, _, _ = tokens()
    await kept.get("", 7 * 24 * 3600)
    assert kept.seconds_to_renewal() == 24 * 3600


async def test_renewal_that_fails() -> None:
    """The old token stays for as long as it is valid, and the next try comes soon."""
    kept, source, clock = tokens()
    await kept.get("", 1000)
    await clock.advance(800)
    source.failures = [KubeError("down"), KubeError("still down")]
    assert await kept.get("", 1000) == "token-1"
    assert kept.seconds_to_renewal() == 60
    await clock.advance(200)
    with pytest.raises(VolumeError, match="failed to fetch token: still down"):
        await kept.get("", 1000)


class TokenServer(FakeClient):
    """Answers TokenRequests."""

    token_requests: list[tuple[Resource, Object, str | None]]

    async def create(
        self, resource: Resource, obj: Object, *, subresource: str | None = None, field_manager: str | None = None
    ) -> Object:
        """See `Client.create`."""
        assert field_manager is None
        self.token_requests.append((resource, obj, subresource))
        return {**obj, "status": {"token": "secret", "expirationTimestamp": "2026-11-21T12:00:00Z"}}


@pytest.mark.parametrize(
    ("audience", "audiences"), [pytest.param("", [], id="API server"), pytest.param("vault", ["vault"], id="another")]
)
async def test_request(audience: str, audiences: list[str]) -> None:
    """The token is one of the pod's account, for the audience, and ends with the pod."""
    client = TokenServer()
    client.token_requests = []
    source: Client = client
    issued = await TokenSource(source).request(make_pod("pod", serviceAccountName="bot"), audience, 3607)
    assert (issued.token, issued.expires) == ("secret", datetime(2026, 11, 21, 12, tzinfo=UTC))
    assert "secret" not in repr(issued)
    [(resource, request, subresource)] = client.token_requests
    assert (resource, subresource) == (SERVICE_ACCOUNTS, "token")
    assert request["metadata"] == {"name": "bot", "namespace": "default"}
    assert request["spec"] == {
        "audiences": audiences,
        "expirationSeconds": 3607,
        "boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "pod", "uid": "uid-default-pod"},
    }
