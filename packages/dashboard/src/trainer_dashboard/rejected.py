"""What the dashboard refuses before anything is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainer.kube.field_errors import FieldError


class RejectedError(Exception):
    """What is wrong with a text or an object; the user corrects it."""

    def __init__(self, *errors: FieldError) -> None:
        super().__init__("; ".join(map(str, errors)))
