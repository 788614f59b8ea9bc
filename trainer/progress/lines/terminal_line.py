"""A line of a log as a terminal shows it: what was overwritten is gone, and only colours of its escapes are left.

A log is text of anybody. A terminal that gets it as it is obeys it: it moves the cursor over other lines, changes the
title of its window, or answers into the shell.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_SPECIAL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_CONTROLS: Final = bytes({*range(0x20), 0x7F} - set(b"\t\n"))
_BEYOND_ASCII: Final = re.compile(rb"\xc2[\x80-\x9f]|\xe2(?:\x80[\xaa-\xae]|\x81[\xa6-\xa9])")
"""What is special besides, in UTF-8."""
_SEQUENCE: Final = re.compile(
    r"(?:\x1b\[|\x9b)(?P<parameters>[0-?]*+)[ -/]*+(?P<final>[@-~]?)"  # CSI
    r"|(?:\x1b[P\]X^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*+(?:\x07|\x1b\\|\x9c)?"  # texts, such as titles of windows
    r"|\x1b[ -/]*+[0-~]?"
    r"|(?P<direction>[\u202a-\u202e\u2066-\u2069])"
    r"|(?P<control>[\x00-\x08\x0a-\x1f\x7f-\x9f])"
)
_COLORS: Final = re.compile(r"\x1b\[[0-9;]*m")
_RESET: Final = "\x1b[0m"
_MOST_CODES: Final = 32
_DIGITS: Final = 6
_HUGE: Final = 10**_DIGITS
_UP: Final = re.compile(rb"(?:\x1b\[[0-9]{0,4}A)+\r?$")
"""The end of a line behind which the next one is written over it, as bars of tqdm below another do."""


def may_be_special(block: bytes) -> bool:
    """Whether `shown` may change lines of a block; true for few logs."""
    if len(block.translate(None, _CONTROLS)) != len(block):
        return True
    return not block.isascii() and _BEYOND_ASCII.search(block) is not None


def is_overwritten(line: bytes) -> bool:
    """Whether a line ends with the cursor on it, so that a terminal shows the next line in its place."""
    return line[-1:] in b"A\r" and _UP.search(line, max(len(line) - 64, 0)) is not None


def shown(line: str) -> str:
    """What is to be seen of a line in the end, with colours and without other controls; they are reset at its end.

    Carriage returns, backspaces, and escapes that move within the line or erase have their effect.
    """
    if _SPECIAL.search(line) is None:
        return line
    cells = _Cells()
    at = 0
    for found in _SEQUENCE.finditer(line):
        cells.write(line[at : found.start()])
        at = found.end()
        if found["final"]:
            cells.obey(found["final"], found["parameters"])
        elif found["control"] == "\r":
            cells.column, cells.is_written_over = 0, at < len(line)
        elif found["control"] == "\b":
            cells.column = max(cells.column - 1, 0)
        elif found["direction"]:
            cells.write("\ufffd")
    cells.write(line[at:])
    return cells.text()


def without_colors(text: str) -> str:
    """A text of `shown` without its colours."""
    return _COLORS.sub("", text)


class _Style(NamedTuple):
    """Colours and weight of characters."""

    flags: frozenset[int] = frozenset()
    """Codes of Select Graphic Rendition: bold, faint, italic, underlined, inverse, crossed out."""
    color: str = ""
    background: str = ""

    @property
    def sequence(self) -> str:
        """The escape that switches from none to it."""
        codes = [*map(str, sorted(self.flags)), self.color, self.background]
        return f"\x1b[{';'.join(filter(None, codes))}m" if any(codes) else ""

    def changed(self, parameters: str) -> _Style:
        """The style after an escape with these parameters."""
        style = self
        codes = iter(parameters.replace(":", ";").split(";", _MOST_CODES)[:_MOST_CODES])
        for text in codes:
            code = _number(text, 0)
            if code == 0:
                style = _NO_STYLE
            elif code in {1, 2, 3, 4, 7, 9}:  # neither what blinks nor what is hidden
                style = style._replace(flags=style.flags | {code})
            elif code in _OFF:
                style = style._replace(flags=style.flags - _OFF[code])
            elif 30 <= code <= 37 or 90 <= code <= 97:
                style = style._replace(color=str(code))
            elif 40 <= code <= 47 or 100 <= code <= 107:
                style = style._replace(background=str(code))
            elif code == 39:
                style = style._replace(color="")
            elif code == 49:
                style = style._replace(background="")
            elif code in {38, 48}:
                kind = next(codes, "")
                values = [_number(next(codes, ""), 0) for _ in range({"5": 1, "2": 3}.get(kind, 0))]
                chosen = ";".join(map(str, (code, kind, *values))) if values and max(values) < 256 else ""
                style = style._replace(color=chosen) if code == 38 else style._replace(background=chosen)
        return style


_NO_STYLE: Final = _Style()
_OFF: Final = {22: {1, 2}, 23: {3}, 24: {4}, 27: {7}, 29: {9}}


class _Cells:
    """The characters of the line on a terminal without an edge, and the cursor, which never leaves them."""

    def __init__(self) -> None:
        self._characters: list[str] = []
        self._styles: list[_Style] = []
        self._style = _NO_STYLE
        self._has_styles = False
        self.is_written_over = False
        self.column = 0

    def write(self, text: str) -> None:
        """Write over what is there."""
        end = self.column + len(text)
        self._characters[self.column : end] = text
        self._styles[self.column : end] = [self._style] * len(text)
        self.column = end

    def obey(self, final: str, parameters: str) -> None:
        """Do what an escape asks for; what leaves the line, or asks something, is left."""
        if final == "m":
            if not parameters or parameters[0].isdecimal() or parameters[0] in ";:":
                self._style = self._style.changed(parameters)
                self._has_styles = True
        elif final == "K":
            self._erase(parameters)
        elif final == "D":
            self.column = max(self.column - _number(parameters, 1), 0)
        elif final == "C":
            self.column = min(self.column + _number(parameters, 1), len(self._characters))
        elif final in "G`":
            self.column = min(max(_number(parameters, 1) - 1, 0), len(self._characters))

    def _erase(self, parameters: str) -> None:
        if parameters in {"", "0"}:
            del self._characters[self.column :]
            del self._styles[self.column :]
        elif parameters == "2":  # mostly behind a carriage return or before one
            self._characters, self._styles, self.column = [], [], 0

    def text(self) -> str:
        """The characters, with an escape where the style changes."""
        characters, styles = self._characters, self._styles
        while self.is_written_over and characters and characters[-1] == " " and styles[-1] == _NO_STYLE:
            del characters[-1], styles[-1]  # of a longer state before it
        if not self._has_styles:
            return "".join(characters)
        parts, style, start = [], _NO_STYLE, 0
        for at, each in enumerate(styles):
            if each is not style and each != style:
                parts += ["".join(characters[start:at]), _RESET if style != _NO_STYLE else "", each.sequence]
                style, start = each, at
        return "".join((*parts, "".join(characters[start:]), _RESET if style != _NO_STYLE else ""))


def _number(text: str, default: int) -> int:
    return default if not text.isdecimal() else int(text) if len(text) <= _DIGITS else _HUGE
