"""Tokens: the words of an expression."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from trainer_devcluster.apiserver.cel.errors import CompileError, Issue
from trainer_devcluster.apiserver.cel.values import MAX_INT, MAX_UINT, MIN_INT, Uint

_TOKEN: Final = re.compile(
    r"""
    (?P<space>[\t\n\f\r ]+ | //[^\n]*)
  | (?P<text>[rR]?(?:"{3}.*?"{3} | '{3}.*?'{3}) | [rR](?:"[^"\n\r]*" | '[^'\n\r]*')
      | (?:"(?:\\.|[^"\\\n\r])*" | '(?:\\.|[^'\\\n\r])*'))
  | (?P<bytes>[bB](?:[rR]?(?:"{3}.*?"{3} | '{3}.*?'{3}) | [rR](?:"[^"\n\r]*" | '[^'\n\r]*')
      | (?:"(?:\\.|[^"\\\n\r])*" | '(?:\\.|[^'\\\n\r])*')))
  | (?P<float>\d+\.\d+(?:[eE][+-]?\d+)? | \d+[eE][+-]?\d+ | \.\d+(?:[eE][+-]?\d+)?)
  | (?P<uint>(?:0[xX][0-9a-fA-F]+ | \d+)[uU])
  | (?P<int>0[xX][0-9a-fA-F]+ | \d+)
  | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<sign>&& | \|\| | == | != | <= | >= | [<>+\-*/%!?:.,()\[\]{}])
    """,
    re.VERBOSE | re.DOTALL,
)
_SIMPLE_ESCAPES: Final = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "?": "?", '"': '"', "'": "'", "`": "`",
}  # fmt: skip
_ESCAPE: Final = re.compile(
    r"\\(?:([abfnrtv\\?\"'`])|[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2}))"
)


class Token(NamedTuple):
    """A word and where it stands."""

    kind: str
    """text, bytes, float, uint, int, name, sign or end."""
    text: str
    """As it is written."""
    value: object
    """What a literal stands for."""
    position: int


def tokenize(source: str) -> list[Token]:
    """The words of an expression; the last one marks the end.

    Raises:
        CompileError: a character belongs to no word, or a literal is malformed.
    """
    tokens: list[Token] = []
    position = 0
    while position < len(source):
        match = _TOKEN.match(source, position)
        if match is None or match.lastgroup is None:
            problem = f"Syntax error: token recognition error at: '{source[position]}'"
            raise CompileError(source, [Issue(position, problem)])
        if match.lastgroup != "space":
            tokens.append(_token(source, match.lastgroup, match[0], position))
        position = match.end()
    tokens.append(Token("end", "<EOF>", None, len(source)))
    return tokens


def _token(source: str, kind: str, text: str, position: int) -> Token:
    try:
        return Token(kind, text, _value(kind, text), position)
    except ValueError as error:
        raise CompileError(source, [Issue(position, str(error))]) from error


def _value(kind: str, text: str) -> object:
    if kind == "float":
        return float(text)
    if kind == "int":
        return _whole(text, MIN_INT, MAX_INT, "int")
    if kind == "uint":
        return Uint(_whole(text[:-1], 0, MAX_UINT, "uint"))
    if kind == "text":
        return _unquoted(text)
    return _unquoted_bytes(text[1:]) if kind == "bytes" else None


def _whole(text: str, least: int, most: int, name: str) -> int:
    value = int(text, 16 if text[:2] in ("0x", "0X") else 10)
    # The least integer is written as a minus and one more than the greatest.
    if not least <= value <= most + (1 if least < 0 else 0):
        raise ValueError(f"invalid {name} literal")
    return value


def _unquoted(text: str) -> str:
    raw = text[0] in "rR"
    quoted = text[1:] if raw else text
    width = 3 if quoted[:3] in ('"""', "'''") else 1
    content = quoted[width:-width]
    return content if raw else _unescaped(content)


def _unescaped(text: str) -> str:
    parts, position = [], 0
    while (start := text.find("\\", position)) >= 0:
        match = _ESCAPE.match(text, start)
        if match is None:
            raise ValueError("unable to unescape string")
        simple, *codes = match.groups()
        bases = (16, 16, 16, 8)
        code = next((chr(int(code, base)) for code, base in zip(codes, bases, strict=True) if code), "")
        parts += [text[position:start], _SIMPLE_ESCAPES[simple] if simple else code]
        position = match.end()
    return "".join([*parts, text[position:]])


def _unquoted_bytes(text: str) -> bytes:
    return b"".join(_byte(text, character) for character in _unquoted(text))


def _byte(text: str, character: str) -> bytes:
    # Escapes by number stand for bytes, everything else for its UTF-8 form.
    escaped = 0x80 <= ord(character) <= 0xFF and "\\" in text
    return bytes([ord(character)]) if escaped else character.encode()
