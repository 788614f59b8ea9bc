"""What the server says about itself: version, health, discovery and OpenAPI documents."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Any, Final

import anyio
import msgspec
from aiohttp import web

from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition, ResourceRegistry
from trainer_devcluster.apiserver.discovery import discovery, openapi
from trainer_devcluster.apiserver.handlers.call import answer
from trainer_devcluster.apiserver.wire import answers
from trainer_devcluster.apiserver.wire.headers import JSON, header_text, wants_aggregated_discovery

AGGREGATED: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
READY_PATH: Final = "/readyz"
HEALTH_PATHS: Final = frozenset({"/healthz", "/livez", READY_PATH})
VERSION: Final = {
    "major": "1",
    "minor": "36",
    "emulationMajor": "1",
    "emulationMinor": "36",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "35",
    "gitVersion": "v1.36.0+trainer-dev",
    "gitCommit": "",
    "gitTreeState": "",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": platform.python_implementation(),
    "platform": f"{platform.system().lower()}/{platform.machine()}",
}
"""The Kubernetes version whose behaviour the server follows."""


class Documents:
    """Answers GET requests that are not about objects; documents are kept until the registry changes.

    Args:
        registry: what is served.
        is_ready: whether /readyz is to succeed.
    """

    def __init__(self, registry: ResourceRegistry, is_ready: Callable[[], bool] = lambda: True) -> None:
        self._registry = registry
        self._is_ready = is_ready
        self._openapi = openapi.Writer()
        self._made: dict[str, bytes] = {}
        self._version = -1

    async def find(self, request: web.Request) -> web.Response | None:
        """The answer, or None when the path is not one of a document.

        Raises:
            ApiError: 405, the method is not GET; 406, no acceptable form.
        """
        path = request.path.rstrip("/")
        response = await self._find(request, path)
        if response is not None and request.method != "GET":
            raise answers.method_not_allowed()
        return response

    async def _find(self, request: web.Request, path: str) -> web.Response | None:
        if path == "/version":
            return answer(VERSION)
        if path == READY_PATH and not self._is_ready():
            return web.Response(text="readyz check failed", status=HTTPStatus.INTERNAL_SERVER_ERROR)
        if path in HEALTH_PATHS:
            return web.Response(text="ok")
        definitions = self._registry.definitions
        parts = path.split("/")[1:] or [""]
        if parts == ["api"] and not wants_aggregated_discovery(request.headers.get("Accept", "")):
            # It says what the client has called the server, so it is not one that is kept.
            return answer(discovery.core_versions(header_text(request.host)))
        if parts in (["api"], ["apis"]) and wants_aggregated_discovery(request.headers.get("Accept", "")):
            aggregated = partial(discovery.aggregated, definitions, core=parts == ["api"])
            return await self._cached(request, f"{path} aggregated", aggregated, AGGREGATED)
        if parts == ["openapi", "v2"]:
            if openapi.wants_v2_protobuf(request.headers.get("Accept", "")):
                return web.Response(body=openapi.V2_PROTOBUF, content_type=openapi.V2_PROTOBUF_TYPE)
            return answer(openapi.V2_DOCUMENT)
        make = self._document(parts, definitions)
        return None if make is None else await self._cached(request, path, make)

    def _document(self, parts: list[str], definitions: list[ResourceDefinition]) -> Callable[[], Any] | None:
        """What makes the document of a path; it returns None for a group or version that is not served."""
        match parts:
            case [""]:
                return partial(_paths, definitions)
            case ["apis"]:
                return partial(discovery.group_list, definitions)
            case ["apis", group]:
                return partial(discovery.group, definitions, group)
            case ["api", version]:
                return partial(discovery.resource_list, definitions, "", version)
            case ["apis", group, version]:
                return partial(discovery.resource_list, definitions, group, version)
            case ["openapi", "v3"]:
                return partial(self._openapi.index, definitions)
            case ["openapi", "v3", "api", version]:
                return partial(self._openapi.document, definitions, "", version)
            case ["openapi", "v3", "apis", group, version]:
                return partial(self._openapi.document, definitions, group, version)
        return None

    async def _cached(
        self, request: web.Request, name: str, make: Callable[[], Any], content_type: str = JSON
    ) -> web.Response | None:
        version = self._registry.version
        if version != self._version:
            self._made.clear()
            self._version = version
        content = self._made.get(name)
        if content is None:
            # OpenAPI documents take tens of milliseconds to put together.
            content = await anyio.to_thread.run_sync(_encoded, make)
            if content is None:
                return None
            if self._version == version:
                self._made[name] = content
        tag = f'"{hashlib.sha256(content).hexdigest()}"'
        if request.headers.get("If-None-Match") == tag:
            return web.Response(status=304, headers={"ETag": tag})
        return web.Response(body=content, headers={"Content-Type": content_type, "ETag": tag})


def _paths(definitions: list[ResourceDefinition]) -> Any:
    paths = {definition.resource.path().rpartition("/")[0] for definition in definitions}
    return {"paths": sorted({"/api", "/apis", "/openapi/v2", "/openapi/v3", "/version", *HEALTH_PATHS, *paths})}


def _encoded(make: Callable[[], Any]) -> bytes | None:
    made = make()
    if isinstance(made, msgspec.Raw):
        return bytes(made)
    return None if made is None else msgspec.json.encode(made)
