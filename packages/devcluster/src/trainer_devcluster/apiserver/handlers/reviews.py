"""Reviews: objects that are answered and not kept.

They are TokenRequest, TokenReview and SelfSubjectReview, SubjectAccessReview for others and for oneself, and
SelfSubjectRulesReview.
"""

from __future__ import annotations

from datetime import timedelta
from types import MappingProxyType
from typing import Final

from aiohttp import web

from trainer.kube.clock import timestamp
from trainer.kube.errors import ApiError
from trainer.kube.field_errors import FieldError, invalid
from trainer.kube.objects import Object, ObjectKey, metadata_of, name_of, uid_of
from trainer.kube.resource import NODES
from trainer_devcluster.apiserver.authentication.service_account_tokens import (
    BINDABLE,
    ISSUER,
    Binding,
    InvalidTokenError,
)
from trainer_devcluster.apiserver.authentication.user import User
from trainer_devcluster.apiserver.authorization.rbac import joined
from trainer_devcluster.apiserver.authorization.rules import AccessCheck
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition
from trainer_devcluster.apiserver.definitions.routing import Target
from trainer_devcluster.apiserver.handlers.call import Call, answer
from trainer_devcluster.apiserver.kinds.reviews import AUTHORIZATION, TOKEN_REQUEST
from trainer_devcluster.apiserver.objects.built_in_types import empty_object
from trainer_devcluster.apiserver.reads import reading
from trainer_devcluster.apiserver.storage.storage import Partition
from trainer_devcluster.apiserver.writes.write import Write
from trainer_kube_testing.api_semantics import field_managers, statuses


class ReviewRequest:
    """One request for an answer: the object that came, and the object that goes back."""

    def __init__(self, call: Call, write: Write, obj: Object) -> None:
        self._call = call
        self._write = write
        self.object = obj
        """As it came; `spec` is always an object."""

    @classmethod
    async def of(cls, call: Call, definition: ResourceDefinition | None = None) -> ReviewRequest:
        """Read the body of a request.

        Args:
            call: the request.
            definition: what the body is, when it is not an object of the target's kind.

        Raises:
            ApiError: 400, 413 or 415, it cannot be read or is something else.
        """
        write = call.write_of(_target(call, definition or call.target.definition))
        body, write.duplicates = await call.decoded()
        obj = write.accept(body)
        obj.pop("status", None)
        obj["spec"] = obj.get("spec") or {}
        return cls(call, write, obj)

    def note_manager(self, subresource: str | None = None) -> None:
        """Say in the answer who has set which fields, as the real server does; call it before the answer is put in."""
        definition = self._write.target.definition
        entries = field_managers.update(
            None,
            self.object,
            manager=self._write.parameters.field_manager,
            schema=definition.typing,
            subresource=subresource,
            now=self._call.backend.now(),
            empty=empty_object(self.object),
        )
        self.object["metadata"].pop("managedFields", None)
        if entries:
            self.object["metadata"]["managedFields"] = entries

    def refused(self, *causes: FieldError) -> ApiError:
        """A 422 that names what is wrong with it."""
        resource = self._write.target.definition.resource
        return statuses.invalid(resource.kind, resource.group, self.object["metadata"].get("name", ""), list(causes))

    def answered(self, outcome: Object) -> web.Response:
        """The answer, with the outcome as its status."""
        body = {**self.object, "status": outcome}
        return answer(body, 201, warnings=self._write.warnings.texts)


def _target(call: Call, definition: ResourceDefinition) -> Target:
    return Target(definition, "create", call.target.namespace)


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


async def _read(call: Call) -> ReviewRequest:
    review = await ReviewRequest.of(call)
    review.note_manager()
    return review


def _decided(call: Call, review: ReviewRequest, user: User, causes: list[FieldError]) -> web.Response:
    if causes:
        # The real server has lost the kind when it gets here.
        raise statuses.invalid("", AUTHORIZATION, "", causes)
    decision = call.access.authorizer.authorize(_attributes(user, review.object["spec"]))
    outcome: Object = {"allowed": decision.allowed}
    if decision.reason:
        outcome["reason"] = decision.reason
    return review.answered(outcome)


def _named_user(spec: Object) -> User:
    extra = {key: tuple(values or ()) for key, values in (spec.get("extra") or {}).items()}
    groups = tuple(spec.get("groups") or ())
    return User(spec.get("user") or "", groups, spec.get("uid") or "", MappingProxyType(extra))


def _attributes(user: User, spec: Object) -> AccessCheck:
    path = spec.get("nonResourceAttributes")
    if path is not None:
        # A question about no path at all is one that nobody may do.
        return AccessCheck(user, path.get("verb") or "", path=path.get("path") or " ")
    wanted = spec["resourceAttributes"]
    fields = ("verb", "group", "version", "resource", "subresource", "namespace", "name")
    return AccessCheck(user, *(wanted.get(field) or "" for field in fields))


