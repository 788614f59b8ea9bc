"""Access: which requests to this process are let in, as TokenReviews and SubjectAccessReviews decide."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, Generic, TypeVar

import anyio
import msgspec

from trainer.kube.bounded_dict import BoundedDict
from trainer.kube.client import Client
from trainer.kube.clock import Clock, move_on_after
from trainer.kube.errors import ApiError, KubeError, TransportError
from trainer.kube.logger import get_logger
from trainer.kube.objects import Object, ObjectKey
from trainer.kube.resource import Resource

TOKEN_REVIEWS: Final = Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False)
SUBJECT_ACCESS_REVIEWS: Final = Resource(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False
)
TIMEOUT: Final = 10.0
"""Seconds for one review, as in controller-runtime."""
CAPACITY: Final = 1024
"""Answers of each kind that are remembered, and as many refusals, some 500 KiB each."""
CONCURRENCY: Final = 10
"""Reviews of each kind at a time: clients with made-up tokens must not flood the API server."""
VALID_TOKEN, WRONG_TOKEN = 60.0, 10.0
"""Seconds for which a token is remembered; a valid one as in controller-runtime, even if its account is deleted."""
PERMITTED, DENIED = 300.0, 30.0
"""Seconds for which a permission and the lack of one are remembered, as in controller-runtime."""

_T = TypeVar("_T")
log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is not let in."""

    status: HTTPStatus
    text: str
    challenge: str = ""
    """Value of the header WWW-Authenticate (RFC 6750). Default: none."""


_NO_TOKEN = Refusal(HTTPStatus.UNAUTHORIZED, "send a bearer token in the header Authorization", "Bearer")
_WRONG_TOKEN = Refusal(
    HTTPStatus.UNAUTHORIZED, "the API server does not know this token", 'Bearer error="invalid_token"'
)
_NO_ANSWER = Refusal(
    HTTPStatus.SERVICE_UNAVAILABLE, "the API server does not say who may; the log of this process says why"
)


def bearer_token(authorization: str) -> str | None:
    """The token in a header Authorization; None without one, and "" for what cannot be a token (RFC 6750, 2.1)."""
    scheme, _, token = authorization.partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token:
        return None
    # What is no token may not even fit into a review.
    return token if token.isascii() and token.isprintable() else ""


def resource_attributes(verb: str, resource: Resource, key: ObjectKey, subresource: str = "") -> Object:
    """What an access review asks about; an empty name stands for any object, an empty namespace for all of them."""
    attributes = {
        "verb": verb,
        "group": resource.group,
        "resource": resource.plural,
        "subresource": subresource,
        "namespace": key.namespace,
        "name": key.name,
    }
    return {"resourceAttributes": {name: value for name, value in attributes.items() if value}}


