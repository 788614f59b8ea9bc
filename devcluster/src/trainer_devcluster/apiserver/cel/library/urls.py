"""URLs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final
from urllib.parse import SplitResult, parse_qs, quote, urlsplit

from trainer_devcluster.apiserver.cel.errors import EvaluationError

if TYPE_CHECKING:
    from trainer_devcluster.apiserver.cel.signatures import Function


@dataclass(frozen=True, slots=True)
class Url:
    """An absolute URL or path."""

    CEL_TYPE: ClassVar[str] = "kubernetes.URL"
    text: str
    parts: SplitResult

    @classmethod
    def parse(cls, text: str) -> Url:
        """Read a URL.

        Raises:
            EvaluationError: it is none.
        """
        problem = f'URL parse error during conversion from string: parse "{text}": invalid URI for request'
        if not text or any(ord(character) <= 0x20 or ord(character) == 0x7F for character in text):
            raise EvaluationError(problem)
        try:
            parts = urlsplit(text)
            parts.port  # noqa: B018 - raises when it is no number
        except ValueError as error:
            raise EvaluationError(problem) from error
        if not parts.scheme and not text.startswith("/"):
            raise EvaluationError(problem)
        return cls(text, parts)

    @property
    def host(self) -> str:
        """Host and port as they are written."""
        return self.parts.netloc.rpartition("@")[2]

    @property
    def host_name(self) -> str:
        """Host without port and brackets."""
        host = self.host
        return host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]

    @property
    def port(self) -> str:
        """Port as text, "" when there is none."""
        return "" if self.parts.port is None else str(self.parts.port)


def _is_url(text: str) -> bool:
    try:
        Url.parse(text)
    except EvaluationError:
        return False
    return True


SIGNATURES: Final[list[tuple[str, Function]]] = [
    ("url(string) -> kubernetes.URL", Url.parse),
    ("isURL(string) -> bool", _is_url),
    ("kubernetes.URL.getScheme() -> string", lambda url: url.parts.scheme),
    ("kubernetes.URL.getHost() -> string", lambda url: url.host),
    ("kubernetes.URL.getHostname() -> string", lambda url: url.host_name),
    ("kubernetes.URL.getPort() -> string", lambda url: url.port),
    ("kubernetes.URL.getEscapedPath() -> string", lambda url: quote(url.parts.path, safe="/%:@!$&'()*+,;=~-._")),
    (
        "kubernetes.URL.getQuery() -> map<string, list<string>>",
        lambda url: parse_qs(url.parts.query, keep_blank_values=True),
    ),
]
