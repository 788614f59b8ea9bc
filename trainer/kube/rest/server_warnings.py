"""What the API server wants its users to read beside an answer: Warning headers (RFC 9111), such as deprecations."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias

import structlog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    WarningHandler: TypeAlias = Callable[[str, str], None]
    """Gets the path of a request and one warning about it."""

log = structlog.get_logger(__name__)

_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')


def log_warning(path: str, warning: str) -> None:
    """Tell it in the log, where nobody waits for it."""
    log.warning("the API server warns", path=path, warning=warning)


def server_warnings(headers: Iterable[str]) -> Iterator[str]:
    """The texts in Warning headers; others than those of code 299 are not for users."""
    for header in headers:
        for text in _WARNING.findall(header):
            yield re.sub(r"\\(.)", r"\1", text)
