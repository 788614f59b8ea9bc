"""Refusal texts: what is wrong with an object, such that the answer stays small whatever the object is.

The API server repeats the answer to its client, in the message and once more in the causes, and writes it to the audit
log. How many errors an object has, and how long the names and values are that they repeat, is up to its author.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.kube.field_errors import MORE_ERRORS, MOST_ERRORS, FieldError
from trainer.kube.webhook.warning_texts import cut

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_TOTAL_BYTES = 8192
"""For the errors of one answer, before the last one that says how many are missing; a message on its own as well."""
MAX_FIELD_BYTES = 512
MAX_MESSAGE_BYTES = 1536


def shown_errors(errors: Iterable[FieldError]) -> tuple[FieldError, ...]:
    """The first errors, each once and cut where it is long; the last one says how many are left out."""
    # Whoever sorts errors puts those without a field first.
    unique = tuple(sorted(dict.fromkeys(errors), key=lambda error: error == MORE_ERRORS))
    size = 0
    for position, error in enumerate(unique):
        size += len(str(_cut(error)).encode(errors="replace"))
        if position == MOST_ERRORS + 1 or size > MAX_TOTAL_BYTES:
            rest = FieldError("", f"at least {len(unique) - position} more errors are not shown")
            return (*map(_cut, unique[:position]), rest)
    return tuple(map(_cut, unique))


def _cut(error: FieldError) -> FieldError:
    return FieldError(cut(error.field, MAX_FIELD_BYTES), cut(error.message, MAX_MESSAGE_BYTES), error.reason)
