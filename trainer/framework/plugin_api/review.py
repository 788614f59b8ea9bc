"""What admission has to say about an object."""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import field as _field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trainer.kube.field_errors import FieldError


@dataclass(frozen=True, slots=True, order=True)
class AdmissionWarning:
    """What the author of an accepted object should know; kubectl prints it after `Warning: `."""

    field: str
    """Path of the field that it is about; "" is the object itself."""
    message: str
    origin: str = _field(default="", compare=False)
    """See `FieldError.origin`."""

    @property
    def path(self) -> str:
        """The path inside of `origin`."""
        return self.field.removeprefix(f"{self.origin} ")

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


@dataclass(frozen=True, slots=True)
class Review:
    """The findings about one object, each list sorted and without repetitions."""

    errors: tuple[FieldError, ...] = ()
    """Why it is refused; empty when it is accepted."""
    warnings: tuple[AdmissionWarning, ...] = ()

    @classmethod
    def of(cls, findings: Iterable[FieldError | AdmissionWarning]) -> Review:
        """Sort findings into errors and warnings."""
        unique = set(findings)
        warnings = {finding for finding in unique if isinstance(finding, AdmissionWarning)}
        return cls(tuple(sorted(unique - warnings)), tuple(sorted(warnings)))  # type: ignore[arg-type]
