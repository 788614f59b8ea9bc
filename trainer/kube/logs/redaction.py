"""Redaction: keeps credentials out of log events."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from structlog.typing import EventDict, WrappedLogger

REDACTED = "[redacted]"

_WORDS = (
    r"token|authorization|password|passwd|passphrase|cookie|api[-_]?key|private[-_]?key|key[-_]?data"
    r"|client[-_]?secret|secret[-_]?access[-_]?key"
)
_SECRET_KEY = re.compile(rf"(({_WORDS})s?|last-applied-configuration)$", re.IGNORECASE)
_SECRET_TEXT = re.compile(
    rf"""
    (?P<scheme>\b(?:Bearer|Basic)\s+)[\w.~+/=-]{{16,}}      # Authorization header (RFC 6750, RFC 7617)
    | \beyJ[\w-]+\.[\w-]+\.[\w-]+                           # JSON web token, as service accounts have
    | (?P<assigned>(?:{_WORDS})(?:=|(?P<quote>['"]):\ ?(?P=quote)))[^\s&'"]+  # in a query; quoted, as in JSON
    | (?P<userinfo>://[^\s/:@]*:)[^\s/@]+(?=@)               # password in a URL, as of a proxy
    | -----BEGIN\ [A-Z ]*PRIVATE\ KEY-----.*?(?:-----END|\Z) # PEM
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_SECRET_OBJECT_FIELDS = ("data", "stringData")
_DEPTH = 8


def redact(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:  # noqa: ARG001 - a structlog processor
    """Replace what looks like a credential, by its key or by its form, in the values of a log event.

    A net for mistakes, not a licence to log secrets: it knows keys that end in words such as token, password or
    authorization (the *name* of a Secret is none), also in queries and JSON within a text, the contents of Secret
    objects and of lists of them, bearer tokens and JWTs, passwords in URLs, and private keys; in nested values as well.
    """
    return {key: _redact(key, value, _DEPTH) for key, value in event.items()}


def _redact(key: object, value: object, depth: int) -> object:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(key, str) and _SECRET_KEY.search(key):
        return REDACTED
    if isinstance(value, str):
        return _SECRET_TEXT.sub(_replacement, value)
    if isinstance(value, Mapping):
        return _redact_mapping(value, depth)
    if isinstance(value, list | tuple | set | frozenset):
        return [_redact(None, item, depth - 1) for item in value] if depth else REDACTED
    # What the renderer would make of it.
    return _SECRET_TEXT.sub(_replacement, repr(value))


def _redact_mapping(values: Mapping[object, object], depth: int) -> object:
    if not depth:
        return REDACTED
    if values.get("kind") == "SecretList":
        values = {**values, "items": _as_secrets(values.get("items"))}
    hidden = _SECRET_OBJECT_FIELDS if values.get("kind") == "Secret" else ()
    return {
        key: REDACTED if key in hidden and value else _redact(key, value, depth - 1) for key, value in values.items()
    }


def _as_secrets(items: object) -> object:
    """The items of a list, which do not say what they are."""
    if not isinstance(items, list):
        return items
    return [{**item, "kind": "Secret"} if isinstance(item, Mapping) else item for item in items]


def _replacement(match: re.Match[str]) -> str:
    return (match["scheme"] or match["assigned"] or match["userinfo"] or "") + REDACTED
