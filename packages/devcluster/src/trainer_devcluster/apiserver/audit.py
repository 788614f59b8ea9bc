"""The audit log: who has asked the API server for what, and what came of it, one event per line.

Source: Kubernetes documentation, "Auditing"; the fields are those of a kube-apiserver whose policy has level Metadata.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import anyio
import msgspec
import structlog
from aiohttp import web

from trainer.kube.errors import ApiError
from trainer.kube.objects import Object
from trainer_devcluster.apiserver.authentication.user import ANONYMOUS, User
from trainer_devcluster.apiserver.authorization.authorizer import Decision, attributes_of
from trainer_devcluster.apiserver.authorization.rules import AccessCheck
from trainer_devcluster.apiserver.wire.headers import header_text

CLIENT_CLOSED_REQUEST: Final = 499
"""Not a status of HTTP; nginx logs it for a client that did not wait for the answer."""


class Record:
    """One request; filled in by those who learn something about it."""

    __slots__ = ("_decision", "_name", "_received", "_request", "_user", "acting_as", "code", "failure")

    def __init__(self, request: web.Request, received: datetime) -> None:
        self._request = request
        self._received = received
        self._user: User | None = None
        self._decision: Decision | None = None
        self._name = ""
        self.acting_as: User | None = None
        """Whom the sender impersonates."""
        self.code = 0
        """Status of the answer; 0 before there is one."""
        self.failure: ApiError | None = None
        """What has been answered instead of what was asked for."""

    def sent_by(self, user: User) -> None:
        """The sender is known."""
        self._user = user

    def decided(self, decision: Decision) -> None:
        """The sender may do it, or may not."""
        self._decision = decision

    def sent_object(self, obj: Object) -> None:
        """The request carries this object, which may be malformed; one to be created is named only there."""
        metadata = obj.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        self._name = name if isinstance(name, str) else ""

    def event(self, now: datetime) -> Object:
        """The Event of audit.k8s.io/v1, stage ResponseComplete."""
        request = self._request
        attributes = attributes_of(self._user or ANONYMOUS, request.method, request.path, request.query)
        event: dict[str, Any] = {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": "Metadata",
            "auditID": str(uuid.uuid4()),
            "stage": "ResponseComplete",
            "requestURI": header_text(request.raw_path),
            "verb": attributes.verb,
            "user": self._user.info() if self._user is not None else {},
        }
        if self.acting_as is not None:
            event["impersonatedUser"] = self.acting_as.info()
        if request.remote:
            event["sourceIPs"] = [request.remote]
        if agent := request.headers.get("User-Agent"):
            event["userAgent"] = header_text(agent)
        if not attributes.path:
            event["objectRef"] = _reference(attributes, self._name)
        event["responseStatus"] = self._response_status()
        event["requestReceivedTimestamp"] = _micro_time(self._received)
        event["stageTimestamp"] = _micro_time(now)
        if self._decision is not None:
            decision = "allow" if self._decision.allowed else "forbid"
            event["annotations"] = {
                "authorization.k8s.io/decision": decision,
                "authorization.k8s.io/reason": self._decision.reason,
            }
        return event

    def _response_status(self) -> Object:
        if self.failure is None:
            return {"metadata": {}, "code": self.code or CLIENT_CLOSED_REQUEST}
        status = self.failure.status
        return {name: value for name, value in status.items() if name not in ("kind", "apiVersion")}


def _reference(attributes: AccessCheck, sent_name: str) -> Object:
    """An `objectRef`, without what is empty."""
    fields = {
        "resource": attributes.resource,
        "namespace": attributes.namespace,
        "name": attributes.name or (sent_name if attributes.verb == "create" else ""),
        "apiGroup": attributes.group,
        "apiVersion": attributes.version,
        "subresource": attributes.subresource,
    }
    return {field: value for field, value in fields.items() if value}


def _micro_time(moment: datetime) -> str:
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


log = structlog.get_logger(__name__)

PENDING_EVENTS: Final = 10_000
"""So many events wait for the disk; further requests wait for room, so that none is lost and memory stays bounded."""


class AuditLog:
    """Writes events to a file; `run` does the work."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor
        self._pending: list[bytes] = []
        self._arrival = anyio.Event()
        self._taken = anyio.Event()
        # Other threads can be busy for long.
        self._thread = anyio.CapacityLimiter(1)

    @classmethod
    @contextmanager
    def opened(cls, path: Path) -> Iterator[AuditLog]:
        """A log that appends to a file, readable by its owner only, made when missing; blocks.

        Several servers may share the file: lines are written whole.

        Raises:
            OSError: the file cannot be opened.
        """
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            yield cls(path, descriptor)
        finally:
            os.close(descriptor)

    async def wait_for_room(self) -> None:
        """Wait until fewer than `PENDING_EVENTS` are pending."""
        while len(self._pending) >= PENDING_EVENTS:
            await self._taken.wait()

    def add(self, event: Object) -> None:
        """Write an event as soon as the disk is free; never waits, so that cancelled requests are logged too."""
        self._pending.append(msgspec.json.encode(event) + b"\n")
        self._arrival.set()

    async def run(self) -> None:
        """Write until cancelled, and then what is left."""
        try:
            while True:
                await self._arrival.wait()
                await self._write_pending()
        finally:
            with anyio.CancelScope(shield=True):
                await self._write_pending()

    async def _write_pending(self) -> None:
        lines, self._pending, self._arrival = self._pending, [], anyio.Event()
        taken, self._taken = self._taken, anyio.Event()
        taken.set()
        if not lines:
            return
        # A write that has begun is written to its end, or a line would be there by half and again in full.
        with anyio.CancelScope(shield=True):
            try:
                await anyio.to_thread.run_sync(self._write, b"".join(lines), limiter=self._thread)
            except OSError:
                # Like the real server, which goes on: the cluster is worth more than its log.
                log.exception("could not write to the audit log", path=str(self._path), lost=len(lines))

    def _write(self, text: bytes) -> None:
        rest = memoryview(text)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]
