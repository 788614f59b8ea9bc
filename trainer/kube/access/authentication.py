"""Authentication: whose bearer token it is, as the API server sees it (TokenReview)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio

from trainer.kube.access.review import send_review
from trainer.kube.access.verdicts import Verdicts
from trainer.kube.resource import Resource

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainer.kube.client import Client
    from trainer.kube.clock import Clock
    from trainer.kube.objects import Object

TOKEN_REVIEWS = Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False)


@dataclass(frozen=True, slots=True)
class User:
    """Who somebody is (authentication.k8s.io/v1 UserInfo)."""

    name: str
    groups: tuple[str, ...] = ()
    """Default: none."""
    uid: str = ""
    """Default: none."""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    """What the authenticator says besides, such as the pod of a token. Default: nothing."""


@dataclass(frozen=True, slots=True)
class AuthenticatorOptions:
    """How tokens are looked at."""

    audiences: tuple[str, ...] = ()
    """For whom a token must be made; one of them is enough. Default: none, those of the API server, as for the tokens
    that pods have."""
    lifetime: float = 60.0
    """Seconds for which a valid token is known as such. Default: 60, as in controller-runtime: a token whose account
    has been deleted works as long."""
    refusal_lifetime: float = 10.0
    """Seconds for which a wrong token is. Default: 10, enough to spare the API server who asks again and again."""
    capacity: int = 1024
    """Tokens that are known at a time. Default: 1024, some 500 KiB."""
    concurrency: int = 10
    """Tokens that are asked about at a time. Default: 10: who sends made-up tokens shall not flood the API server."""


class Authenticator:
    """Tells whose a token is, and remembers it for a while, by a hash of the token.

    Needed: create on `tokenreviews` of authentication.k8s.io.

    Args:
        client: not one whose writes depend on leadership: `Manager.api_reader`.
        clock: for limits and the age of answers.
        options: see its class.
    """

    def __init__(self, client: Client, *, clock: Clock, options: AuthenticatorOptions | None = None) -> None:
        self._client = client
        self._clock = clock
        self._options = options or AuthenticatorOptions()
        self._verdicts: Verdicts[User | None] = Verdicts(
            clock,
            capacity=self._options.capacity,
            lifetime=self._lifetime,
            concurrency=anyio.CapacityLimiter(self._options.concurrency),
        )

    async def authenticate(self, token: str) -> User | None:
        """Whose token it is; None if it is nobody's, or not for us.

        Raises:
            KubeError: the API server does not say; its text does not contain the token.
        """
        question = hashlib.sha256(token.encode(errors="surrogateescape")).digest()
        return await self._verdicts.of(question, lambda: self._ask(token))

    async def _ask(self, token: str) -> User | None:
        spec: Object = {"token": token}
        if self._options.audiences:
            spec["audiences"] = list(self._options.audiences)
        status = await send_review(self._client, TOKEN_REVIEWS, spec, clock=self._clock, secret=token)
        wanted = set(self._options.audiences)
        if status.get("authenticated") is not True or (wanted and wanted.isdisjoint(status.get("audiences") or ())):
            return None
        user = _user(status.get("user") or {})
        return user if user.name else None

    def _lifetime(self, user: User | None) -> float:
        return self._options.refusal_lifetime if user is None else self._options.lifetime


def _user(info: Object) -> User:
    extra = {str(name): tuple(values) for name, values in (info.get("extra") or {}).items()}
    return User(str(info.get("username") or ""), tuple(info.get("groups") or ()), str(info.get("uid") or ""), extra)
