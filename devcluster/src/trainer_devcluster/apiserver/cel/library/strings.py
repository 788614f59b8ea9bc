"""Texts: the strings extension in version 2, and searching by regular expression."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING, Any, Final

from trainer_devcluster.apiserver.cel.errors import EvaluationError
from trainer_devcluster.apiserver.cel.library.formatting import formatted
from trainer_devcluster.apiserver.schema.formats import compile_pattern

if TYPE_CHECKING:
    from trainer_devcluster.apiserver.cel.signatures import Function

_LOWER: Final = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_UPPER: Final = str.maketrans(string.ascii_lowercase, string.ascii_uppercase)
_QUOTED: Final = {
    "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v", "\\": "\\\\", '"': '\\"',
}  # fmt: skip
_SPACE: Final = "".join(
    character for character in map(chr, range(0x3001)) if character.isspace() and not "\x1c" <= character <= "\x1f"
)
"""White space in the sense of Unicode."""


def _in_range(index: int, text: str) -> int:
    if not 0 <= index <= len(text):
        raise EvaluationError(f"index out of range: {index}")
    return index


def _char_at(text: str, index: int) -> str:
    return text[_in_range(index, text)] if index < len(text) else text[_in_range(index, text) :]


def _index_of(text: str, part: str, start: int = 0) -> int:
    return start if not part else text.find(part, _in_range(start, text))


def _last_index_of(text: str, part: str, start: int | None = None) -> int:
    if start is None:
        return len(text) if not part else text.rfind(part)
    _in_range(start, text)
    return start if not part else text.rfind(part, 0, start + len(part))


def _substring(text: str, start: int, end: int | None = None) -> str:
    end = len(text) if end is None else end
    if start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    return text[_in_range(start, text) : _in_range(end, text)]


def _replace(text: str, old: str, new: str, count: int = -1) -> str:
    return text.replace(old, new, count)


def _split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if separator:
        return text.split(separator, limit - 1) if limit > 0 else text.split(separator)
    letters = list(text)
    return letters if limit < 0 or limit >= len(letters) else [*letters[: limit - 1], text[limit - 1 :]]


def _join(items: list[str], separator: str = "") -> str:
    return separator.join(items)


def _quote(text: str) -> str:
    return '"' + "".join(_QUOTED.get(character, character) for character in text) + '"'


def _find(text: str, pattern: str) -> str:
    match = compile_pattern(pattern).search(text)
    return match[0] if match else ""


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    found = [match[0] for match in compile_pattern(pattern).finditer(text)]
    return found if limit < 0 else found[:limit]


def _format(template: str, arguments: list[Any]) -> str:
    return formatted(template, arguments)


SIGNATURES: Final[list[tuple[str, Function]]] = [
    ("string.charAt(int) -> string", _char_at),
    ("string.format(list<dyn>) -> string", _format),
    ("string.indexOf(string) -> int", _index_of),
    ("string.indexOf(string, int) -> int", _index_of),
    ("string.lastIndexOf(string) -> int", _last_index_of),
    ("string.lastIndexOf(string, int) -> int", _last_index_of),
    ("string.lowerAscii() -> string", lambda text: text.translate(_LOWER)),
    ("string.upperAscii() -> string", lambda text: text.translate(_UPPER)),
    ("string.replace(string, string) -> string", _replace),
    ("string.replace(string, string, int) -> string", _replace),
    ("string.split(string) -> list<string>", _split),
    ("string.split(string, int) -> list<string>", _split),
    ("string.substring(int) -> string", _substring),
    ("string.substring(int, int) -> string", _substring),
    ("string.trim() -> string", lambda text: text.strip(_SPACE)),
    ("list<string>.join() -> string", _join),
    ("list<string>.join(string) -> string", _join),
    ("::strings.quote(string) -> string", _quote),
    ("string.find(string) -> string", _find),
    ("string.findAll(string) -> list<string>", _find_all),
    ("string.findAll(string, int) -> list<string>", _find_all),
]
