r"""Regular expressions of failure policies: the syntax of RE2, which is Go's, matched without backtracking.

What RE2 leaves out on purpose (lookaround, references to groups, possessive repetition) makes a pattern malformed, as
it does there. What RE2 has and this has not: Unicode classes such as `\pL`, and flags for the rest of a pattern
elsewhere than at its start, for which there are groups with flags.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from trainer_devcluster.controllers.jobset.position_matching import occurs, part_of

if TYPE_CHECKING:
    from trainer_devcluster.controllers.jobset.position_matching import Part

_ESCAPES = {"z": r"\Z", "A": r"\A", "C": None, "Z": None, "G": None, "p": None, "P": None, "k": None, "g": None}
"""The Python form of escapes that mean something else to Python; None is malformed."""
_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7F",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1F\x7F",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_TOKEN = re.compile(
    r"""\\Q(?P<quoted>.*?)(?:\\E|\Z) | \\x\{(?P<hexadecimal>[0-9A-Fa-f]{1,6})\} | \\(?P<escape>.)
    | \[:(?P<inverse>\^?)(?P<posix>[a-z]+):\] | (?P<group>\(\?(?:P?<[A-Za-z_]\w*>|[ims]*(?:-[ims]+)?[:)]|.?))
    | (?P<possessive>[*+?}]\+) | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_END = r"(?!\n\Z)$"
"""Where a text ends, or with the flag m a line; what is more to Python is the place before a last line feed."""
_FLAGS = re.compile(r"\(\?(?P<on>[ims]*)(?P<off>-[ims]+)?(?P<end>[:)])")
_NAMED = re.compile(r"\(\?P?<(?P<name>[A-Za-z_]\w*)>")


def is_found(pattern: str, text: str) -> bool:
    """Whether the pattern occurs anywhere in the text; a malformed one occurs nowhere."""
    part = _compile(pattern)
    return part is not None and occurs(part, text)


@lru_cache(maxsize=256)
def _compile(pattern: str) -> Part | None:
    try:
        translated = _translated(pattern)
        # Python knows what is malformed, such as a repetition of nothing.
        re.compile(translated, re.ASCII)
        return part_of(translated)
    except (re.error, _MalformedError, OverflowError, RecursionError):
        return None


class _MalformedError(Exception):
    pass


def _translated(pattern: str) -> str:
    """The pattern in the syntax of Python."""
    parts: list[str] = []
    is_in_class = False
    opened = ""
    for token in _TOKEN.finditer(pattern):
        text = token[0]
        if token["posix"] is not None and not is_in_class:
            # Outside of a class this is a class of its own, of these letters.
            parts.append(text)
        elif text in ("[", "[^") and not is_in_class:
            is_in_class = True
            parts.append(text)
        elif is_in_class and text == "]" and opened not in ("[", "[^"):
            is_in_class = False
            parts.append(text)
        else:
            parts.append(_translated_token(token, is_in_class=is_in_class))
        opened = "[^" if opened == "[" and text == "^" else text
    return "".join(parts)


def _translated_token(token: re.Match[str], *, is_in_class: bool) -> str:
    if token["quoted"] is not None:
        return re.escape(token["quoted"])
    if token["hexadecimal"] is not None:
        return re.escape(chr(int(token["hexadecimal"], 16)))
    if token["escape"] is not None:
        return _translated_escape(token["escape"], is_in_class=is_in_class)
    if token["posix"] is not None:
        return _posix_class(token["posix"], is_inverse=bool(token["inverse"]))
    if is_in_class:
        return rf"\{token[0]}" if token[0] == "[" else token[0]
    if token["group"] is not None:
        return _translated_group(token["group"], is_first=token.start() == 0)
    if token["possessive"] is not None:
        raise _MalformedError
    return _END if token[0] == "$" else token[0]


def _translated_escape(letter: str, *, is_in_class: bool) -> str:
    if letter in "123456789" and not is_in_class:
        raise _MalformedError
    replacement = _ESCAPES.get(letter, f"\\{letter}")
    if replacement is None:
        raise _MalformedError
    return replacement


def _posix_class(name: str, *, is_inverse: bool) -> str:
    if name not in _POSIX or is_inverse:
        raise _MalformedError
    return _POSIX[name]


def _translated_group(group: str, *, is_first: bool) -> str:
    named = _NAMED.fullmatch(group)
    if named is not None:
        return f"(?P<{named['name']}>"
    flags = _FLAGS.fullmatch(group)
    if flags is None or (flags["end"] == ")" and not is_first):
        raise _MalformedError
    return group
