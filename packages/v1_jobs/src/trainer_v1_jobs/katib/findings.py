"""What a conversion has to say about an Experiment: what is lost, and what keeps it from being converted."""

from __future__ import annotations

from dataclasses import dataclass, field

from trainer.api.invalid_object import InvalidObjectError
from trainer.api.losses import Losses
from trainer.kube.field_errors import FieldError, first_errors


@dataclass(frozen=True, slots=True)
class Findings:
    """Both, with paths in the Experiment."""

    losses: Losses = field(default_factory=Losses)
    errors: list[FieldError] = field(default_factory=list)

    def lose(self, path: str, message: str) -> None:
        """Note what is lost."""
        self.losses.add(path, message)

    def refuse(self, error: FieldError) -> None:
        """Note an error; the conversion goes on, so that its author reads all of them at once."""
        self.errors.append(error)

    def check(self, subject: str) -> None:
        """End the conversion if there are errors.

        Raises:
            InvalidObjectError: there are; the message has a line for each.
        """
        if self.errors:
            raise InvalidObjectError(subject, first_errors(self.errors))
