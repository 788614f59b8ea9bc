"""Redaction: keeps credentials out of log events."""

from __future__ import annotations

import re
from collections.abc import Mapping

from structlog.typing import EventDict, WrappedLogger

from trainer.kube.logs.secret_words import CREDENTIAL_NAMES

REDACTED = "[redacted]"

_SECRET_KEY = re.compile(rf"(({CREDENTIAL_NAMES})s?|last-applied-configuration)$", re.IGNORECASE)
_SECRET_OBJECT_FIELDS = ("data", "stringData")
_DEPTH = 8

LONGEST_VALUE = 16 * 1024
"""Characters of one value of an event, with all that is nested in it; the rest is left out."""


def redact(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:  # noqa: ARG001 - a structlog processor
    """Replace the values of a log event whose names are those of credentials, in nested values as well.

    A net for mistakes, not a licence to log secrets: it knows names that end in words such as token, password or
    authorization (the *name* of a Secret is none), and the contents of Secret objects. Texts are not searched.

    Values are cut to `LONGEST_VALUE`.
    """
    return {key: _cut(_redacted(key, value, _DEPTH)) for key, value in event.items()}


def _redacted(key: object, value: object, depth: int) -> object:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(key, str) and _SECRET_KEY.search(key):
        return REDACTED
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping | list | tuple | set | frozenset) and not depth:
        return REDACTED
    if isinstance(value, Mapping):
        hidden = _SECRET_OBJECT_FIELDS if value.get("kind") == "Secret" else ()
        return {
            name if isinstance(name, str) else repr(name): (
                REDACTED if name in hidden and field else _redacted(name, field, depth - 1)
            )
            for name, field in value.items()
        }
    if isinstance(value, list | tuple | set | frozenset):
        return [_redacted(None, item, depth - 1) for item in value]
    # What the renderer would make of it.
    return repr(value)


def _cut(value: object) -> object:
    if value is None or isinstance(value, bool | int | float):
        return value
    text = value if isinstance(value, str) else repr(value)
    left_out = len(text) - LONGEST_VALUE
    return value if left_out <= 0 else f"{text[:LONGEST_VALUE]} [{left_out} characters left out]"
