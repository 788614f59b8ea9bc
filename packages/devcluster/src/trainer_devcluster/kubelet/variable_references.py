"""References to variables, `$(NAME)`, in commands, values and paths of a container."""

from __future__ import annotations

import re
from collections.abc import Mapping

_REFERENCE = re.compile(r"\$(?:(\$)|\(([^)]*)\))")


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Replace `$(NAME)` by the variable's value; unknown names stay as they are and `$$` is a plain `$`."""

    def replacement(match: re.Match[str]) -> str:
        return "$" if match[1] else variables.get(match[2], match[0])

    return _REFERENCE.sub(replacement, text)


def references(text: str) -> list[str]:
    """The names in `$(NAME)`."""
    return [match[2] for match in _REFERENCE.finditer(text) if match[2] is not None]
