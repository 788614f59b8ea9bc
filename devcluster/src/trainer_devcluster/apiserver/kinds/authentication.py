"""The kinds of authentication.k8s.io: requests for tokens and reviews of them, answered and never kept."""

from __future__ import annotations

from trainer.kube.resource import Resource
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition
from trainer_devcluster.apiserver.definitions.strategy import StoreOnlyStrategy

_GROUP = "authentication.k8s.io"
_ANSWERED = StoreOnlyStrategy()


def _review(plural: str, kind: str, *, namespaced: bool = False) -> ResourceDefinition:
    return ResourceDefinition(
        Resource(_GROUP, "v1", plural, kind, namespaced=namespaced),
        _ANSWERED,
        singular=kind.lower(),
        verbs=("create",),
        generation=False,
        stored=False,
    )


TOKEN_REVIEW = _review("tokenreviews", "TokenReview")
SELF_SUBJECT_REVIEW = _review("selfsubjectreviews", "SelfSubjectReview")
TOKEN_REQUEST = _review("tokenrequests", "TokenRequest", namespaced=True)
"""The body of the subresource `token` of ServiceAccounts; not a resource of its own."""
