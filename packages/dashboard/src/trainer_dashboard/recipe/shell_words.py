"""The commands of a shell script, as words: what `sh -c` would run, without running any of it.

Quotes, backslashes, comments and continued lines are read as a POSIX shell reads them; variables stay as they are
written, and `"$@"` becomes the arguments of the script. It takes linear time, since tenants write the scripts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Final

LONGEST_SCRIPT: Final = 16 * 1024
"""Characters of a script that are read."""
_SHELLS: Final = frozenset({"sh", "bash", "dash", "ash", "zsh", "ksh"})
_ARGUMENTS: Final = frozenset({"$@", "$*", "${@}", "${*}"})
_TOKEN: Final = re.compile(
    r"""
    (?P<blank>(?:[ \t\r]|\\\n)++)
    | (?P<comment>\#[^\n]*+)
    | (?P<end>[\n;&|()]++)
    | (?P<redirection>[0-9]*+(?:<<<?|>>?|<)&?-?)
    | (?P<word>(?:[^\s'"\\;&|()<>]++|\\.|'[^']*+'|"(?:[^"\\]++|\\.)*+")++)
    | (?P<rest>.)
    """,
    re.VERBOSE | re.DOTALL,
)
"""A token of a script. What has no closing quote is read character by character, as part of no word."""
_PART: Final = re.compile(r"""'([^']*+)'|"((?:[^"\\]++|\\.)*+)"|\\(.)|([^'"\\]++)""", re.DOTALL)
_ESCAPED: Final = re.compile(r'\\([\\"$`])|\\\n')
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*+\+?=")


def script_of(words: Sequence[str]) -> tuple[str, Sequence[str]] | None:
    """The script of `sh -c SCRIPT NAME ARGUMENTS` and its arguments; None for any other command."""
    place = next((index for index, word in enumerate(words) if PurePosixPath(word).name in _SHELLS), None)
    if place is None or any(not _is_before_a_shell(word) for word in words[:place]):
        return None
    for index in range(place + 1, len(words)):
        word = words[index]
        if not word.startswith(("-", "+")):
            # The name of an option, as in `bash -o pipefail -c`; else it is a file with a script.
            if not words[index - 1].endswith("o") or index == place + 1:
                return None
        elif word[1:2] != "-" and "c" in word:
            behind = words[index + 1 :]
            while behind and behind[0].startswith("-") and len(behind) > 1:
                behind = behind[1:]  # options may follow, as in `bash -c -e SCRIPT`
            return (behind[0], behind[2:]) if behind else None
    return None


def _is_before_a_shell(word: str) -> bool:
    return word in {"env", "/usr/bin/env", "exec", "nohup", "time"} or _ASSIGNMENT.match(word) is not None


def commands_of(script: str, arguments: Sequence[str] = ()) -> Iterator[list[str]]:
    """The simple commands of a script in their order, without assignments before them and without redirections."""
    command: list[str] = []
    is_target = False
    for token in _TOKEN.finditer(script[:LONGEST_SCRIPT]):
        match token.lastgroup:
            case "end":
                if command:
                    yield command
                command, is_target = [], False
            case "redirection":
                is_target = True
            case "word" if is_target:
                is_target = False
            case "word":
                command.extend(_expanded(token[0], arguments, is_first=not command))
    if command:
        yield command


def _expanded(word: str, arguments: Sequence[str], *, is_first: bool) -> Sequence[str]:
    if is_first and _ASSIGNMENT.match(word):
        return ()
    text = "".join(map(_unquoted, _PART.finditer(word)))
    return arguments if text in _ARGUMENTS and not word.startswith("'") else (text,)


def _unquoted(part: re.Match[str]) -> str:
    literal, quoted, escaped, bare = part.groups()
    if quoted is not None:
        return _ESCAPED.sub(lambda found: found[1] or "", quoted)
    if escaped is not None:
        return "" if escaped == "\n" else escaped
    return literal if literal is not None else bare
