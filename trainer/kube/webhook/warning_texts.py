"""Warning texts: warnings of a webhook, such that the API server passes all of them on.

It sends them as HTTP headers, so one with a control character would be lost; above 4096 characters in all it cuts each
to 256 and drops the rest without a word (Kubernetes documentation, "Dynamic Admission Control", and the API server's
warning recorder). Here what is cut or dropped says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_TOTAL_BYTES = 4096
"""For the texts of one answer; characters where the API server counts, of which bytes are never fewer."""

MAX_BYTES = 256
"""For one text, when all of them would be more than `MAX_TOTAL_BYTES`."""


def shortened(warnings: Sequence[str]) -> list[str]:
    """Texts that fit: each once, on one line, cut where they are too many together."""
    texts = list(dict.fromkeys(line for line in map(_one_line, warnings) if line))
    if _size(texts) <= MAX_TOTAL_BYTES:
        return texts
    texts = [cut(text, MAX_BYTES) for text in texts]
    if _size(texts) <= MAX_TOTAL_BYTES:
        return texts
    size = 0
    for position, text in enumerate(texts):
        rest = f"warnings not shown: {len(texts) - position}"
        size += _size([text])
        if size + len(rest) > MAX_TOTAL_BYTES:
            return [*texts[:position], rest]
    return texts


def cut(text: str, most: int) -> str:
    """The beginning of a text, such that it has no more than `most` bytes; what is cut ends in dots."""
    encoded = text[: most + 1].encode(errors="replace")
    if len(encoded) <= most:
        return text
    # A character that is cut in two is dropped.
    return encoded[: most - 3].decode(errors="ignore").rstrip() + "..."


def _one_line(text: str) -> str:
    valid = text.encode(errors="replace").decode()
    return " ".join("".join(character if character.isprintable() else " " for character in valid).split())


def _size(texts: Sequence[str]) -> int:
    return sum(len(text.encode()) for text in texts)
