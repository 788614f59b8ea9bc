"""Finding regular expressions in time that grows with a power of the text's length, as RE2 does it.

Python's `re` tries one way after the other, of which `(a+)+b` has exponentially many: a pattern that a user writes
could stop the whole cluster. Here each part of a pattern maps all places where it may begin to all places where it may
end.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Part: TypeAlias = "Callable[[str, set[int]], set[int]]"
"""From the places of a text where a part of a pattern may begin to those where it may end."""

_TOKEN = re.compile(
    r"""(?P<close>\)) | (?P<either>\|) | (?P<end>\(\?!\\n\\Z\)\$)
    | (?P<open>\((?:\?P<\w+>|\?(?P<on>[ims]*)(?:-(?P<off>[ims]+))?:)?)
    | (?P<repeat>[*+?]\??|\{(?:\d+(?:,\d*)?|,\d+)\}\??)
    | (?P<class>\[\^?\]?(?:\\.|[^\]\\])*\])
    | \\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|N\{[^}]*\}|0[0-7]{0,2}|.) | .""",
    re.VERBOSE | re.DOTALL,
)
_GLOBAL_FLAGS = re.compile(r"\(\?(?P<on>[ims]+)\)")
_FLAGS = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL}


def part_of(pattern: str) -> Part:
    """The whole pattern, which is valid in the syntax of Python and has no references and no lookaround."""
    flags = re.ASCII
    if given := _GLOBAL_FLAGS.match(pattern):
        flags |= _flags(given["on"])
        pattern = pattern[given.end() :]
    return _alternatives(_TOKEN.finditer(pattern), flags)


def occurs(part: Part, text: str) -> bool:
    """Whether the pattern begins and ends anywhere in the text."""
    return bool(part(text, set(range(len(text) + 1))))


def _alternatives(tokens: Iterator[re.Match[str]], flags: re.RegexFlag) -> Part:
    """What is left of the tokens, up to the parenthesis that closes it."""
    alternatives: list[list[Part]] = [[]]
    for token in tokens:
        if token["close"]:
            break
        if token["either"]:
            alternatives.append([])
        elif token["open"]:
            alternatives[-1].append(_alternatives(tokens, (flags | _flags(token["on"])) & ~_flags(token["off"])))
        elif token["repeat"]:
            alternatives[-1].append(_repeated(alternatives[-1].pop(), *_limits(token["repeat"])))
        else:
            alternatives[-1].append(_single(token[0], flags))
    return _any_of([_one_after_the_other(parts) for parts in alternatives])


def _single(source: str, flags: re.RegexFlag) -> Part:
    """One character, or an anchor."""
    compiled = re.compile(source, flags)

    def step(text: str, starts: set[int]) -> set[int]:
        found = (compiled.match(text, start) for start in starts)
        return {match.end() for match in found if match is not None}

    return step


def _one_after_the_other(parts: list[Part]) -> Part:
    def step(text: str, starts: set[int]) -> set[int]:
        for part in parts:
            if not starts:
                break
            starts = part(text, starts)
        return starts

    return step


def _any_of(parts: list[Part]) -> Part:
    def step(text: str, starts: set[int]) -> set[int]:
        return set().union(*(part(text, starts) for part in parts))

    return step if len(parts) > 1 else parts[0]


def _repeated(part: Part, least: int, most: int | None) -> Part:
    def step(text: str, starts: set[int]) -> set[int]:
        for _ in range(least):
            ends = part(text, starts)
            if ends == starts:
                break
            starts = ends
        reached, latest, left = set(starts), starts, None if most is None else most - least
        while latest and left != 0:
            latest = part(text, latest) - reached
            reached |= latest
            left = None if left is None else left - 1
        return reached

    return step


def _limits(quantifier: str) -> tuple[int, int | None]:
    match quantifier[0]:
        case "*":
            return 0, None
        case "+":
            return 1, None
        case "?":
            return 0, 1
    least, comma, most = quantifier.rstrip("?")[1:-1].partition(",")
    if not comma:
        return int(least), int(least)
    return int(least or 0), int(most) if most else None


def _flags(letters: str | None) -> re.RegexFlag:
    flags = re.RegexFlag(0)
    for letter in letters or "":
        flags |= _FLAGS[letter]
    return flags
