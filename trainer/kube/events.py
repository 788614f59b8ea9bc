"""Event recorder: tells users what a controller did to an object, as core/v1 Events (`kubectl get events`)."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import structlog

from trainer.kube.clock import Clock, SystemClock, timestamp
from trainer.kube.errors import KubeError, NotFoundError
from trainer.kube.objects import name_of, namespace_of, resource_version_of, uid_of
from trainer.kube.resource import EVENTS

if TYPE_CHECKING:
    from trainer.kube.client import Client
    from trainer.kube.objects import Object

log = structlog.get_logger(__name__)

EventKind: TypeAlias = Literal["Normal", "Warning"]

REMEMBERED_EVENTS = 4096
"""So many latest events can be counted up instead of being written anew, as in client-go."""

MESSAGE_LIMIT = 1024
"""Characters; the API server refuses longer notes (events.k8s.io)."""


@dataclass(frozen=True, slots=True)
class _Identity:
    """Events that agree in this are one event with a count."""

    kind: str
    namespace: str
    name: str
    uid: str
    type: str
    reason: str
    message: str


@dataclass(slots=True)
class _Written:
    """An event as it is stored."""

    name: str
    namespace: str
    count: int = 1


class EventRecorder:
    """Writes events about objects in the name of one component; repeats raise the count of the first."""

    def __init__(self, client: Client, component: str, clock: Clock | None = None) -> None:
        self._client = client
        self._component = component
        self._clock = clock or SystemClock()
        self._written: OrderedDict[_Identity, _Written] = OrderedDict()

    async def record(self, obj: Object, *, type: EventKind, reason: str, message: str) -> None:  # noqa: A002
        """Write an event about `obj`, which must carry apiVersion and kind; a failure to write is logged, not raised.

        Args:
            obj: what the event is about; the event is stored in its namespace ("default" for cluster-scoped objects).
            type: "Warning" if someone should look.
            reason: one UpperCamelCase word that programs can match.
            message: one sentence for people; cut at 1024 characters.
        """
        if len(message) > MESSAGE_LIMIT:
            message = message[: MESSAGE_LIMIT - 3] + "..."
        identity = _Identity(obj["kind"], namespace_of(obj), name_of(obj), uid_of(obj), type, reason, message)
        try:
            written = self._written.get(identity)
            if written is None or not await self._count_up(written):
                self._remember(identity, await self._create(obj, identity))
        except KubeError as error:
            log.warning("could not record event", reason=reason, about=name_of(obj), error=str(error))

    async def _count_up(self, written: _Written) -> bool:
        written.count += 1
        change = {"count": written.count, "lastTimestamp": timestamp(self._clock.now())}
        try:
            await self._client.patch(EVENTS, written.name, change, written.namespace)
        except NotFoundError:
            return False
        return True

    async def _create(self, obj: Object, identity: _Identity) -> _Written:
        now = timestamp(self._clock.now())
        namespace = identity.namespace or "default"
        name = f"{identity.name}.{secrets.token_hex(8)}"
        event: Object = {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": {
                "apiVersion": obj["apiVersion"],
                "kind": identity.kind,
                "name": identity.name,
                "namespace": identity.namespace,
                "uid": identity.uid,
                "resourceVersion": resource_version_of(obj),
            },
            "type": identity.type,
            "reason": identity.reason,
            "message": identity.message,
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        await self._client.create(EVENTS, event)
        return _Written(name, namespace)

    def _remember(self, identity: _Identity, written: _Written) -> None:
        self._written[identity] = written
        self._written.move_to_end(identity)
        if len(self._written) > REMEMBERED_EVENTS:
            self._written.popitem(last=False)
