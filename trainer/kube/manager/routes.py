"""Routes: what a manager's metrics server answers beside /metrics.

Handlers get plain values and return plain values, so that whoever has something to show needs no web framework. Only
reading is offered (GET and HEAD), to those who may: see `trainer.kube.manager.metrics_server`.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TypeAlias
from urllib.parse import unquote

from trainer.kube.logger import get_logger

log = get_logger(__name__)

_PART = re.compile(r"[A-Za-z0-9._~-]+|\{[A-Za-z_][A-Za-z0-9_]*\}")


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request to a route of the metrics server."""

    path: str
    """The path as it was sent, without the query."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    """The values of the placeholders of the path, decoded. Default: none."""
    query: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Values behind the `?`, by name; one may be given several times. Default: none."""


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """The response of a route."""

    body: bytes
    content_type: str = "text/plain; charset=utf-8"
    """Default: text, since that is what people type a path for."""
    status: HTTPStatus = HTTPStatus.OK
    """Default: 200."""

    @classmethod
    def text(cls, text: str, status: HTTPStatus = HTTPStatus.OK) -> HttpResponse:
        """A line for people."""
        return cls(f"{text}\n".encode(errors="replace"), status=status)


HttpHandler: TypeAlias = Callable[[HttpRequest], Awaitable[HttpResponse]]
"""Answers a request on the event loop; what it raises is logged, and answered with 500."""


class Routes:
    """Handlers by path.

    Args:
        reserved: first parts of paths that are spoken for.
    """

    def __init__(self, reserved: Collection[str] = ()) -> None:
        self._reserved = reserved
        self._routes: dict[tuple[str | None, ...], _Route] = {}

    def add(self, path: str, handler: HttpHandler) -> None:
        """Have a handler answer for a path, such as `/jobs/{namespace}/{name}`.

        A placeholder stands for one part of the path that is not empty. Where several routes fit, the one with the
        earlier literal part is taken: `/jobs/all` before `/jobs/{name}`.

        Raises:
            ValueError: the path is malformed, reserved or taken; the text says which.
        """
        if not path.startswith("/"):
            raise ValueError(f"the path {path!r} must begin with a /")
        route = _Route(path, tuple(path[1:].split("/")), handler)
        malformed = next((part for part in route.parts if not _PART.fullmatch(part)), None)
        if malformed is not None:
            raise ValueError(
                f"the path {path!r} has the part {malformed!r}; it must consist of letters, digits and . _ ~ -, or be a"
                " {placeholder}"
            )
        names = [part for part in route.parts if _is_placeholder(part)]
        if len(set(names)) < len(names):
            raise ValueError(f"the path {path!r} has two placeholders of the same name")
        if route.shape[0] in self._reserved:
            raise ValueError(f"the path {path!r} is part of /{route.shape[0]}, which the manager serves itself")
        if route.shape in self._routes:
            raise ValueError(f"the path {path!r} is taken by {self._routes[route.shape].path!r}")
        self._routes[route.shape] = route

    async def answer(self, path: str, query: Mapping[str, tuple[str, ...]]) -> HttpResponse:
        """Answer a request; what a handler raises is logged and becomes a 500.

        Args:
            path: as it was sent, percent-encoded and without the query.
            query: see `HttpRequest`.
        """
        parts = tuple(unquote(part) for part in path[1:].split("/"))
        fitting = [route for route in self._routes.values() if route.fits(parts)]
        if not fitting:
            return HttpResponse.text("there is nothing at this path", HTTPStatus.NOT_FOUND)
        route = min(fitting, key=lambda route: [part is None for part in route.shape])
        try:
            return await route.handler(HttpRequest(path, route.parameters(parts), query))
        except Exception:
            log.exception("could not answer request", path=route.path)
            text = "the answer could not be made; the log of the manager says why"
            return HttpResponse.text(text, HTTPStatus.INTERNAL_SERVER_ERROR)


@dataclass(frozen=True, slots=True)
class _Route:
    path: str
    parts: tuple[str, ...]
    handler: HttpHandler

    @property
    def shape(self) -> tuple[str | None, ...]:
        """The literal parts, and None for each placeholder, whatever its name."""
        return tuple(None if _is_placeholder(part) else part for part in self.parts)

    def fits(self, parts: tuple[str, ...]) -> bool:
        return len(parts) == len(self.parts) and all(
            bool(given) if _is_placeholder(part) else given == part
            for part, given in zip(self.parts, parts, strict=True)
        )

    def parameters(self, parts: tuple[str, ...]) -> dict[str, str]:
        pairs = zip(self.parts, parts, strict=True)
        return {part[1:-1]: given for part, given in pairs if _is_placeholder(part)}


def _is_placeholder(part: str) -> bool:
    return part.startswith("{")
