"""Answers of an API server that only one with connections, users and kinds gives; the rest are in `statuses`.

Reasons and their codes: Kubernetes API conventions, "Response Status Kind".
"""

from __future__ import annotations

from collections.abc import Iterable

from trainer.kube.errors import ApiError
from trainer.kube.field_errors import FieldError
from trainer.kube.objects import Object
from trainer.kube.resource import Resource
from trainer_kube_testing.api_semantics import statuses


def success(resource: Resource, name: str, uid: str) -> Object:
    """The Status that answers a deletion after which the object is gone."""
    details = {**statuses.details_of(resource, name), "uid": uid}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


def unauthorized() -> ApiError:
    """401: no, unknown or expired credentials."""
    return statuses.failure(401, "Unauthorized", "Unauthorized")


def forbidden(resource: Resource, name: str, message: str, causes: Iterable[FieldError] = ()) -> ApiError:
    """403: understood, but not allowed."""
    details = statuses.details_of(resource, name)
    entries = [cause.to_object() for cause in causes]
    if entries:
        details["causes"] = entries
    quoted = f' "{name}"' if name else ""
    return statuses.failure(403, "Forbidden", f"{resource.qualified_name}{quoted} is forbidden: {message}", details)


def method_not_allowed(message: str = "the server does not allow this method on the requested resource") -> ApiError:
    """405: the resource exists but not this verb."""
    return statuses.failure(405, "MethodNotAllowed", message, {})


def not_acceptable(accepted: Iterable[str]) -> ApiError:
    """406: none of the media types in the Accept header can be produced."""
    message = f"only the following media types are accepted: {', '.join(accepted)}"
    return statuses.failure(406, "NotAcceptable", message)


def generate_name_conflict(resource: Resource, name: str) -> ApiError:
    """409 on create: the generated names are taken, which another attempt can overcome."""
    message = (
        f'{resource.qualified_name} "{name}" already exists, the server was not able to generate a unique name for the '
        "object"
    )
    details = {**statuses.details_of(resource, name), "retryAfterSeconds": statuses.INITIAL_DELAY_SECONDS}
    return statuses.failure(409, "AlreadyExists", message, details)
