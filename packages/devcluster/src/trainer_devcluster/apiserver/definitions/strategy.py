"""Strategies: what one kind does to its objects between decoding and storing them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from trainer.kube.field_errors import FieldError
from trainer.kube.objects import Object, ObjectKey
from trainer.kube.resource import Resource
from trainer_devcluster.apiserver.objects.decoding import WrongTypeError, normalize
from trainer_devcluster.apiserver.schema.structural import StructuralSchema
from trainer_devcluster.feature_gates import DEFAULT_FEATURE_GATES, FeatureGates


@dataclass(frozen=True, slots=True)
class WriteContext:
    """The request and the cluster, as a strategy sees them."""

    subresource: str | None
    """`status`, `scale` or None for the object itself."""
    dry_run: bool
    """Whether nothing will be stored: allocate nothing."""
    now: str
    """Time of the request, RFC 3339 in whole seconds."""
    service_ip: Callable[[], str]
    """Returns a free cluster IP for a Service."""
    stored: Callable[[Resource, ObjectKey], Object | None]
    """Returns another object as it is stored, not to be changed; None when there is none."""
    listed: Callable[[Resource], Sequence[Object]] = lambda _: ()
    """Returns all stored objects of a resource, not to be changed. Defaults to none, for tests."""
    warn: Callable[[str], None] = lambda _: None
    """Tells the client something beside the answer, in a Warning header. Defaults to telling nobody, for tests."""
    gates: FeatureGates = DEFAULT_FEATURE_GATES
    """The feature gates of the server."""


class Strategy:
    """The hooks of one kind, in the order in which a write calls them; none of them does I/O.

    Defaults come first and are idempotent; new objects are admitted before mutating webhooks see them; then the object
    is prepared (server-owned fields) and validated. These hooks keep objects as they come; a kind overrides what it
    needs.
    """

    def default(self, obj: Object, context: WriteContext) -> None:
        """Fill in absent fields, in place; called on every create and update."""

    def admit(self, obj: Object, context: WriteContext) -> None:
        """Do to a new object, in place, what admission plugins of the server do; called again when webhooks change it.

        An object whose name the server is to make up has none yet.
        """

    def prepare_for_create(self, obj: Object, context: WriteContext) -> None:
        """Set server-owned fields of a new object, in place; metadata (uid, name, generation) is already set."""

    def prepare_for_update(self, obj: Object, old: Object, context: WriteContext) -> None:
        """Set server-owned fields of a changed object, in place.

        The core has already kept the fields that the endpoint may not change (`status` on the main resource,
        everything else on `/status`).
        """

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:  # noqa: ARG002 - for those that need it
        """Validate a new object."""
        return []

    def validate_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:  # noqa: ARG002
        """Validate a changed object; like a new one, unless a kind says otherwise."""
        return self.validate(obj, context)


class SchemaStrategy(Strategy):
    """Defaults and validates custom resources by the schema of their version."""

    def __init__(self, schema: StructuralSchema) -> None:
        self._schema = schema

    def default(self, obj: Object, context: WriteContext) -> None:  # noqa: ARG002
        """Fill in the defaults of the schema."""
        self._schema.default(obj)

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:  # noqa: ARG002
        """Check the keywords and the CEL rules of the schema."""
        return self._schema.validate(obj)

    def validate_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:
        """Check the schema, its transition rules included."""
        return self._schema.validate(obj, old, subresource=context.subresource)


class WebhookStrategy(SchemaStrategy):
    """Adds to a schema what admission webhooks do, in this process: one changes new objects, one validates all."""

    def __init__(self, schema: StructuralSchema, webhook: Strategy) -> None:
        super().__init__(schema)
        self._webhook = webhook

    def prepare_for_create(self, obj: Object, context: WriteContext) -> None:
        """Fill in the defaults of the webhook; as with those of any webhook, nobody becomes their manager."""
        if self._decodes(obj):
            self._webhook.default(obj, context)
            self.default(obj, context)
        self._webhook.prepare_for_create(obj, context)

    def prepare_for_update(self, obj: Object, old: Object, context: WriteContext) -> None:
        """Let the webhook prepare the object."""
        self._webhook.prepare_for_update(obj, old, context)

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:
        """Check the schema, and what the webhook checks in objects that fit it."""
        return super().validate(obj, context) or self._webhook.validate(obj, context)

    def validate_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:
        """Check the schema, and what the webhook checks in objects that fit it."""
        return super().validate_update(obj, old, context) or self._webhook.validate_update(obj, old, context)

    def _decodes(self, obj: Object) -> bool:
        # A webhook gets typed objects; those that cannot be decoded are left to the validation by the schema.
        try:
            normalize(copy.deepcopy(obj), self._schema.typing)
        except WrongTypeError:
            return False
        return True
