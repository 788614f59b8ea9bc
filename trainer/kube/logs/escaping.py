r"""Escaping: text of other people is shown by terminals, and never obeyed by them.

The renderer of text quotes values with anything unusual in them. What it writes as it is are the event, which libraries
make of what they have received, and tracebacks, which end in messages of errors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from structlog.typing import EventDict, WrappedLogger

_TRACEBACKS = ("exception", "stack")
_INDENT = "  "


def escape(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:  # noqa: ARG001 - a structlog processor
    r"""Write control characters as Python would: an escape character as `\x1b`, a line break in an event as `\n`.

    Tracebacks keep their lines, but indented: none of them looks like another event.
    """
    if isinstance(text := event.get("event"), str):
        event["event"] = _shown(text)
    for key in _TRACEBACKS:
        if isinstance(text := event.get(key), str):
            event[key] = "\n".join(f"{_INDENT}{_shown(line)}" for line in text.split("\n"))
    return event


def _shown(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
