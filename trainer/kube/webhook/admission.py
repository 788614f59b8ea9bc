"""Admission: the request and the response of a webhook, for one request to the API server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import StrEnum
from typing import TypeAlias

import msgspec

from trainer.kube.field_errors import FieldError
from trainer.kube.objects import Object
from trainer.kube.resource import Resource
from trainer.kube.webhook.texts import shown_errors


class Operation(StrEnum):
    """What the request does to the object."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    """Updates, patches and server-side apply of an object that exists."""
    DELETE = "DELETE"
    CONNECT = "CONNECT"
    """A request to a subresource such as `exec` or `proxy`."""


class AdmissionRequest(msgspec.Struct, frozen=True):
    """What the API server sends (admission.k8s.io/v1 AdmissionRequest)."""

    uid: str
    """UID of this one call of this webhook, not of the object; log events carry it as `request_id`."""
    operation: Operation
    resource: Resource
    """Group, version, plural and kind of what the object was converted to for this webhook."""
    subresource: str
    """The subresource, such as `status`; "" is the object itself."""
    name: str
    """"" when the server makes the name from `metadata.generateName` after mutating admission."""
    namespace: str
    """"" for cluster-scoped objects."""
    object: Object | None
    """The object as it would be stored, for the handler to keep or change; None for DELETE."""
    old_object: Object | None
    """The object as it is stored; None for CREATE and CONNECT."""
    dry_run: bool
    """Nothing will be stored, so nothing may be changed elsewhere either."""
    username: str
    """Who sent the request."""
    groups: tuple[str, ...]
    options: Object | None = None
    """CreateOptions, UpdateOptions, PatchOptions or DeleteOptions of the request. Default: none were sent."""


class AdmissionResponse(msgspec.Struct, frozen=True):
    """What the webhook answers; make it with `allow`, `mutate`, `deny` or `fail`."""

    allowed: bool
    status_code: int = 200
    """HTTP status for the client of the API server when it is not allowed. Default: 200."""
    reason: str = ""
    """A metav1.StatusReason, such as `Invalid`. Default: none."""
    message: str = ""
    """The client sees it after `admission webhook "NAME" denied the request: `. Default: none."""
    causes: tuple[FieldError, ...] = ()
    """The errors, field by field; kubectl lists them. Default: none."""
    warnings: tuple[str, ...] = ()
    """For the client, whether allowed or not; 120 characters or less are shown whole everywhere. Default: none."""
    object: Object | None = None
    """What the object becomes; the server computes the patch. Default: None, it stays as it is."""
    audit_annotations: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Added to the audit event under the name of the webhook. Default: none."""

    @classmethod
    def allow(cls, warnings: Sequence[str] = ()) -> AdmissionResponse:
        """The request may go on."""
        return cls(allowed=True, warnings=tuple(warnings))

    @classmethod
    def mutate(cls, obj: Object, warnings: Sequence[str] = ()) -> AdmissionResponse:
        """The request may go on with this object; only of use in a MutatingWebhookConfiguration."""
        return cls(allowed=True, object=obj, warnings=tuple(warnings))

    @classmethod
    def deny(cls, errors: Sequence[FieldError], *, warnings: Sequence[str] = ()) -> AdmissionResponse:
        """The object is invalid (422); the message is worded as that of the API server's own validation, and bounded.

        Raises:
            ValueError: there is no error.
        """
        if not errors:
            raise ValueError("a denial needs at least one error that says what is wrong")
        causes = shown_errors(errors)
        texts = tuple(dict.fromkeys(map(str, causes)))
        message = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
        return cls(
            allowed=False,
            status_code=422,
            reason="Invalid",
            message=message,
            causes=causes,
            warnings=tuple(warnings),
        )

    @classmethod
    def fail(cls, code: int, reason: str, message: str, *, warnings: Sequence[str] = ()) -> AdmissionResponse:
        """The request is refused for something else than its fields, such as 403 `Forbidden` or 500 `InternalError`."""
        return cls(allowed=False, status_code=code, reason=reason, message=message, warnings=tuple(warnings))


AdmissionHandler: TypeAlias = Callable[[AdmissionRequest], Awaitable[AdmissionResponse]]
"""Answers one request. It may be called for many at once, must not block, and is cancelled when the time is up.

Whatever it raises refuses the request: with the text of a `KubeError`, or without details for anything else.
"""
