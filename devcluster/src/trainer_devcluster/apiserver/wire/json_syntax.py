"""JSON syntax: what is wrong with malformed JSON, in the words of Go's `encoding/json`, which clients know."""

from __future__ import annotations

import re
from typing import Final

_SPACE: Final = re.compile(rb"[ \t\r\n]*")
_PLAIN: Final = re.compile(rb'[^"\\\x00-\x1f]*')
_DIGITS: Final = re.compile(rb"[0-9]*")
_HEX: Final = re.compile(rb"[0-9a-fA-F]")
_LITERALS: Final = {ord("t"): b"true", ord("f"): b"false", ord("n"): b"null"}
_ESCAPES: Final = b'"\\/bfnrt'
_END: Final = "unexpected end of JSON input"
MAX_DEPTH: Final = 10_000
"""Lists and objects inside each other, as Go counts them."""


class JsonSyntaxError(ValueError):
    """The bytes are not one JSON value."""


def check(content: bytes) -> None:
    """Read the bytes as one JSON value.

    Raises:
        JsonSyntaxError: they are none; the message names the byte and what stood there instead.
    """
    scanner = _Scanner(content)
    scanner.value()
    scanner.space()
    if not scanner.at_end:
        raise scanner.unexpected("after top-level value")


class _Scanner:
    """One pass over the bytes; containers are a stack, so that depth costs no recursion."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._position = 0

    @property
    def at_end(self) -> bool:
        return self._position >= len(self._content)

    def unexpected(self, context: str) -> JsonSyntaxError:
        if self.at_end:
            return JsonSyntaxError(_END)
        return JsonSyntaxError(f"invalid character {_quoted(self._content[self._position])} {context}")

    def space(self) -> None:
        self._skip(_SPACE)

    def value(self) -> None:
        closings: list[int] = []
        while True:
            opened = self._start_of_value(closings)
            if opened and self._take_if(closings[-1]):
                closings.pop()
            elif opened:
                self._member(closings[-1])
                continue
            if not self._after_value(closings):
                return

    def _start_of_value(self, closings: list[int]) -> bool:
        """Read a scalar, or the opening of a container; whether it was the latter."""
        self.space()
        byte = self._peek()
        if byte in (ord("{"), ord("[")):
            self._position += 1
            closings.append(ord("}") if byte == ord("{") else ord("]"))
            if len(closings) > MAX_DEPTH:
                raise JsonSyntaxError("exceeded max depth")
            self.space()
            return True
        if byte == ord('"'):
            self._string()
        elif byte in _LITERALS:
            self._literal(_LITERALS[byte])
        elif byte == ord("-") or _is_digit(byte):
            self._number()
        else:
            raise self.unexpected("looking for beginning of value")
        return False

    def _after_value(self, closings: list[int]) -> bool:
        """Close what ends here; whether another value follows in a container."""
        while closings:
            self.space()
            closing = closings[-1]
            if self._take_if(ord(",")):
                self._member(closing)
                return True
            if not self._take_if(closing):
                raise self.unexpected("after object key:value pair" if closing == ord("}") else "after array element")
            closings.pop()
        return False

    def _member(self, closing: int) -> None:
        """The key of an object's next member; items of lists have none."""
        if closing != ord("}"):
            return
        self.space()
        if self._peek() != ord('"'):
            raise self.unexpected("looking for beginning of object key string")
        self._string()
        self.space()
        if not self._take_if(ord(":")):
            raise self.unexpected("after object key")

    def _string(self) -> None:
        self._position += 1
        while True:
            self._skip(_PLAIN)
            if self._take_if(ord('"')):
                return
            if not self._take_if(ord("\\")):
                raise self.unexpected("in string literal")
            if self._take_if(ord("u")):
                for _ in range(4):
                    if not _HEX.match(self._content, self._position):
                        raise self.unexpected("in \\u hexadecimal character escape")
                    self._position += 1
            elif not self.at_end and self._peek() in _ESCAPES:
                self._position += 1
            else:
                raise self.unexpected("in string escape code")

    def _literal(self, literal: bytes) -> None:
        for expected in literal:
            if self._peek() != expected:
                raise self.unexpected(f"in literal {literal.decode()} (expecting {_quoted(expected)})")
            self._position += 1

    def _number(self) -> None:
        self._take_if(ord("-"))
        if not self._take_if(ord("0")):
            self._digits("in numeric literal")
        if self._take_if(ord(".")):
            self._digits("after decimal point in numeric literal")
        if self._take_if(ord("e")) or self._take_if(ord("E")):
            self._take_if(ord("+")) or self._take_if(ord("-"))
            self._digits("in exponent of numeric literal")

    def _digits(self, context: str) -> None:
        if not _is_digit(self._peek()):
            raise self.unexpected(context)
        self._skip(_DIGITS)

    def _peek(self) -> int:
        return -1 if self.at_end else self._content[self._position]

    def _take_if(self, byte: int) -> bool:
        if self._peek() != byte:
            return False
        self._position += 1
        return True

    def _skip(self, pattern: re.Pattern[bytes]) -> None:
        match = pattern.match(self._content, self._position)
        assert match is not None
        self._position = match.end()


def _is_digit(byte: int) -> bool:
    return 0x30 <= byte <= 0x39


def _quoted(byte: int) -> str:
    """A byte as Go's scanner shows it: escaped unless it is a printable ASCII character."""
    character = chr(byte)
    if character == "'":
        return "'\\''"
    if character == '"':
        return "'\"'"
    escapes = {"\\": r"\\", "\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v"}
    if character in escapes:
        return f"'{escapes[character]}'"
    return f"'{character}'" if character.isascii() and character.isprintable() else f"'\\x{byte:02x}'"
