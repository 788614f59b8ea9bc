"""An API server that knows some tokens and what their owners may."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

from trainer.kube.client import ObjectRequest
from trainer.kube.errors import KubeError
from trainer.kube.objects import Object
from trainer.kube.resource import Resource
from trainer_kube_testing import FakeClient

PROMETHEUS = {
    "username": "system:serviceaccount:monitoring:prometheus",
    "uid": "4711",
    "groups": ["system:serviceaccounts", "system:authenticated"],
    "extra": {"authentication.kubernetes.io/pod-name": ["prometheus-0"]},
}
TOKEN = "header.payload.signature"


class Reviewer(FakeClient):
    """Answers reviews, and notes them.

    Args:
        users: what a TokenReview tells of whom, by token.
        allowed: verbs and paths, or resources, that everybody may.
        resources: served besides the built-in ones.
    """

    def __init__(
        self,
        users: Mapping[str, Object] | None = None,
        allowed: tuple[tuple[str, str], ...] = (),
        resources: Iterable[Resource] = (),
    ) -> None:
        super().__init__(resources=resources)
        self.users = {TOKEN: PROMETHEUS} if users is None else dict(users)
        self.allowed = allowed
        self.audiences = ["https://kubernetes.default.svc"]
        self.reviews: list[Object] = []
        self.failure: KubeError | None = None

    def asked(self, kind: str) -> list[Object]:
        """What was asked."""
        return [review["spec"] for review in self.reviews if review["kind"] == kind]

    async def send(self, request: ObjectRequest) -> Object | None:
        kind = request.resource.kind
        if kind not in {"TokenReview", "SubjectAccessReview"}:
            return await super().send(request)
        obj = cast("Object", request.body)
        self.reviews.append(obj)
        if self.failure is not None:
            raise self.failure
        answer = self._token(obj["spec"]) if kind == "TokenReview" else self._access(obj["spec"])
        return obj | {"status": answer}

    def _token(self, spec: Object) -> Object:
        user = self.users.get(spec["token"])
        wanted = spec.get("audiences") or self.audiences
        if user is None or not set(wanted) & set(self.audiences):
            return {"user": {}, "error": "unknown"}
        return {"authenticated": True, "user": user, "audiences": [each for each in wanted if each in self.audiences]}

    def _access(self, spec: Object) -> Object:
        attributes = spec.get("nonResourceAttributes") or spec["resourceAttributes"]
        return {"allowed": (attributes["verb"], attributes.get("path") or attributes["resource"]) in self.allowed}
