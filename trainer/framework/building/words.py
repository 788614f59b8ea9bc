"""Words of a command that is written as one line, as a shell would see them.

`shlex` does the same in a time that grows with the square of a word, and an author decides how long a word is.
"""

from __future__ import annotations

import re
from typing import Final

_SPACE: Final = " \t\r\n"
"""What separates words."""
_PIECE: Final = re.compile(
    r"""(?P<space>[ \t\r\n]+)|(?P<plain>[^ \t\r\n'"\\]+)|\\(?P<escaped>.)|'(?P<single>[^']*)'"""
    r'''|"(?P<double>[^"\\]*(?:\\.[^"\\]*)*)"''',
    re.DOTALL,
)
_ESCAPED_IN_QUOTES: Final = re.compile(r'\\(["\\])')
_UNQUOTED: Final = re.compile(
    r"""\\.|'[^']*'|"[^"\\]*(?:\\.[^"\\]*)*"|(?P<operator>[();<>|&]+)|(?P<open>['"\\])""", re.DOTALL
)
_OPERATORS: Final = frozenset("|&;<>")
"""What pipes, lists and redirections of a shell consist of."""


def split_words(line: str) -> list[str]:
    """What `shlex.split` gives.

    Raises:
        ValueError: a quote is not closed, or nothing follows a backslash.
    """
    if not any(mark in line for mark in "'\"\\"):
        # str.split() would take the spaces of Unicode for separators.
        return [word for word in re.split(f"[{_SPACE}]+", line) if word]
    words: list[str] = []
    word: list[str] | None = None
    position = 0
    while position < len(line):
        piece = _PIECE.match(line, position)
        if piece is None:
            raise ValueError("No escaped character" if line[position] == "\\" else "No closing quotation")
        position = piece.end()
        if piece.lastgroup != "space":
            word = [] if word is None else word
            word.append(_text(piece))
        elif word is not None:
            words.append("".join(word))
            word = None
    return words if word is None else [*words, "".join(word)]


def shell_operator(line: str) -> str | None:
    """The first word that a shell would take for an operator, such as `&&`; none behind a quote that is not closed."""
    for found in _UNQUOTED.finditer(line):
        if found.lastgroup == "open":
            return None
        if found.lastgroup == "operator" and _OPERATORS.issuperset(found["operator"]):
            return found["operator"]
    return None


def _text(piece: re.Match[str]) -> str:
    text = piece[piece.lastgroup or 0]
    return _ESCAPED_IN_QUOTES.sub(r"\1", text) if piece.lastgroup == "double" else text
