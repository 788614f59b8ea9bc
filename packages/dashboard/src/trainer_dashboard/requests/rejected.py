"""What the dashboard refuses before anything is sent."""

from __future__ import annotations

from trainer.kube.field_errors import FieldError


class RejectedError(Exception):
    """What is wrong with a text or an object; the user corrects it."""

    def __init__(self, *errors: FieldError) -> None:
        super().__init__("; ".join(map(str, errors)))
        self.errors = errors
