"""The authenticator of a dashboard in a cluster: everybody sees what they themselves may see.

Users are known by a bearer token of the API server, which the page sends in the header Authorization, or by the headers
of an authenticating proxy. Headers count only from a proxy that proves itself, by a client certificate or a secret.

| what a user gets | is checked |
|---|---|
| what the server has cached: lists, pages, metrics | by a SubjectAccessReview about the user, remembered for a minute |
| all else: YAML, logs, rights, changes | by the API server, which is asked with the user's token, or in their name |

Browsers send no token by themselves. They may send to a proxy what it knows a user by, which it may turn into a token:
therefore changes, and all requests with a user in headers, must have a header that no page of another origin can send.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final, Protocol

import msgspec
from aiohttp import web

from trainer.kube.access import BearerGate, bearer_token
from trainer.kube.bounded_dict import BoundedDict
from trainer.kube.client import Client
from trainer.kube.clock import Clock
from trainer.kube.errors import KubeError
from trainer.kube.logger import get_logger
from trainer.kube.objects import Object, ObjectKey
from trainer.kube.resource import Resource
from trainer.kube.serving.tls import common_names
from trainer.v1alpha1.discovery import Served
from trainer_dashboard.access.authenticator import Login
from trainer_dashboard.access.viewer import Viewer
from trainer_dashboard.serving.answers import refusal, unauthorized

log = get_logger(__name__)

PERMITTED: Final = 60.0
"""Seconds for which a permission is remembered, and so for which it may outlive its role."""
CAPACITY: Final = 32_768
"""Answers of each kind that are remembered, some 10 MiB: one for each user and namespace."""
_MEMBERS: Final = 256
"""Users whose clients are kept for their next request."""
PROXIED: Final = 600.0
"""Seconds after which a stream behind a proxy ends, so that the proxy is asked anew who it is for."""
USER_HEADER: Final = "X-Remote-User"
GROUP_HEADER: Final = "X-Remote-Group"
REQUESTED_BY: Final = "X-Requested-With"
"""Header with the value `trainer-dashboard`, which the page sends with all requests."""
_PAGE: Final = "trainer-dashboard"
_RESERVED: Final = "system:"
_LONGEST_NAME: Final = 1024
_MOST_GROUPS: Final = 1000


class UserClients(Protocol):
    """Clients that act for others."""

    def acting_as(self, token: str) -> Client:
        """For the owner of a bearer token."""

    def impersonating(self, user: Object) -> Client:
        """For a user, given as UserInfo."""


@dataclass(frozen=True, slots=True)
class Proxy:
    """An authenticating proxy: how it proves itself, and where it says who asks."""

    has_certificate: bool = False
    """Whether all connections show a client certificate, which TLS verifies. Default: they do not."""
    names: frozenset[str] = frozenset()
    """Common names of certificates that count. Default: all that TLS has verified."""
    secret: str = field(default="", repr=False)
    """What `secret_header` must be. Default: no secret counts."""
    user_header: str = USER_HEADER
    group_header: str = GROUP_HEADER
    """May come several times. Default: as for Kubernetes' own front proxies."""
    group_separator: str = ""
    """What stands between groups in one header. Default: nothing, each has a header."""
    secret_header: str = "X-Remote-Secret"  # noqa: S105 - the name of a header

    def has_sent(self, request: web.BaseRequest) -> bool:
        """Whether a request comes from the proxy."""
        if self.has_certificate and (names := common_names(request)):
            return not self.names or not self.names.isdisjoint(names)
        given = request.headers.getall(self.secret_header, [])
        return bool(self.secret) and len(given) == 1 and hmac.compare_digest(_bytes(given[0]), _bytes(self.secret))

    def user(self, request: web.BaseRequest) -> Object | None:
        """Who asks, by what it says; None where it says nothing that can be a user."""
        names, groups = request.headers.getall(self.user_header, []), request.headers.getall(self.group_header, [])
        if self.group_separator:
            groups = [group.strip() for value in groups for group in value.split(self.group_separator)]
        groups = [group for group in groups if group]
        if len(names) != 1 or len(groups) > _MOST_GROUPS or not all(map(_can_be_a_name, (*names, *groups))):
            return None
        return {"username": names[0], "groups": groups}


