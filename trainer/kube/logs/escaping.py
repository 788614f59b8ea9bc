r"""Escaping: text of other people is shown by terminals, and never obeyed by them.

The renderer of text quotes values with a blank or a quote in them. Everything else it writes as it is: the event and
the name of the logger, which libraries make of what they have received, tracebacks, which end in messages of errors,
and values of one word.
"""

from __future__ import annotations

from structlog.typing import EventDict, WrappedLogger

_TRACEBACKS = ("exception", "stack")
_BARE = ("event", "level", "logger", "timestamp")
"""What the renderer has columns for."""
_INDENT = "  "


def escape(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:  # noqa: ARG001 - a structlog processor
    r"""Write control characters as Python would: an escape character as `\x1b`, a line break in an event as `\n`.

    Tracebacks keep their lines, but indented: none of them looks like another event. Other values are quoted.
    """
    return {visible(key): _escaped(key, value) for key, value in event.items()}


class _Quoted:
    """A value that the renderer writes in quotes, as it does with those that have a blank."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return repr(self._text)


def _escaped(key: str, value: object) -> object:
    if not isinstance(value, str):
        return value
    if key in _TRACEBACKS:
        return "\n".join(f"{_INDENT}{visible(line)}" for line in value.split("\n"))
    if key in _BARE:
        return visible(value)
    return value if value.isprintable() else _Quoted(value)


def visible(text: str) -> str:
    r"""The text with control characters written as Python would: an escape character becomes `\x1b`."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
