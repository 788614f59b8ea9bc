"""Texts of an answer, of bounded size whatever the object is: the errors of a refusal, and warnings.

The API server repeats errors to its client, in the message and once more in the causes, and writes them to the audit
log. How many errors an object has, and how long the names and values are that they repeat, is up to its author.

It sends warnings as HTTP headers, so one with a control character would be lost. Above 4096 characters in all it cuts
each to 256 and drops the rest (Kubernetes documentation, "Dynamic Admission Control", and the API server's warning
recorder). Here a text that is cut says so, and so does the answer that leaves some out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from trainer.kube.field_errors import MORE_ERRORS, MOST_ERRORS, FieldError

MAX_ERROR_BYTES = 8192
"""For the errors of one answer, before the last one that says how many are missing; a message on its own as well."""
MAX_FIELD_BYTES = 512
MAX_MESSAGE_BYTES = 1536

MAX_WARNING_BYTES = 4096
"""For the texts of one answer; characters where the API server counts, of which bytes are never fewer."""

MAX_CUT_WARNING_BYTES = 256
"""For one text, when all of them would be more than `MAX_WARNING_BYTES`."""


def shown_errors(errors: Iterable[FieldError]) -> tuple[FieldError, ...]:
    """The first errors, each once and cut where it is long; the last one says how many are left out."""
    # Whoever sorts errors puts those without a field first.
    unique = tuple(sorted(dict.fromkeys(errors), key=lambda error: error == MORE_ERRORS))
    size = 0
    for position, error in enumerate(unique):
        size += len(str(_cut_error(error)).encode(errors="replace"))
        if position == MOST_ERRORS + 1 or size > MAX_ERROR_BYTES:
            rest = FieldError("", f"at least {len(unique) - position} more errors are not shown")
            return (*map(_cut_error, unique[:position]), rest)
    return tuple(map(_cut_error, unique))


def shortened(warnings: Sequence[str]) -> list[str]:
    """Texts that fit: each once, on one line, cut where they are too many together."""
    texts = list(dict.fromkeys(line for line in map(_one_line, warnings) if line))
    if _size(texts) <= MAX_WARNING_BYTES:
        return texts
    texts = [cut(text, MAX_CUT_WARNING_BYTES) for text in texts]
    if _size(texts) <= MAX_WARNING_BYTES:
        return texts
    size = 0
    for position, text in enumerate(texts):
        rest = f"warnings not shown: {len(texts) - position}"
        size += _size([text])
        if size + len(rest) > MAX_WARNING_BYTES:
            return [*texts[:position], rest]
    return texts


def cut(text: str, most: int) -> str:
    """The beginning of a text, such that it has no more than `most` bytes; what is cut ends in dots."""
    encoded = text[: most + 1].encode(errors="replace")
    if len(encoded) <= most:
        return text
    # A character that is cut in two is dropped.
    return encoded[: most - 3].decode(errors="ignore").rstrip() + "..."


def _cut_error(error: FieldError) -> FieldError:
    return FieldError(cut(error.field, MAX_FIELD_BYTES), cut(error.message, MAX_MESSAGE_BYTES), error.reason)


def _one_line(text: str) -> str:
    valid = text.encode(errors="replace").decode()
    return " ".join("".join(character if character.isprintable() else " " for character in valid).split())


def _size(texts: Sequence[str]) -> int:
    return sum(len(text.encode()) for text in texts)
