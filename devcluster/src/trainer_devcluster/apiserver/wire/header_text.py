"""Header text: what clients say in headers, as answers and stored objects can carry it."""

from __future__ import annotations


def header_text(value: str) -> str:
    """The value of a header; its bytes that are no UTF-8, which come as lone surrogates, are U+FFFD as in Go's JSON."""
    return value.encode(errors="surrogateescape").decode(errors="replace")
