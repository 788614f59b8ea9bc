"""The kinds of authentication.k8s.io and authorization.k8s.io: questions that are answered and never kept."""

from __future__ import annotations

from typing import Final

from trainer.kube.resource import Resource
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition
from trainer_devcluster.apiserver.definitions.strategy import Strategy

AUTHENTICATION: Final = "authentication.k8s.io"
AUTHORIZATION: Final = "authorization.k8s.io"
_ANSWERED: Final = Strategy()


def _review(group: str, kind: str, *, namespaced: bool = False) -> ResourceDefinition:
    return ResourceDefinition(
        Resource(group, "v1", f"{kind.lower()}s", kind, namespaced=namespaced),
        _ANSWERED,
        singular=kind.lower(),
        verbs=("create",),
        generation=False,
        stored=False,
    )


TOKEN_REQUEST = _review(AUTHENTICATION, "TokenRequest", namespaced=True)
"""The body of the subresource `token` of ServiceAccounts; not a resource of its own."""
REVIEWS = (
    _review(AUTHENTICATION, "TokenReview"),
    _review(AUTHENTICATION, "SelfSubjectReview"),
    _review(AUTHORIZATION, "SelfSubjectAccessReview"),
    _review(AUTHORIZATION, "SelfSubjectRulesReview"),
    _review(AUTHORIZATION, "SubjectAccessReview"),
)
