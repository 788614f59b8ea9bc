"""Authorization: whether somebody may get a path, as the API server sees it (SubjectAccessReview)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio

from trainer.kube.access.review import send_review
from trainer.kube.access.verdicts import Verdicts
from trainer.kube.resource import Resource

if TYPE_CHECKING:
    from trainer.kube.access.authentication import User
    from trainer.kube.client import Client
    from trainer.kube.clock import Clock
    from trainer.kube.objects import Object

SUBJECT_ACCESS_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False
)


@dataclass(frozen=True, slots=True)
class AuthorizerOptions:
    """For how long permissions are known."""

    allowed_lifetime: float = 300.0
    """Seconds for which a permission is known. Default: 300, as in controller-runtime: one that has been taken away
    works as long."""
    denied_lifetime: float = 30.0
    """Seconds for which the lack of one is. Default: 30, as in controller-runtime."""
    capacity: int = 1024
    """Answers that are known at a time. Default: 1024."""
    concurrency: int = 10
    """Questions that are put at a time. Default: 10."""


class Authorizer:
    """Tells whether a user may do something to a path that is no resource of the API, such as `get` `/metrics`.

    Needed: create on `subjectaccessreviews` of authorization.k8s.io. Users need a ClusterRole with `nonResourceURLs`.

    Args:
        client: not one whose writes depend on leadership: `Manager.api_reader`.
        clock: for limits and the age of answers.
        options: see its class.
    """

    def __init__(self, client: Client, *, clock: Clock, options: AuthorizerOptions | None = None) -> None:
        self._client = client
        self._clock = clock
        self._options = options or AuthorizerOptions()
        self._verdicts: Verdicts[bool] = Verdicts(
            clock,
            capacity=self._options.capacity,
            lifetime=self._lifetime,
            concurrency=anyio.CapacityLimiter(self._options.concurrency),
        )

    async def is_allowed(self, user: User, verb: str, path: str) -> bool:
        """Whether a user may do this.

        Args:
            user: who.
            verb: such as `get`, which is the method of the request in small letters.
            path: decoded, without the query.

        Raises:
            KubeError: the API server does not say.
        """
        extra = tuple(sorted(user.extra.items()))
        return await self._verdicts.of((user, extra, verb, path), lambda: self._ask(user, verb, path))

    async def _ask(self, user: User, verb: str, path: str) -> bool:
        spec: Object = {
            "user": user.name,
            "groups": list(user.groups),
            "uid": user.uid,
            "extra": {name: list(values) for name, values in user.extra.items()},
            "nonResourceAttributes": {"path": path, "verb": verb},
        }
        status = await send_review(self._client, SUBJECT_ACCESS_REVIEWS, spec, clock=self._clock)
        return status.get("allowed") is True and status.get("denied") is not True

    def _lifetime(self, allowed: bool) -> float:
        return self._options.allowed_lifetime if allowed else self._options.denied_lifetime