class ClusterAuthenticator:
    """Lets in users that the API server or the proxy knows."""

    def __init__(
        self, clients: UserClients, reviewer: Client, served: Served, *, clock: Clock, proxy: Proxy | None = None
    ) -> None:
        self.login: Login = "token" if proxy is None else "proxy"
        self._clients = clients
        self._served = served
        self._clock = clock
        self._proxy = proxy
        self._members: BoundedDict[bytes, Client] = BoundedDict(_MEMBERS)
        self._reviews = BearerGate(reviewer, clock=clock, permitted=PERMITTED, capacity=CAPACITY)

    def refusal_of_host(self, request: web.BaseRequest, port: int) -> None:  # noqa: ARG002
        """See `Authenticator`; what authenticates a user is not sent to a page under another name."""
        return

    def exchange_code(self, request: web.BaseRequest) -> web.Response:  # noqa: ARG002
        """See `Authenticator`; there are no codes."""
        return unauthorized("this dashboard gives nobody a token", self.login)

    async def viewer(self, request: web.BaseRequest) -> Viewer | web.Response:
        """See `Authenticator`."""
        if self._proxy is not None and self._proxy.has_sent(request):
            return _refusal_of_other_pages(request) or self._behind(self._proxy, request)
        token = bearer_token(request.headers.get("Authorization", ""))
        if token is None:
            return unauthorized("log in to see TrainJobs", self.login)
        try:
            user = await self._reviews.user_of(token) if token else None
        except KubeError as error:
            log.warning("could not review a token", error=str(error))
            text = "the API server does not say whose token this is; the log of the dashboard says why"
            return refusal(HTTPStatus.SERVICE_UNAVAILABLE, text)
        if user is None:
            return unauthorized("the token is wrong or has expired; log in with another one", self.login)
        # A proxy may have turned the cookie of a session into the token, so that a browser authenticates by itself.
        if request.method not in {"GET", "HEAD"} and (refused := _refusal_of_other_pages(request)) is not None:
            return refused
        client = self._client_of(b"token " + token.encode(), lambda: self._clients.acting_as(token))
        return _Member(str(user["username"]), client, user, self._reviews, self._clock, token=token)

    def _client_of(self, identity: bytes, make: Callable[[], Client]) -> Client:
        """The same for all requests of an identity, so that what was found out for one of them can serve the next."""
        digest = hashlib.sha256(identity).digest()
        client = self._members.get(digest) or self._served.client(make())
        self._members[digest] = client
        return client

    def _behind(self, proxy: Proxy, request: web.BaseRequest) -> Viewer | web.Response:
        user = proxy.user(request)
        if user is None:
            text = f"it must send {proxy.user_header} once, and no name that begins with {_RESERVED}"
            return unauthorized(f"the proxy does not say who asks: {text}", self.login)
        client = self._client_of(b"user " + msgspec.json.encode(user), lambda: self._clients.impersonating(user))
        # The API server adds the group to whoever is impersonated.
        reviewed = user | {"groups": [*user["groups"], "system:authenticated"]}
        until = self._clock.monotonic() + PROXIED
        return _Member(user["username"], client, reviewed, self._reviews, self._clock, until=until)


@dataclass(frozen=True, slots=True)
class _Member:
    """A user that the API server or the proxy knows."""

    name: str
    client: Client
    user: Object
    reviews: BearerGate
    clock: Clock
    token: str | None = field(default=None, repr=False)
    until: float = 0.0

    async def may(self, verb: str, resource: Resource, key: ObjectKey, *, subresource: str = "") -> bool:
        """See `Viewer`."""
        return await self.reviews.may(self.user, verb, resource, key, subresource=subresource)

    async def is_signed_in(self) -> bool:
        """See `Viewer`."""
        if self.token is None:
            return self.clock.monotonic() < self.until
        # Not with other groups either, by which it was decided what is shown.
        return await self.reviews.user_of(self.token) == self.user


def _refusal_of_other_pages(request: web.BaseRequest) -> web.Response | None:
    if request.headers.get(REQUESTED_BY) == _PAGE:
        return None
    return refusal(HTTPStatus.FORBIDDEN, f"the header {REQUESTED_BY} must be {_PAGE}, as the page sends it")


def _can_be_a_name(name: str) -> bool:
    """Whether a user or group may be called so; those of Kubernetes itself are for no proxy to give."""
    return 0 < len(name) <= _LONGEST_NAME and name.isprintable() and not name.startswith(_RESERVED)


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogateescape")
