"""Events: what components tell users about objects (core/v1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.devcluster.apiserver.definitions import ResourceDefinition
from trainer.devcluster.apiserver.kinds.editing import fill
from trainer.devcluster.apiserver.strategy import StoreOnlyStrategy
from trainer.kube.field_errors import invalid
from trainer.kube.objects import namespace_of
from trainer.kube.resource import EVENTS

if TYPE_CHECKING:
    from trainer.devcluster.apiserver.strategy import WriteContext
    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object


class EventStrategy(StoreOnlyStrategy):
    """core/v1 Event."""

    def default(self, obj: Object, context: WriteContext) -> None:  # noqa: ARG002 - the protocol's signature
        """Write the fields that are serialised even when empty."""
        fill(obj, source={}, firstTimestamp=None, lastTimestamp=None, eventTime=None)
        fill(obj, involvedObject={}, reportingComponent="", reportingInstance="")

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:  # noqa: ARG002
        """Check that the event stands in the namespace of its object ("default" for cluster-scoped ones)."""
        about = obj["involvedObject"].get("namespace") or ""
        if (about or "default") != namespace_of(obj):
            return [invalid("involvedObject.namespace", about, "does not match event.namespace")]
        return []


EVENT = ResourceDefinition(EVENTS, EventStrategy(), singular="event", short_names=("ev",), generation=False)
