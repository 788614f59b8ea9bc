"""A client for the server under test that shows answers as they are."""

from __future__ import annotations

import io
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
from multidict import CIMultiDictProxy

from trainer_devcluster.apiserver.server import RunningServer

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True)
class Answer:
    """One HTTP answer."""

    code: int
    body: Any
    """Decoded JSON, a list of it for a watch, or text."""
    headers: CIMultiDictProxy[str]
    warnings: list[str]


class Api:
    """Sends requests as the administrator."""

    def __init__(self, session: aiohttp.ClientSession, server: RunningServer) -> None:
        self.session = session
        self.server = server

    async def __call__(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json", **headers: str
    ) -> Answer:
        """Send a request; header names are written with underscores, a body of bytes is sent as it is."""
        sent = {"Authorization": f"Bearer {self.server.token}", "Content-Type": content_type}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        data = None if body is None else io.BytesIO(content)
        async with self.session.request(method, self.server.url + path, data=data, headers=sent) as response:
            text = await response.text()
            decoded = _decoded(text) if "json" in response.headers.get("Content-Type", "") and text else text
            warnings = response.headers.getall("Warning", [])
            return Answer(response.status, decoded, response.headers, warnings)

    async def apply(self, path: str, body: Any, query: str = "fieldManager=test") -> Answer:
        """Server-side apply."""
        return await self("PATCH", f"{path}?{query}", body, APPLY)

    async def lines(self, path: str) -> list[Any]:
        """The events of a watch that ends by itself."""
        headers = {"Authorization": f"Bearer {self.server.token}"}
        async with self.session.get(self.server.url + path, headers=headers) as response:
            return [json.loads(line) for line in (await response.text()).splitlines()]


def _decoded(text: str) -> Any:
    lines = text.splitlines()
    return json.loads(text) if len(lines) == 1 else [json.loads(line) for line in lines]


@asynccontextmanager
async def api_for(server: RunningServer) -> AsyncIterator[Api]:
    """A client that trusts the server's authority and nothing else."""
    context = ssl.create_default_context(cadata=server.ca_pem)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session:
        yield Api(session, server)
