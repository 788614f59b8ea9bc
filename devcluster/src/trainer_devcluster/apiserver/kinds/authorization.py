"""The kinds of authorization.k8s.io: questions about what somebody may do, answered and never kept."""

from __future__ import annotations

from typing import Final

from trainer.kube.resource import Resource
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition
from trainer_devcluster.apiserver.definitions.strategy import StoreOnlyStrategy

GROUP: Final = "authorization.k8s.io"
_ANSWERED: Final = StoreOnlyStrategy()


def _review(kind: str) -> ResourceDefinition:
    return ResourceDefinition(
        Resource(GROUP, "v1", f"{kind.lower()}s", kind, namespaced=False),
        _ANSWERED,
        singular=kind.lower(),
        verbs=("create",),
        generation=False,
        stored=False,
    )


SELF_SUBJECT_ACCESS_REVIEW = _review("SelfSubjectAccessReview")
SELF_SUBJECT_RULES_REVIEW = _review("SelfSubjectRulesReview")
SUBJECT_ACCESS_REVIEW = _review("SubjectAccessReview")