def _validate_question(spec: Object) -> list[FieldError]:
    asked = [name for name in ("resourceAttributes", "nonResourceAttributes") if spec.get(name) is not None]
    if len(asked) == 1:
        return []
    return [invalid(_RESOURCE, None, "exactly one of nonResourceAttributes or resourceAttributes must be specified")]


_DEFAULT_SECONDS: Final = 3600
_MIN_SECONDS: Final = 600
_MAX_SECONDS: Final = 1 << 32


async def token(call: Call) -> web.StreamResponse:
    """POST of a TokenRequest: a token for the ServiceAccount in the path."""
    account = reading.get(call.backend, call.target)
    review = await ReviewRequest.of(call, TOKEN_REQUEST)
    spec = review.object["spec"]
    seconds = spec.setdefault("expirationSeconds", _DEFAULT_SECONDS)
    review.note_manager("token")
    if seconds < _MIN_SECONDS:
        detail = "may not specify a duration less than 10 minutes"
        raise review.refused(invalid("spec.expirationSeconds", seconds, detail))
    if seconds > _MAX_SECONDS:
        detail = "may not specify a duration larger than 2^32 seconds"
        raise review.refused(invalid("spec.expirationSeconds", seconds, detail))
    spec["audiences"] = spec.get("audiences") or [ISSUER]
    spec.setdefault("boundObjectRef", None)
    binding = _binding(call, spec["boundObjectRef"])
    issued = call.access.tokens.issue(account, spec["audiences"], timedelta(seconds=seconds), binding)
    metadata = metadata_of(account)
    review.object["metadata"] = {
        "name": name_of(account),
        "namespace": call.target.namespace,
        "uid": uid_of(account),
        "creationTimestamp": metadata.get("creationTimestamp"),
        **{key: value for key, value in review.object["metadata"].items() if key == "managedFields"},
    }
    return review.answered({"token": issued.token, "expirationTimestamp": timestamp(issued.expires)})


async def token_review(call: Call) -> web.StreamResponse:
    """POST of a TokenReview: whose token it is."""
    review = await ReviewRequest.of(call)
    review.note_manager()
    spec = review.object["spec"]
    if not spec.get("token"):
        raise statuses.bad_request("token is required for TokenReview in authentication")
    try:
        identity = call.access.authenticator.identify(spec["token"], spec.get("audiences") or [ISSUER])
    except InvalidTokenError as error:
        return review.answered({"user": {}, "error": str(error)})
    return review.answered({"authenticated": True, "user": identity.user.info(), "audiences": list(identity.audiences)})


async def self_subject_review(call: Call) -> web.StreamResponse:
    """POST of a SelfSubjectReview: who sends it."""
    review = await ReviewRequest.of(call)
    review.object.pop("spec")
    review.note_manager()
    return review.answered({"userInfo": call.user.info()})


def _binding(call: Call, reference: Object | None) -> Binding | None:
    """What a token shall be bound to.

    Raises:
        ApiError: 400, it cannot be; 404, there is no such object; 409, it is another one.
    """
    if not reference:
        return None
    kind, name = str(reference.get("kind") or ""), str(reference.get("name") or "")
    resource = BINDABLE.get(kind)
    if resource is None or (reference.get("apiVersion") or "v1") != "v1":
        described = f"{reference.get('apiVersion') or ''}, Kind={kind}"
        raise statuses.bad_request(f"cannot bind token to object of type {described}: only to a Pod, Secret or Node")
    key = ObjectKey((call.target.namespace or "") if resource.namespaced else "", name)
    obj = call.backend.storage.get(Partition.of(resource), key)
    if obj is None:
        raise statuses.not_found(resource, name)
    if kind == "Pod" and (obj["spec"].get("serviceAccountName") or "default") != call.target.name:
        raise statuses.bad_request(
            f'cannot bind token for serviceaccount "{call.target.name}" to pod running with different serviceaccount '
            "name."
        )
    wanted = reference.get("uid") or ""
    if wanted and wanted != uid_of(obj):
        message = (
            f"the UID in the bound object reference ({wanted}) does not match the UID in record. The object might have "
            "been deleted and then recreated"
        )
        raise statuses.conflict(resource, name, message)
    return Binding(kind, name, uid_of(obj), _node_of(call, obj) if kind == "Pod" else None)


def _node_of(call: Call, pod: Object) -> Object | None:
    node = pod["spec"].get("nodeName")
    return call.backend.storage.get(Partition.of(NODES), ObjectKey("", node)) if node else None
