"""Event recorder: tells users what a controller did to an object, as core/v1 Events (`kubectl get events`).

The older of the two event APIs, since it is the one that people's tools read: events without firstTimestamp,
lastTimestamp and count, as events.k8s.io stores them, are invisible to the Kubeflow SDK.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Any, Protocol

from trainer.kube.events.correlator import EventKind, EventSource, ObjectReference, Occurrence, cut_message
from trainer.kube.events.sender import EventSender
from trainer.kube.logger import get_logger

__all__ = ["EventKind", "EventRecorder", "EventSender", "EventSink", "Occurrence"]

log = get_logger(__name__)

_INSTANCE_LIMIT = 128


class EventSink(Protocol):
    """Takes what recorders record; `EventSender` in a process, `trainer_kube_testing.RecordedEvents` in tests."""

    def submit(self, occurrence: Occurrence) -> None:
        """Take note of an occurrence, without waiting and without raising."""


class EventRecorder:
    """Records events in the name of one component; many recorders share one sink.

    Args:
        sink: where events go.
        component: name of the controller that reports, `From` in `kubectl describe`.
        host: node on which the component runs, if that matters to readers. Default: none.
    """

    def __init__(self, sink: EventSink, component: str, *, host: str = "") -> None:
        self._sink = sink
        instance = host or f"{component}-{socket.gethostname()}"
        self._source = EventSource(component, host, instance[:_INSTANCE_LIMIT])

    def record(
        self,
        obj: Mapping[str, Any],
        *,
        type: EventKind,  # noqa: A002
        reason: str,
        message: str,
        field_path: str = "",
    ) -> None:
        """Record an event; it is written later, and never fails or delays its caller.

        Equal events become one with a count, many similar ones are combined, and bursts are limited: see
        `trainer.kube.events.correlator`.

        Args:
            obj: what the event is about, with apiVersion and kind; the event is stored in its namespace ("default" for
                cluster-scoped objects).
            type: "Warning" if someone should look.
            reason: one UpperCamelCase word that programs can match.
            message: one sentence for people; cut at 1024 bytes.
            field_path: the part of the object that it is about, such as `spec.containers{main}`. Default: all of it.
        """
        try:
            regarding = ObjectReference.of(obj, field_path)
        except ValueError as error:
            log.error("cannot record event", reason=reason, error=str(error))  # noqa: TRY400 - the message says it all
            return
        self._sink.submit(Occurrence(self._source, regarding, type, reason, cut_message(message)))
