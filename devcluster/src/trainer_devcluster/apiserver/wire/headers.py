"""Texts in headers, and warnings: what a client gets beside the answer, in Warning headers."""

from __future__ import annotations

from typing import Final

MAX_CHARACTERS: Final = 4096
"""All warnings of an answer together; beyond it each is cut."""
CUT_CHARACTERS: Final = 256
"""What is left of a warning when all of them are too long."""


class Warnings:
    """The warnings of one request, each once, in the order in which they came up."""

    def __init__(self) -> None:
        self._texts: dict[str, None] = {}

    def add(self, *texts: str) -> None:
        """Note warnings; an empty text and one that is known already count for nothing."""
        self._texts.update(dict.fromkeys(filter(None, texts)))

    @property
    def texts(self) -> list[str]:
        """What goes into the answer, cut as the real server cuts it."""
        texts = list(self._texts)
        if sum(map(len, texts)) <= MAX_CHARACTERS:
            return texts
        kept: list[str] = []
        room = MAX_CHARACTERS
        for text in texts:
            if room <= 0:
                break
            kept.append(text[:CUT_CHARACTERS])
            room -= len(kept[-1])
        return kept


def header_text(value: str) -> str:
    """The value of a header; its bytes that are no UTF-8, which come as lone surrogates, are U+FFFD as in Go's JSON."""
    return value.encode(errors="surrogateescape").decode(errors="replace")
