"""`FakeServer`: the API server of a `FakeClient` behind HTTP."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import anyio
import msgspec
from aiohttp import web

from trainer.kube.client import PatchType
from trainer.kube.errors import ApiError, TransportError
from trainer.kube.rest.http import APPLY_CONTENT_TYPE
from trainer.kube.rest.transport import Endpoint
from trainer.kube.testing import http_requests, statuses
from trainer.kube.testing.endpoints import is_custom
from trainer.kube.testing.watches import TornEventError, event_line

if TYPE_CHECKING:
    from asyncio import Transport
    from collections.abc import Iterable
    from types import TracebackType

    from trainer.kube.client import ObjectList, RawJson
    from trainer.kube.objects import Object
    from trainer.kube.testing.client import FakeClient
    from trainer.kube.testing.http_requests import Target

_HOST = "127.0.0.1"
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])


class FakeServer:
    """Serves a fake over HTTP on the loopback interface, as an async context manager.

    Requests and faults are those of the client it is given: a `TransportError` closes the connection without an
    answer, and a torn event in the middle of a line. TLS, discovery and tables are left out.

        fake = FakeClient(pod)
        async with (
            FakeServer(fake, tokens={"secret"}) as server,
            HttpClient(server.endpoint, FixedCredentials("Bearer secret"), user_agent="test") as client,
        ):
            server.tokens = {"another"}           # the old token has expired
            with pytest.raises(UnauthorizedError):
                await client.get(PODS, "p", "ns")

    Args:
        client: its storage, faults and recorded requests; `FakeClient.peer` gives another server on the same storage.
        tokens: bearer tokens that are accepted; requests with another get 401. Default: everybody is let in.
    """

    def __init__(self, client: FakeClient, *, tokens: Iterable[str] | None = None) -> None:
        self.client = client
        self.tokens: set[str] | None = set(tokens) if tokens is not None else None
        """May be changed at any time; watches that are open stay so, as on a real server."""
        self._port = 0
        self._runner: web.AppRunner | None = None
        self._connections: dict[Transport, None] = {}

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with anyio.CancelScope(shield=True):
            await self.stop()

    @property
    def endpoint(self) -> Endpoint:
        """Where `HttpClient` finds it; the same after `stop` and `start`."""
        return Endpoint(f"http://{_HOST}:{self._port}")

    async def start(self) -> None:
        """Listen, on a free port the first time and on the same one later."""
        application = web.Application(client_max_size=16 << 20)
        application.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(application, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, _HOST, self._port, reuse_address=True).start()
        self._runner = runner
        self._port = runner.addresses[0][1]

    async def stop(self) -> None:
        """Break all connections and refuse new ones."""
        runner, self._runner = self._runner, None
        if runner is None:
            return
        for transport in self._connections:
            transport.abort()
        await runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        transport = request.transport
        if transport is None:
            return web.Response()
        self._connections[transport] = None
        try:
            self._authenticate(request)
            return await self._answer(request)
        except ApiError as error:
            return _failure(error)
        except NotImplementedError as error:
            return _failure(statuses.failure(501, "NotImplemented", str(error)))
        except ValueError as error:
            return _failure(statuses.bad_request(str(error)))
        except TransportError:
            transport.abort()
            return web.Response()
        finally:
            del self._connections[transport]

    def _authenticate(self, request: web.Request) -> None:
        kind, _, token = request.headers.get("Authorization", "").partition(" ")
        if self.tokens is not None and (kind != "Bearer" or token not in self.tokens):
            raise statuses.unauthorized()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        target = http_requests.target_of(request.path, self.client.endpoints.resource_at)
        match request.method, bool(target.name):
            case "GET", False if http_requests.is_true(request.query, "watch"):
                return await self._watch(request, target)
            case "GET", False:
                return await self._list(request, target)
            case "GET", True if target.subresource == "log":
                return await self._log(request, target)
            case "GET", True:
                return _json(await self.client.get(*_names(target), subresource=target.subresource))
            case "POST", _ if bool(target.name) == bool(target.subresource):
                return await self._create(request, target)
            case "PUT", True:
                obj = http_requests.object_of(await request.read(), target)
                return _json(await self.client.update(target.resource, obj, subresource=target.subresource))
            case "PATCH", True:
                return await self._patch(request, target)
            case "DELETE", _ if target.subresource is None:
                return await self._delete(request, target)
        raise statuses.failure(
            405, "MethodNotAllowed", "the server does not allow this method on the requested resource"
        )

    async def _list(self, request: web.Request, target: Target) -> web.StreamResponse:
        selection = http_requests.selection_of(target, request.query, request.headers.get("Accept", ""))
        options = http_requests.list_options_of(request.query)
        page = await self.client.list_page(target.resource, selection, options)
        if selection.metadata_only:
            return _page(page, "meta.k8s.io/v1", "PartialObjectMetadataList")
        if not is_custom(target.resource):
            page = replace(page, raw_items=[_without_types(raw) for raw in page.raw_items])
        return _page(page, target.resource.api_version, target.resource.list_kind)

    async def _watch(self, request: web.Request, target: Target) -> web.StreamResponse:
        selection = http_requests.selection_of(target, request.query, request.headers.get("Accept", ""))
        options = http_requests.watch_options_of(request.query)
        async with self.client.watch(target.resource, selection, options) as events:
            response = web.StreamResponse(headers={"Content-Type": "application/json"})
            await response.prepare(request)
            try:
                async for event in events:
                    await response.write(event_line(event.type, event.raw))
            except ApiError as error:
                await response.write(event_line("ERROR", msgspec.json.encode(_status(error))))
            except TornEventError as error:
                await response.write(error.fragment)
                raise
        return response

    async def _log(self, request: web.Request, target: Target) -> web.StreamResponse:
        options = http_requests.log_options_of(request.query)
        async with self.client.logs(target.name, target.namespace or "", options) as chunks:
            response = web.StreamResponse(headers={"Content-Type": "text/plain"})
            await response.prepare(request)
            async for chunk in chunks:
                await response.write(chunk)
        return response

    async def _create(self, request: web.Request, target: Target) -> web.StreamResponse:
        obj = http_requests.object_of(await request.read(), target)
        manager = request.query.get("fieldManager")
        created = await self.client.create(target.resource, obj, subresource=target.subresource, field_manager=manager)
        return _json(created, 201)

    async def _patch(self, request: web.Request, target: Target) -> web.StreamResponse:
        manager = request.query.get("fieldManager", "")
        body = await request.read()
        if request.content_type == APPLY_CONTENT_TYPE:
            if not manager:
                raise statuses.bad_request("fieldManager is required for apply patch")
            applied = await self.client.apply(
                target.resource,
                http_requests.object_of(body, target),
                field_manager=manager,
                force=http_requests.is_true(request.query, "force"),
                subresource=target.subresource,
            )
            return _json(applied)
        try:
            patch_type = PatchType(request.content_type)
        except ValueError:
            message = f"the body of the request was in an unknown format: {request.content_type}"
            raise statuses.failure(415, "UnsupportedMediaType", message) from None
        patched = await self.client.patch(
            target.resource,
            target.name,
            http_requests.body_of(body),
            target.namespace,
            patch_type=patch_type,
            subresource=target.subresource,
            field_manager=manager,
        )
        return _json(patched)

    async def _delete(self, request: web.Request, target: Target) -> web.StreamResponse:
        options = http_requests.delete_options_of(await request.read())
        answer: Object | None = None
        if target.name:
            answer = await self.client.delete(*_names(target), options)
        else:
            selection = http_requests.selection_of(target, request.query, "")
            await self.client.delete_collection(target.resource, selection, options)
        if answer is not None:
            return _json(answer)
        details = {"group": target.resource.group, "kind": target.resource.plural}
        if target.name:
            details["name"] = target.name
        success = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
        return _json(success)


def _names(target: Target) -> tuple[Any, str, str | None]:
    return target.resource, target.name, target.namespace


def _json(body: object, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(body=msgspec.json.encode(body), status=status, content_type="application/json", headers=headers)


def _without_types(raw: RawJson) -> bytes:
    """An item of a list of built-in objects, which says neither apiVersion nor kind."""
    fields = _fields.decode(raw)
    del fields["apiVersion"], fields["kind"]
    return msgspec.json.encode(fields)


def _page(page: ObjectList, api_version: str, kind: str) -> web.Response:
    metadata = {"resourceVersion": page.resource_version} | (
        {"continue": page.continue_token} if page.continue_token else {}
    )
    items = [msgspec.Raw(raw) for raw in page.raw_items]
    return _json({"kind": kind, "apiVersion": api_version, "metadata": metadata, "items": items})


def _failure(error: ApiError) -> web.Response:
    headers = {}
    if error.retry_after_seconds is not None:
        headers["Retry-After"] = f"{error.retry_after_seconds:.0f}"
    return _json(_status(error), error.code, headers)


def _status(error: ApiError) -> Object:
    """The Status for an error, which a test may have made without one."""
    minimal = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    known = {"message": error.message, "reason": error.status_reason, "code": error.code}
    return minimal | known | error.status
