"""Redaction: keeps credentials out of log events."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from trainer.kube.logs.secret_words import CREDENTIAL_NAMES

if TYPE_CHECKING:
    from structlog.typing import EventDict, WrappedLogger

REDACTED = "[redacted]"

QUOTED_VALUE = r"""(?:(?<=")(?:[^"\\\n]++|\\.)++|(?<=')(?:[^'\\\n]++|\\.)++)"""
"""Regular expression, with DOTALL, of what follows an opening quote: to the closing one, or to the end of the line."""
_SECRET_KEY = re.compile(rf"(({CREDENTIAL_NAMES})s?|last-applied-configuration)$", re.IGNORECASE)
_FORMS = r"""
    (?P<scheme>\b(?:Bearer|Basic)\s++)[\w.~+/=-]{16,}+     # Authorization header (RFC 6750, RFC 7617)
    | (?<![\w-])(?P<prefix>(?>[\w-]*?\b(?=eyJ)))[\w-]{4,}+\.[\w-]++\.[\w-]++  # JSON web token
    | (?P<userinfo>://[^\s/:@]*+:)[^\s/@]++(?=@)             # password in a URL, as of a proxy
    | -----BEGIN\ [A-Z ]{0,40}PRIVATE\ KEY-----.*?(?:-----END|\Z) # PEM
"""
_SECRET_FORM = re.compile(_FORMS, re.VERBOSE | re.DOTALL | re.IGNORECASE)
_SECRET_TEXT = re.compile(
    rf"""
    {_FORMS}
    | (?P<assigned>(?:{CREDENTIAL_NAMES})(?:=(?:['"](?!\s))?+|['"]:\ ?['"](?!\s)))  # in a query, script, or JSON
      (?:{QUOTED_VALUE}|(?<==)[^\s&'"]++)
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
"""Takes linear time, since peers and tenants choose the text: no repeat gives back what it has matched, and no part of
a text is read again from another start, for each alternative begins with what its own repeats cannot contain."""
_PLAIN_TEXT = re.compile(r"[\w/-]{0,256}+|\w{1,15}+(?: \w{1,15}+){1,32}+")
"""Texts without what each alternative of `_SECRET_TEXT` needs: a dot, a colon, an equals sign, or a blank beside a word
of 16 characters or a dash."""
_SECRET_OBJECT_FIELDS = ("data", "stringData")
_DEPTH = 8

LONGEST_VALUE = 16 * 1024
"""Characters of one value of an event, with all that is nested in it; the rest is left out."""
_LONGEST_WORD = 1024
"""Characters to look back for the beginning of a word that was cut, of which nothing is shown."""
_ITEM = 8
"""What an item counts beside its text, for the quotes and commas around it."""


def redact(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:  # noqa: ARG001 - a structlog processor
    """Replace what looks like a credential, by its key or by its form, in the values of a log event.

    A net for mistakes, not a licence to log secrets: it knows keys that end in words such as token, password or
    authorization (the *name* of a Secret is none), also in queries and JSON within a text, the contents of Secret
    objects and of lists of them, bearer tokens and JWTs, passwords in URLs, and private keys; in nested values as well.

    Values are cut to `LONGEST_VALUE` before they are searched.
    """
    return {
        key: value if _is_plain(key, value) else _Redaction().redact(key, value, _DEPTH) for key, value in event.items()
    }


def redact_text(text: str) -> str:
    """A text of any length without what has the form of a credential."""
    return _SECRET_TEXT.sub(_replacement, text)


def without_forms(text: str) -> str:
    """The same by form alone: what stands behind the name of a credential stays."""
    return _SECRET_FORM.sub(_replacement, text)


def _is_plain(key: str, value: object) -> bool:
    """Whether a value is a word that holds no credential, as most of those that we log: half of the time is saved."""
    return type(value) is str and _PLAIN_TEXT.fullmatch(value) is not None and _SECRET_KEY.search(key) is None


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
        shown = _shortened(text, max(self._left, 0))
        self._left -= len(shown)
        return shown if _PLAIN_TEXT.fullmatch(shown) else redact_text(shown)

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
        if values.get("kind") == "SecretList":
            values = {**values, "items": _as_secrets(values.get("items"))}
        hidden = _SECRET_OBJECT_FIELDS if values.get("kind") == "Secret" else ()
        shown: dict[object, object] = {}
        for key, value in values.items():
            if self._left <= 0:
                shown["..."] = _left_out(len(values) - len(shown), "entries")
                break
            name = self._text(key if isinstance(key, str) else repr(key))
            shown[name] = REDACTED if key in hidden and value else self.redact(key, value, depth - 1)
        return shown


def _shortened(text: str, limit: int) -> str:
    """The beginning of a text, up to a word that is whole: the half of a password could not be recognised."""
    if len(text) <= limit:
        return text
    kept = text[:limit]
    blank = max(kept.rfind(character, limit - _LONGEST_WORD) for character in " \n\t") if limit > _LONGEST_WORD else -1
    kept = kept[:blank] if blank > 0 else kept
    return f"{kept} {_left_out(len(text) - len(kept), 'characters')}"


def _left_out(number: int, what: str) -> str:
    return f"[{number} {what} left out]"


def _as_secrets(items: object) -> object:
    """The items of a list, which do not say what they are."""
    if not isinstance(items, list):
        return items
    return [{**item, "kind": "Secret"} if isinstance(item, Mapping) else item for item in items]


def _replacement(match: re.Match[str]) -> str:
    return (match[match.lastgroup] if match.lastgroup else "") + REDACTED
