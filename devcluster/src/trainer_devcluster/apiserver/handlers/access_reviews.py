"""SubjectAccessReview in its three forms, and SelfSubjectRulesReview."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from trainer.kube.api_semantics import statuses
from trainer.kube.field_errors import invalid, required
from trainer.kube.objects import metadata_of
from trainer_devcluster.apiserver.authentication.user import User
from trainer_devcluster.apiserver.authorization.attributes import Attributes
from trainer_devcluster.apiserver.authorization.rbac import joined
from trainer_devcluster.apiserver.handlers.review import Review
from trainer_devcluster.apiserver.kinds.authorization import GROUP

if TYPE_CHECKING:
    from aiohttp import web

    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object
    from trainer_devcluster.apiserver.handlers.call import Call

_RESOURCE = "spec.resourceAttributes"
_PATH = "spec.nonResourceAttributes"


async def subject_access_review(call: Call) -> web.StreamResponse:
    """POST of a SubjectAccessReview: whether somebody may do something."""
    review = await _read(call)
    spec = review.object["spec"]
    causes = [
        *_validate_question(spec),
        *_validate_user(spec),
        *_validate_selectors(spec.get("resourceAttributes")),
        *_validate_metadata(review.object),
    ]
    return _decided(call, review, _named_user(spec), causes)


async def local_subject_access_review(call: Call) -> web.StreamResponse:
    """POST of a LocalSubjectAccessReview: whether somebody may do something in the namespace of the path."""
    review = await _read(call)
    spec, namespace = review.object["spec"], call.target.namespace
    review.object["metadata"]["namespace"] = namespace
    resource = spec.get("resourceAttributes")
    causes = [
        *_validate_question(spec),
        *_validate_user(spec),
        *_validate_selectors(resource),
        *_validate_metadata(review.object, "namespace"),
    ]
    if resource is not None and (resource.get("namespace") or "") != namespace:
        wanted = resource.get("namespace") or ""
        causes.append(invalid(f"{_RESOURCE}.namespace", wanted, "must match metadata.namespace"))
    if spec.get("nonResourceAttributes") is not None:
        causes.append(invalid(_PATH, _shown(spec["nonResourceAttributes"]), "disallowed on this kind of request"))
    return _decided(call, review, _named_user(spec), causes)


async def self_subject_access_review(call: Call) -> web.StreamResponse:
    """POST of a SelfSubjectAccessReview: whether the sender may do something."""
    review = await _read(call)
    spec = review.object["spec"]
    causes = [
        *_validate_question(spec),
        *_validate_selectors(spec.get("resourceAttributes")),
        *_validate_metadata(review.object),
    ]
    return _decided(call, review, call.user, causes)


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
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    causes: list[FieldError] = []
    if resource is not None and path is not None:
        causes.append(invalid(_PATH, _shown(path), "cannot be specified in combination with resourceAttributes"))
    if resource is None and path is None:
        detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        causes.append(invalid(_RESOURCE, None, detail))
    return causes


def _validate_selectors(resource: Object | None) -> list[FieldError]:
    selectors = {name: (resource or {}).get(name) for name in ("fieldSelector", "labelSelector")}
    return [
        cause
        for name, selector in selectors.items()
        if selector is not None
        for cause in _validate_selector(selector, f"{_RESOURCE}.{name}")
    ]


def _validate_selector(selector: Object, path: str) -> list[FieldError]:
    raw, requirements = selector.get("rawSelector"), selector.get("requirements")
    if raw and requirements:
        return [invalid(f"{path}.rawSelector", raw, "may not specified at the same time as requirements")]
    if not raw and not requirements:
        return [required(f"{path}.requirements", f"when {path} is specified, requirements or rawSelector is required")]
    return []


def _validate_user(spec: Object) -> list[FieldError]:
    if spec.get("user") or spec.get("groups"):
        return []
    return [invalid("spec.user", "", "at least one of user or group must be specified")]


def _validate_metadata(review: Object, *allowed: str) -> list[FieldError]:
    rest = {name: value for name, value in metadata_of(review).items() if name not in (*allowed, "managedFields")}
    if not rest:
        return []
    detail = "must be empty except for namespace" if allowed else "must be empty"
    return [invalid("metadata", rest, detail)]


def _shown(attributes: Object) -> Object:
    return {"Path": attributes.get("path") or "", "Verb": attributes.get("verb") or ""}
