"""An API server that knows who may what, as the dashboard of a cluster and its users ask it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio

from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.client import DEFAULT_LIST, ListOptions, LogOptions, ObjectList, ObjectRequest
from trainer.kube.clock import Clock
from trainer.kube.errors import ForbiddenError, KubeError, UnauthorizedError
from trainer.kube.objects import Object, ObjectKey
from trainer.kube.resource import PODS, Resource
from trainer.kube.selection import EVERYTHING, Selection
from trainer.workloads import JOBSETS
from trainer_kube_testing import FakeClient

JANE = "jane"
TOKEN = "token-of-jane"
READS = ("list trainjobs", "get trainjobs", "list pods", "list events", "get pods/log")
CHANGES = ("patch trainjobs", "delete trainjobs")
_VERBS = {"apply": "patch"}


class ClusterClient(FakeClient):
    """The client of the dashboard's own account, which may read everything, and makes clients for its users."""

    def __init__(self, *objects: Object, clock: Clock | None = None) -> None:
        super().__init__(*objects, resources=[TRAIN_JOBS, JOBSETS], clock=clock)
        self.namespace = "trainer-system"
        self.server = "https://api.example.com"
        self.users: dict[str, Object] = {TOKEN: {"username": JANE, "groups": ["system:authenticated"]}}
        """Whose tokens there are."""
        self.rules: dict[str, set[str]] = {}
        """What a user or group may: verb and resource, and a namespace or * behind a space."""
        self.reviews: list[Object] = []
        """All TokenReviews and SubjectAccessReviews."""
        self.failure: KubeError | None = None
        """What becomes of all of them."""
        self.held: anyio.Event | None = None
        """What SubjectAccessReviews wait for."""
        self.acting: list[MemberClient] = []
        """The clients of users, in the order in which they were made."""

    def grant(self, *rules: str, who: str = JANE, namespace: str = "*") -> None:
        """Allow somebody something in a namespace, or in all of them."""
        self.rules.setdefault(who, set()).update(f"{rule} {namespace}" for rule in rules)

    def acting_as(self, token: str) -> MemberClient:
        """See `UserClients`."""
        return self._member(lambda: self.users.get(token))

    def impersonating(self, user: Object) -> MemberClient:
        """See `UserClients`."""
        acting = user | {"groups": [*user["groups"], "system:authenticated"]}
        return self._member(lambda: acting)

    def _member(self, user: Callable[[], Object | None]) -> MemberClient:
        self.acting.append(MemberClient(self, user))
        return self.acting[-1]

    async def request(self, method: str, path: str, **more: Any) -> Object:
        """See `RawClient`: discovery."""
        return {"versions": [{"version": "v2alpha1"}]}

    def allows(self, user: Object, attributes: Object) -> bool:
        """Whether a rule allows it."""
        what = f"{attributes['verb']} {attributes['resource']}"
        what += f"/{attributes['subresource']}" if attributes.get("subresource") else ""
        held: set[str] = set().union(*(self.rules.get(who, set()) for who in (user["username"], *user["groups"])))
        return bool(held & {f"{what} *", f"{what} {attributes.get('namespace') or '*'}"})

    async def send(self, request: ObjectRequest) -> Object | None:
        """See `Client.send`."""
        body: Any = request.body
        match request.resource.kind:
            case "SelfSubjectAccessReview":
                return {"status": {"allowed": True}}
            case "TokenReview" | "SubjectAccessReview" as kind:
                self.reviews.append(body)
                if self.held is not None and kind == "SubjectAccessReview":
                    await self.held.wait()
                if self.failure is not None:
                    raise self.failure
                answer = self._token if kind == "TokenReview" else self._access
                return {**body, "status": answer(body["spec"])}
        return await super().send(request)

    def _token(self, spec: Object) -> Object:
        user = self.users.get(spec["token"])
        return {"authenticated": user is not None, "user": user or {}}

    def _access(self, spec: Object) -> Object:
        user = {"username": spec["user"], "groups": spec["groups"]}
        return {"allowed": self.allows(user, spec["resourceAttributes"])}


class MemberClient(FakeClient):
    """The API server as a user sees it, whom it may not know any more."""

    def __init__(self, server: ClusterClient, user: Callable[[], Object | None]) -> None:
        super().__init__(fake_server=server.fake_server)
        self._server = server
        self._user = user

    async def send(self, request: ObjectRequest) -> Object | None:
        """See `Client.send`."""
        if request.resource.kind == "SelfSubjectAccessReview":
            body: Any = request.body
            return {"status": {"allowed": self._server.allows(self._known(), body["spec"]["resourceAttributes"])}}
        self._check(_VERBS.get(request.verb, request.verb), request.resource.plural, request.key)
        return await super().send(request)

    async def list_page(
        self, resource: Resource, selection: Selection = EVERYTHING, options: ListOptions = DEFAULT_LIST
    ) -> ObjectList:
        """See `Client.list_page`."""
        self._check("list", resource.plural, ObjectKey(selection.namespace or "", ""))
        return await super().list_page(resource, selection, options)

    @asynccontextmanager
    async def logs(self, pod: str, namespace: str, options: LogOptions) -> AsyncIterator[AsyncIterator[bytes]]:  # type: ignore[override]
        """See `Client.logs`."""
        self._check("get", PODS.plural, ObjectKey(namespace, pod), "log")
        async with super().logs(pod, namespace, options) as chunks:
            yield chunks

    def _known(self) -> Object:
        user = self._user()
        if user is None:
            raise UnauthorizedError(401, "the API server does not accept the credentials")
        return user

    def _check(self, verb: str, resource: str, key: ObjectKey, subresource: str = "") -> None:
        attributes = {"verb": verb, "resource": resource, "subresource": subresource, "namespace": key.namespace}
        if not self._server.allows(self._known(), attributes):
            raise ForbiddenError(403, f"{resource} is forbidden: you may not {verb} it")
