"""Events (core/v1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trainer.kube.field_errors import FieldError, invalid, required
from trainer.kube.names import qualified_name_problems
from trainer.kube.objects import Object, namespace_of
from trainer.kube.resource import EVENTS
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition
from trainer_devcluster.apiserver.definitions.strategy import Strategy, WriteContext
from trainer_devcluster.apiserver.kinds.fields import fill

_MAX_LENGTH: Final = 128
_MAX_MESSAGE: Final = 1024


class EventStrategy(Strategy):
    """core/v1 Event."""

    def default(self, obj: Object, context: WriteContext) -> None:  # noqa: ARG002 - the protocol's signature
        """Write the fields that are serialised even when empty."""
        fill(obj, source={}, firstTimestamp=None, lastTimestamp=None, eventTime=None)
        fill(obj, involvedObject={}, reportingComponent="", reportingInstance="")

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:  # noqa: ARG002
        """Check that the event stands in the namespace of its object, and who reports it if it has an eventTime."""
        return _validate(obj)


def _validate(event: Object) -> list[FieldError]:
    about, namespace = event["involvedObject"].get("namespace") or "", namespace_of(event)
    mismatch = [invalid("involvedObject.namespace", about, "does not match event.namespace")]
    if not event.get("eventTime"):
        return mismatch if (about or "default") != namespace else []
    causes = mismatch if not about and namespace not in ("default", "kube-system") else []
    return [*causes, *_validate_reporter(event)]


def _validate_reporter(event: Object) -> Iterator[FieldError]:
    controller = event.get("reportingComponent") or ""
    if not controller:
        yield required("reportingComponent")
    for problem in qualified_name_problems(controller):
        yield invalid("reportingComponent", controller, problem)
    for field in ("reportingInstance", "action", "reason"):
        if not event.get(field):
            yield required(field)
        elif len(event[field].encode()) > _MAX_LENGTH:
            yield invalid(field, "", f"can have at most {_MAX_LENGTH} characters")
    if len((event.get("message") or "").encode()) > _MAX_MESSAGE:
        yield invalid("message", "", f"can have at most {_MAX_MESSAGE} characters")


EVENT = ResourceDefinition(EVENTS, EventStrategy(), singular="event", short_names=("ev",), generation=False)
