"""Calls: one request to a resource, and how its answers are written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import anyio
import msgspec
from aiohttp import web
from aiohttp.web_protocol import RequestPayloadError

from trainer.kube.clock import move_on_after
from trainer.kube.errors import ApiError
from trainer.kube.objects import Object
from trainer_devcluster.apiserver.audit import Record
from trainer_devcluster.apiserver.authentication.user import User
from trainer_devcluster.apiserver.authorization.authorizer import Access
from trainer_devcluster.apiserver.authorization.writes import WriteGuard
from trainer_devcluster.apiserver.backend import Backend
from trainer_devcluster.apiserver.definitions.routing import Target
from trainer_devcluster.apiserver.wire.body import MAX_BODY_BYTES, decode_object
from trainer_devcluster.apiserver.wire.headers import JSON, PROTOBUF, Warnings, header_text
from trainer_devcluster.apiserver.wire.params import write_parameters
from trainer_devcluster.apiserver.writes.deletion import AdmittedDeleter
from trainer_devcluster.apiserver.writes.object_writer import ObjectWriter
from trainer_devcluster.apiserver.writes.write import LARGE_BYTES, Write
from trainer_kube_testing.api_semantics import statuses

T = TypeVar("T")

BODY_SECONDS = 60.0
"""Seconds in which a body must arrive; the limit of the real server for a whole request."""
R = TypeVar("R", bound=web.StreamResponse)


@dataclass(frozen=True, slots=True)
class Call:
    """A request whose target is known."""

    backend: Backend
    writer: ObjectWriter
    deleter: AdmittedDeleter
    request: web.Request
    target: Target
    user: User
    """The user who sends it."""
    access: Access
    """Authentication and authorization of requests."""
    record: Record
    """The entry of the request in the audit log."""
    warnings: Warnings = field(default_factory=Warnings)
    """The warnings of the answer, whether it is an error or not."""

    def write(self) -> Write:
        """The write that the request asks for.

        Raises:
            ApiError: 400 or 422, a parameter is not one of those allowed.
        """
        return self.write_of(self.target)

    def write_of(self, target: Target) -> Write:
        """A write to something else than the target of the request, with the parameters of the request.

        Raises:
            ApiError: as `write`.
        """
        parameters = write_parameters(self.query, self.user_agent, self.target.verb)
        size = self.request.content_length
        if size is None:
            # Nobody has said how much will come.
            size = LARGE_BYTES if self.request.can_read_body else 0
        guard = WriteGuard(self.access.authorizer, self.backend.storage, self.user, target)
        return Write(target, parameters, self.user, self.warnings, size=size, guard=guard)

    @property
    def query(self) -> Mapping[str, str]:
        """The query parameters; of repeated ones the first counts."""
        return self.request.query

    @property
    def user_agent(self) -> str:
        """The User-Agent header, "" when there is none."""
        return header_text(self.request.headers.get("User-Agent", ""))

    async def content(self) -> bytes:
        """The body.

        Raises:
            ApiError: 413, it is too large; 400, it is not encoded as its headers say; 504, it does not come.
        """
        encoding = self.request.headers.get("Content-Encoding", "identity").lower()
        if encoding != "identity":
            raise statuses.bad_request(f"the content encoding {encoding!r} is not supported: send the body as it is")
        if (self.request.content_length or 0) > MAX_BODY_BYTES:
            raise _too_large()
        try:
            if self.request.content.is_eof():
                return await self.request.read()
            async with move_on_after(self.backend.clock, BODY_SECONDS):
                return await self.request.read()
            raise statuses.timeout("the body did not arrive within the requested timeout")
        except RequestPayloadError as error:
            raise statuses.bad_request(f"the body cannot be read: {' '.join(str(error).split())}") from error
        except web.HTTPRequestEntityTooLarge as error:
            raise _too_large() from error

    async def decoded(self) -> tuple[Object, list[str]]:
        """The body as an object, and the paths of its duplicate fields.

        Raises:
            ApiError: 400, 413 or 415, it cannot be read.
        """
        content_type = self.request.headers.get("Content-Type", JSON)
        # The first protobuf body has a table of field numbers read from disk.
        beside_loop = content_type.startswith(PROTOBUF)
        decoded = await self.read(partial(decode_object, content_type=content_type), beside_loop=beside_loop)
        self.record.sent_object(decoded[0])
        return decoded

    async def begin(self, response: web.StreamResponse) -> None:
        """Send the head of an answer whose body follows piece by piece, and perhaps for as long as the client stays."""
        self.record.code = response.status
        await response.prepare(self.request)

    async def read(self, decode: Callable[[bytes], T], *, beside_loop: bool = False) -> T:
        """The body as `decode` reads it, in a thread when it is large or `beside_loop` is set.

        Raises:
            ApiError: 400 or 413, it cannot be read; whatever `decode` raises.
        """
        content = await self.content()
        if len(content) < LARGE_BYTES and not beside_loop:
            return decode(content)
        return await anyio.to_thread.run_sync(decode, content)


def _too_large() -> ApiError:
    return statuses.request_entity_too_large(f"Request entity too large: limit is {MAX_BODY_BYTES}")


def answer(body: Any, code: int = 200, *, warnings: Iterable[str] = (), content_type: str = JSON) -> web.Response:
    """A JSON answer with Warning headers."""
    response = web.Response(status=code, body=msgspec.json.encode(body))
    response.headers["Content-Type"] = content_type
    return with_warnings(response, warnings)


def with_warnings(response: R, warnings: Iterable[str]) -> R:
    """An answer with Warning headers."""
    for warning in warnings:
        response.headers.add("Warning", f'299 - "{_escaped(warning)}"')
    return response


def failure(error: ApiError, warnings: Iterable[str] = ()) -> web.Response:
    """The answer to a failed request."""
    response = answer(error.status, error.code, warnings=warnings)
    if error.retry_after_seconds:
        response.headers["Retry-After"] = f"{error.retry_after_seconds:.0f}"
    if error.code == 401:
        response.headers["WWW-Authenticate"] = 'Bearer realm="trainer-dev"'
    return response


def _escaped(text: str) -> str:
    plain = "".join(character if character.isprintable() else " " for character in text)
    return plain.replace("\\", "\\\\").replace('"', '\\"')
