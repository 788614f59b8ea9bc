"""What is wrong with one field of an object, told to the person who wrote it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class FieldError:
    """A field path as the user writes it, and what to do about it."""

    field: str
    """Such as `spec.trainer.env[0].value`; "" is the object itself."""
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


class InvalidObjectError(ValueError):
    """An object does not fit its model; the text has one line per wrong field. Nobody retries: its author decides."""

    def __init__(self, subject: str, errors: tuple[FieldError, ...]) -> None:
        super().__init__("\n".join(str(error) for error in errors))
        self.subject = subject
        """The object in words, such as `TrainJob demo`."""
        self.errors = errors
