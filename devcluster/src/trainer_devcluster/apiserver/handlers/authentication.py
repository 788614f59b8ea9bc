"""TokenRequest, TokenReview and SelfSubjectReview."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from trainer.kube.api_semantics import statuses
from trainer.kube.clock import timestamp
from trainer.kube.field_errors import invalid
from trainer.kube.objects import ObjectKey, metadata_of, name_of, uid_of
from trainer.kube.resource import NODES
from trainer_devcluster.apiserver.authentication.service_account_tokens import (
    BINDABLE,
    Binding,
    InvalidTokenError,
)
from trainer_devcluster.apiserver.authentication.signing_key import ISSUER
from trainer_devcluster.apiserver.handlers.review import Review
from trainer_devcluster.apiserver.kinds.authentication import TOKEN_REQUEST
from trainer_devcluster.apiserver.reads import reading
from trainer_devcluster.apiserver.storage.storage import Partition

if TYPE_CHECKING:
    from aiohttp import web

    from trainer.kube.objects import Object
    from trainer_devcluster.apiserver.handlers.call import Call

_DEFAULT_SECONDS: Final = 3600
_MIN_SECONDS: Final = 600
_MAX_SECONDS: Final = 1 << 32


async def token(call: Call) -> web.StreamResponse:
    """POST of a TokenRequest: a token for the ServiceAccount in the path."""
    account = reading.get(call.backend, call.target)
    review = await Review.of(call, TOKEN_REQUEST)
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
    review = await Review.of(call)
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
    review = await Review.of(call)
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
