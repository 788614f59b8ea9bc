"""Regular expressions in Go's syntax, which schemas and failure policies are written in.

They are RE2's, by way of the CEL library: a search takes time in the length of the text, whatever the pattern.
"""

from __future__ import annotations

from typing import Final

from cel_expr_python import cel

_MATCHES: Final = cel.NewEnv(variables={"text": cel.Type.STRING, "pattern": cel.Type.STRING}).compile(
    "text.matches(pattern)"
)
_STATUS: Final = "INVALID_ARGUMENT: invalid regular expression: "


def is_found(pattern: str, text: str) -> bool:
    """Whether the pattern occurs anywhere in the text; a malformed one occurs nowhere."""
    found = _MATCHES.eval(data={"text": text, "pattern": pattern})
    return found.type() == cel.Type.BOOL and bool(found.plain_value())


def check_pattern(pattern: str) -> None:
    """Check that a pattern can be compiled.

    Raises:
        ValueError: it cannot; the message says why.
    """
    found = _MATCHES.eval(data={"text": "", "pattern": pattern})
    if found.type() != cel.Type.BOOL:
        problem = str(found.plain_value()).removeprefix(_STATUS)
        raise ValueError(f"must be a valid regular expression, but isn't: {problem}")
