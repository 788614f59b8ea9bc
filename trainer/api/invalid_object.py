"""An object that does not fit its model."""

from __future__ import annotations

from trainer.kube.field_errors import FieldError


class InvalidObjectError(ValueError):
    """An object does not fit its model; the text has one line per wrong field. It is not retried."""

    def __init__(self, subject: str, errors: tuple[FieldError, ...]) -> None:
        super().__init__("\n".join(str(error) for error in errors))
        self.subject = subject
        """The object in words, such as `TrainJob demo`."""
        self.errors = errors