class BearerGate:
    """Lets in requests whose bearer token the API server knows and whose user it allows; none while it fails.

    Needed: create on `tokenreviews` of authentication.k8s.io and `subjectaccessreviews` of authorization.k8s.io. Users
    need a ClusterRole with `nonResourceURLs`.

    Args:
        client: whose writes must not depend on leadership: `Manager.api_reader`.
        clock: for the lifetimes of answers.
        permitted: seconds for which a permission is remembered. Default: `PERMITTED`.
        capacity: answers of each kind that are remembered, and as many refusals. Default: `CAPACITY`.
    """

    def __init__(self, client: Client, *, clock: Clock, permitted: float = PERMITTED, capacity: int = CAPACITY) -> None:
        self._client = client
        self._clock = clock
        self._users: _Answers[Object | None] = _Answers(
            clock, lambda user: VALID_TOKEN if user else WRONG_TOKEN, capacity
        )
        self._permissions: _Answers[bool] = _Answers(clock, lambda allowed: permitted if allowed else DENIED, capacity)

    async def refusal(self, authorization: str, method: str, path: str) -> Refusal | None:
        """Why a request is not let in; None if it is.

        `path` is decoded and without the query; a token in the query does not count.
        """
        token = bearer_token(authorization)
        if token is None:
            return _NO_TOKEN
        if not token:
            return _WRONG_TOKEN
        try:
            user = await self.user_of(token)
            if user is None:
                return _WRONG_TOKEN
            verb = method.lower()
            if await self.is_allowed(user, verb, path):
                return None
        except KubeError as error:
            log.warning("could not review a request", error=str(error))
            return _NO_ANSWER
        text = f"{user['username']} may not {verb} this path: it needs a ClusterRole with it in nonResourceURLs"
        return Refusal(HTTPStatus.FORBIDDEN, text)

    async def user_of(self, token: str, audiences: tuple[str, ...] = ()) -> Object | None:
        """The UserInfo of a token's owner; None if it has none, or is not for us.

        The token must be made for one of the `audiences`; by default those of the API server.

        Raises:
            KubeError: the API server does not answer; its text does not contain the token.
        """
        question = "\n".join((token, *audiences)).encode(errors="surrogateescape")
        return await self._users.of(hashlib.sha256(question).digest(), lambda: self._review_token(token, audiences))

    async def is_allowed(self, user: Object, verb: str, path: str) -> bool:
        """Whether a user may do this to a path that is no resource of the API.

        Raises:
            KubeError: the API server does not answer.
        """
        return await self._is_permitted(user, {"nonResourceAttributes": {"path": path, "verb": verb}})

    async def may(self, user: Object, verb: str, resource: Resource, key: ObjectKey, *, subresource: str = "") -> bool:
        """Whether a user may do this; with an empty name to any object, with an empty namespace in all of them.

        Raises:
            KubeError: the API server does not answer.
        """
        return await self._is_permitted(user, resource_attributes(verb, resource, key, subresource))

    async def _is_permitted(self, user: Object, attributes: Object) -> bool:
        spec: Object = {
            "user": user["username"],
            "groups": user.get("groups") or [],
            "uid": user.get("uid") or "",
            "extra": user.get("extra") or {},
        } | attributes
        digest = hashlib.sha256(msgspec.json.encode(spec)).digest()
        return await self._permissions.of(digest, lambda: self._review_access(spec))

    async def _review_token(self, token: str, audiences: tuple[str, ...]) -> Object | None:
        spec: Object = {"token": token}
        if audiences:
            spec["audiences"] = list(audiences)
        status = await self._review(TOKEN_REVIEWS, spec, secret=token)
        is_for_us = not audiences or set(audiences) & set(status.get("audiences") or ())
        user: Object = status.get("user") or {}
        return user if status.get("authenticated") is True and is_for_us and user.get("username") else None

    async def _review_access(self, spec: Object) -> bool:
        status = await self._review(SUBJECT_ACCESS_REVIEWS, spec)
        return status.get("allowed") is True and status.get("denied") is not True

    async def _review(self, resource: Resource, spec: Object, secret: str = "") -> Object:
        """The status of the answer; errors do not contain the secret."""
        review = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {}, "spec": spec}
        try:
            async with move_on_after(self._clock, TIMEOUT):
                status = (await self._client.create(resource, review)).get("status")
                return status if isinstance(status, dict) else {}
        except KubeError as error:
            text = str(error).replace(secret, "[redacted]") if secret else str(error)
            code = f" ({error.code})" if isinstance(error, ApiError) else ""
            raise KubeError(f"the API server does not answer a {resource.kind}{code}: {text}") from None
        raise TransportError(f"the API server did not answer a {resource.kind} within {TIMEOUT:g} s")


class _Answers(Generic[_T]):
    """Answers by question, remembered for a while; who asks the same at the same time waits for one answer.

    Permissions and refusals are remembered apart: made-up questions make nobody forget who is let in.
    """

    def __init__(self, clock: Clock, lifetime: Callable[[_T], float], capacity: int) -> None:
        self._clock = clock
        self._lifetime = lifetime
        self._concurrency = anyio.CapacityLimiter(CONCURRENCY)
        self._known: dict[bool, BoundedDict[bytes, tuple[_T, float]]] = {
            allows: BoundedDict(capacity) for allows in (True, False)
        }
        self._asking: dict[bytes, anyio.Lock] = {}

    async def of(self, question: bytes, ask: Callable[[], Awaitable[_T]]) -> _T:
        """The remembered answer, or what `ask` returns; what it raises is not remembered."""
        lock = self._asking.setdefault(question, anyio.Lock())
        try:
            async with lock:
                for answers in self._known.values():
                    known = answers.get(question)
                    if known is not None and known[1] > self._clock.monotonic():
                        answers.move_to_end(question)
                        return known[0]
                async with self._concurrency:
                    answer = await ask()
                self._remember(question, answer)
                return answer
        finally:
            if not lock.statistics().tasks_waiting and not lock.locked():
                self._asking.pop(question, None)

    def _remember(self, question: bytes, answer: _T) -> None:
        for answers in self._known.values():
            answers.pop(question, None)
        self._known[bool(answer)][question] = answer, self._clock.monotonic() + self._lifetime(answer)
