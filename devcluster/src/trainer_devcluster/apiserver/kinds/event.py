"""Events: what components tell users about objects (core/v1), and the same in the form of events.k8s.io/v1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainer.kube.field_errors import invalid, required
from trainer.kube.names import qualified_name_problems
from trainer.kube.objects import namespace_of
from trainer.kube.resource import EVENTS, Resource
from trainer_devcluster.apiserver.conversion.converter import BuiltInConverter
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition
from trainer_devcluster.apiserver.definitions.strategy import StoreOnlyStrategy
from trainer_devcluster.apiserver.definitions.versions import Versions
from trainer_devcluster.apiserver.kinds.causes import unchanged
from trainer_devcluster.apiserver.kinds.editing import fill

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object
    from trainer_devcluster.apiserver.definitions.strategy import WriteContext

_EVENTS_V1: Final = Resource("events.k8s.io", "v1", "events", "Event")
_FIELDS: Final = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
"""What fields of core/v1 are called in events.k8s.io/v1."""
_CORE_FIELDS: Final = {new: old for old, new in _FIELDS.items()}
_MAX_LENGTH: Final = 128
_MAX_MESSAGE: Final = 1024
_LEGACY: Final = ("firstTimestamp", "lastTimestamp", "count")
_SETTLED: Final = (
    "involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count", "type", "eventTime",
    "action", "related",
)  # fmt: skip
"""What an update in events.k8s.io/v1 cannot change, beside who reports; only the series goes on."""


class EventStrategy(StoreOnlyStrategy):
    """core/v1 Event."""

    def default(self, obj: Object, context: WriteContext) -> None:  # noqa: ARG002 - the protocol's signature
        """Write the fields that are serialised even when empty."""
        fill(obj, source={}, firstTimestamp=None, lastTimestamp=None, eventTime=None)
        fill(obj, involvedObject={}, reportingComponent="", reportingInstance="")

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:  # noqa: ARG002
        """Check that the event stands in the namespace of its object, and who reports it if it has an eventTime."""
        return _validate(obj, "reportingComponent")


class EventsV1Strategy(StoreOnlyStrategy):
    """events.k8s.io/v1 Event: stricter, without the fields of old; complaints name the fields of core/v1."""

    def default(self, obj: Object, context: WriteContext) -> None:  # noqa: ARG002 - the protocol's signature
        """Write the fields that are serialised even when empty."""
        fill(obj, deprecatedSource={}, deprecatedFirstTimestamp=None, deprecatedLastTimestamp=None, eventTime=None)
        fill(obj, regarding={})

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:  # noqa: ARG002
        """Check a new event, which has an eventTime and nothing that is deprecated."""
        event = _to_core(obj)
        causes = [*_validate(event, "reportingController"), *_validate_series(event)]
        if not event.get("eventTime"):
            causes.append(required("eventTime"))
        if event.get("type") not in ("Normal", "Warning"):
            causes.append(invalid("type", "", f"has invalid value: {event.get('type') or ''}"))
        causes += [invalid(field, "", "needs to be unset") for field in _LEGACY if event.get(field)]
        if any((event.get("source") or {}).values()):
            causes.append(invalid("source", "", "needs to be unset"))
        return causes

    def validate_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:  # noqa: ARG002
        """Check that nothing but the series has changed."""
        event, before = _to_core(obj), _to_core(old)
        causes = _validate(event, "reportingController")
        if event.get("series") != before.get("series"):
            causes += _validate_series(event)
        for field in _SETTLED:
            causes += unchanged(field, event.get(field), before.get(field))
        for field, name in (("reportingComponent", "reportingController"), ("reportingInstance", "reportingInstance")):
            causes += unchanged(name, event.get(field), before.get(field))
        return causes


def _validate(event: Object, controller_field: str) -> list[FieldError]:
    about, namespace = event["involvedObject"].get("namespace") or "", namespace_of(event)
    mismatch = [invalid("involvedObject.namespace", about, "does not match event.namespace")]
    if not event.get("eventTime"):
        return mismatch if (about or "default") != namespace else []
    causes = mismatch if not about and namespace not in ("default", "kube-system") else []
    return [*causes, *_validate_reporter(event, controller_field)]


def _validate_reporter(event: Object, controller_field: str) -> Iterator[FieldError]:
    controller = event.get("reportingComponent") or ""
    if not controller:
        yield required(controller_field)
    for problem in qualified_name_problems(controller):
        yield invalid(controller_field, controller, problem)
    for field in ("reportingInstance", "action", "reason"):
        if not event.get(field):
            yield required(field)
        elif len(event[field].encode()) > _MAX_LENGTH:
            yield invalid(field, "", f"can have at most {_MAX_LENGTH} characters")
    if len((event.get("message") or "").encode()) > _MAX_MESSAGE:
        yield invalid("message", "", f"can have at most {_MAX_MESSAGE} characters")


def _validate_series(event: Object) -> Iterator[FieldError]:
    series = event.get("series")
    if series is None:
        return
    if (series.get("count") or 0) < 2:
        yield invalid("series.count", "", "should be at least 2")
    if not series.get("lastObservedTime"):
        yield required("series.lastObservedTime")


def _to_core(event: Object) -> Object:
    """An event of events.k8s.io/v1 as one of core/v1."""
    core = {_CORE_FIELDS.get(field, field): value for field, value in event.items()}
    core.setdefault("reportingComponent", "")
    core.setdefault("reportingInstance", "")
    return core


def _to_events_v1(event: Object) -> Object:
    """An event of core/v1 as one of events.k8s.io/v1, which leaves out empty texts."""
    return {_FIELDS.get(field, field): value for field, value in event.items() if value != ""}


_VERSIONS: Final = Versions(
    EVENTS.api_version,
    {},
    BuiltInConverter({EVENTS.api_version: _to_core, _EVENTS_V1.api_version: _to_events_v1}),
)
EVENT = ResourceDefinition(
    EVENTS, EventStrategy(), singular="event", short_names=("ev",), generation=False, versions=_VERSIONS
)
EVENT_V1 = ResourceDefinition(
    _EVENTS_V1,
    EventsV1Strategy(),
    singular="event",
    short_names=("ev",),
    generation=False,
    versions=_VERSIONS,
    selectable_fields=(
        "reason", "regarding.kind", "regarding.namespace", "regarding.name", "regarding.uid", "regarding.apiVersion",
        "regarding.resourceVersion", "regarding.fieldPath", "reportingController", "type",
    ),
)  # fmt: skip
