"""Redaction: keeps credentials out of log events."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from structlog.typing import EventDict, WrappedLogger

from trainer.kube.logs.secret_words import CREDENTIAL_NAMES

REDACTED = "[redacted]"

_SECRET_KEY = re.compile(rf"(({CREDENTIAL_NAMES})s?|last-applied-configuration)$", re.IGNORECASE)
_SECRET_OBJECT_FIELDS = ("data", "stringData")
_DEPTH = 8

LONGEST_VALUE = 16 * 1024
"""Characters of one value of an event, with all that is nested in it; the rest is left out."""
_ITEM = 8
"""What an item counts beside its text, for the quotes and commas around it."""


def redact(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:  # noqa: ARG001 - a structlog processor
    """Replace the values of a log event whose names are those of credentials, in nested values as well.

    A net for mistakes, not a licence to log secrets: it knows names that end in words such as token, password or
    authorization (the *name* of a Secret is none), and the contents of Secret objects. Texts are not searched.

    Values are cut to `LONGEST_VALUE`.
    """
    return {key: _Redaction().redact(key, value, _DEPTH) for key, value in event.items()}


class _Redaction:
    """Redacts one value, and counts what it has shown of it."""

    def __init__(self) -> None:
        self._left = LONGEST_VALUE

    def redact(self, key: object, value: object, depth: int) -> object:
        self._left -= _ITEM
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(key, str) and _SECRET_KEY.search(key):
            return REDACTED
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, Mapping):
            return self._mapping(value, depth)
        if isinstance(value, list | tuple | set | frozenset):
            return self._items(value, depth) if depth else REDACTED
        # What the renderer would make of it.
        return self._text(repr(value))

    def _text(self, text: str) -> str:
        limit = max(self._left, 0)
        self._left -= len(text)
        return text if len(text) <= limit else f"{text[:limit]} {_left_out(len(text) - limit, 'characters')}"

    def _items(self, values: Collection[object], depth: int) -> list[object]:
        shown: list[object] = []
        for value in values:
            if self._left <= 0:
                shown.append(_left_out(len(values) - len(shown), "items"))
                break
            shown.append(self.redact(None, value, depth - 1))
        return shown

    def _mapping(self, values: Mapping[object, object], depth: int) -> object:
        if not depth:
            return REDACTED
        hidden = _SECRET_OBJECT_FIELDS if values.get("kind") == "Secret" else ()
        shown: dict[object, object] = {}
        for key, value in values.items():
            if self._left <= 0:
                shown["..."] = _left_out(len(values) - len(shown), "entries")
                break
            name = self._text(key if isinstance(key, str) else repr(key))
            shown[name] = REDACTED if key in hidden and value else self.redact(key, value, depth - 1)
        return shown


def _left_out(number: int, what: str) -> str:
    return f"[{number} {what} left out]"
