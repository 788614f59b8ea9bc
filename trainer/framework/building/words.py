"""Words of a command that is written as one line, as a shell would see them.

`shlex` does the same in a time that grows with the square of a word, and an author decides how long a word is.
"""

from __future__ import annotations

import re
from typing import Final

_SPACE: Final = " \t\r\n"
"""What separates words."""
_END: Final = "\0"
"""Stands between two words while quotes are removed."""
_QUOTED: Final = re.compile(
    r"""[ \t\r\n]++\Z|(?P<space>[ \t\r\n]+)|\\(?P<escaped>.)|'(?P<single>[^']*)'"""
    r"""|"(?P<double>[^"\\]*(?:\\.[^"\\]*)*)"|(?P<open>['"\\])""",
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
        ValueError: a quote is not closed, nothing follows a backslash, or there is a NUL character.
    """
    if _END in line:
        raise ValueError("No word can contain a NUL character")
    line = line.lstrip(_SPACE)
    return _QUOTED.sub(_unquoted, line).split(_END) if line else []


def shell_operator(line: str) -> str | None:
    """The first word that a shell would take for an operator, such as `&&`; none behind a quote that is not closed."""
    for found in _UNQUOTED.finditer(line):
        if found.lastgroup == "open":
            return None
        if found.lastgroup == "operator" and _OPERATORS.issuperset(found["operator"]):
            return found["operator"]
    return None


def _unquoted(found: re.Match[str]) -> str:
    kind = found.lastgroup
    if kind is None:
        return ""
    if kind == "space":
        return _END
    if kind == "open":
        raise ValueError("No escaped character" if found[kind] == "\\" else "No closing quotation")
    return _ESCAPED_IN_QUOTES.sub(r"\1", found[kind]) if kind == "double" else found[kind]
