"""SubjectAccessReview, for others and for oneself, and SelfSubjectRulesReview."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from trainer.kube.api_semantics import statuses
from trainer.kube.field_errors import invalid
from trainer_devcluster.apiserver.authentication.user import User
from trainer_devcluster.apiserver.authorization.authorizer import Attributes
from trainer_devcluster.apiserver.authorization.rbac import joined
from trainer_devcluster.apiserver.handlers.review import Review
from trainer_devcluster.apiserver.kinds.authorization import GROUP

if TYPE_CHECKING:
    from aiohttp import web

    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object
    from trainer_devcluster.apiserver.handlers.call import Call

_RESOURCE = "spec.resourceAttributes"


async def subject_access_review(call: Call) -> web.StreamResponse:
    """POST of a SubjectAccessReview: whether somebody may do something."""
    review = await _read(call)
    spec = review.object["spec"]
    causes = _validate_question(spec)
    if not spec.get("user") and not spec.get("groups"):
        causes.append(invalid("spec.user", "", "at least one of user or group must be specified"))
    return _decided(call, review, _named_user(spec), causes)


async def self_subject_access_review(call: Call) -> web.StreamResponse:
    """POST of a SelfSubjectAccessReview: whether the sender may do something."""
    review = await _read(call)
    return _decided(call, review, call.user, _validate_question(review.object["spec"]))


async def self_subject_rules_review(call: Call) -> web.StreamResponse:
    """POST of a SelfSubjectRulesReview: what the sender may do in a namespace."""
    review = await _read(call)
    namespace = review.object["spec"].get("namespace")
    if not namespace:
        raise statuses.bad_request("no namespace on request")
    held = call.access.authorizer.rules_of(call.user, namespace)
    rules = [rule.to_object() for rule in held.rules]
    outcome: Object = {
        "resourceRules": [rule for rule in rules if "resources" in rule],
        "nonResourceRules": [rule for rule in rules if "nonResourceURLs" in rule],
        "incomplete": False,
    }
    if held.problems:
        outcome["evaluationError"] = joined(held.problems)
    # The real server answers with a new object that does not repeat the question.
    review.object["metadata"], review.object["spec"] = {}, {}
    return review.answered(outcome)


async def _read(call: Call) -> Review:
    review = await Review.of(call)
    review.note_manager()
    return review


def _decided(call: Call, review: Review, user: User, causes: list[FieldError]) -> web.Response:
    if causes:
        # The real server has lost the kind when it gets here.
        raise statuses.invalid("", GROUP, "", causes)
    decision = call.access.authorizer.authorize(_attributes(user, review.object["spec"]))
    outcome: Object = {"allowed": decision.allowed}
    if decision.reason:
        outcome["reason"] = decision.reason
    return review.answered(outcome)


def _named_user(spec: Object) -> User:
    extra = {key: tuple(values or ()) for key, values in (spec.get("extra") or {}).items()}
    groups = tuple(spec.get("groups") or ())
    return User(spec.get("user") or "", groups, spec.get("uid") or "", MappingProxyType(extra))


def _attributes(user: User, spec: Object) -> Attributes:
    path = spec.get("nonResourceAttributes")
    if path is not None:
        # A question about no path at all is one that nobody may do.
        return Attributes(user, path.get("verb") or "", path=path.get("path") or " ")
    wanted = spec["resourceAttributes"]
    fields = ("verb", "group", "version", "resource", "subresource", "namespace", "name")
    return Attributes(user, *(wanted.get(field) or "" for field in fields))


def _validate_question(spec: Object) -> list[FieldError]:
    asked = [name for name in ("resourceAttributes", "nonResourceAttributes") if spec.get(name) is not None]
    if len(asked) == 1:
        return []
    return [invalid(_RESOURCE, None, "exactly one of nonResourceAttributes or resourceAttributes must be specified")]
