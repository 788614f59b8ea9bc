"""Errors for which a TrainJob cannot become Jobs, and warnings for its author."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from dataclasses import field as _field
from typing import Final, TypeAlias

from trainer.kube.field_errors import FieldError

INTERNAL: Final = "InternalError"
"""Code of an error that the author did not cause: a plugin has raised."""

CLUSTER_LACKS: Final = "ClusterLacks"
"""Code of an error that goes away once what the runtime needs is installed: a plugin, or the CRD of a scheduler."""


_LONGEST_PROBLEM: Final = 500
"""Characters of an unexpected error; it may repeat what somebody wrote."""


class BuildError(Exception):
    """A TrainJob and its runtime do not fit together; each error names a field and the remedy.

    Retrying is useless until the TrainJob or the runtime changes.
    """

    def __init__(self, first: FieldError, *more: FieldError) -> None:
        self.errors = (first, *more)
        super().__init__("; ".join(map(str, self.errors)))


class BuildDefectError(BuildError):
    """A plugin or the build itself has a defect; only its TrainJob is affected.

    The work queue retries, since the cause may go away.
    """

    def __init__(self, failure: str, error: BaseException) -> None:
        words = " ".join(str(error).split())[:_LONGEST_PROBLEM]
        problem = f"{type(error).__name__}: {words}".removesuffix(": ")
        super().__init__(FieldError("", f"Internal error: {failure}: {problem}", INTERNAL))


@dataclass(frozen=True, slots=True, order=True)
class AdmissionWarning:
    """A warning for the author of an accepted object; kubectl prints it after `Warning: `."""

    field: str
    """Path of the field; "" is the object itself."""
    message: str
    origin: str = _field(default="", compare=False)
    """See `FieldError.origin`."""

    @property
    def path(self) -> str:
        """The path inside of `origin`."""
        return self.field.removeprefix(f"{self.origin} ")

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


_MOST_ERRORS: Final = 1000
"""Errors of one object that are sorted; `first_errors` says how many of them are reported."""


Finding: TypeAlias = FieldError | AdmissionWarning
"""A finding of CustomValidation about a TrainJob."""


@dataclass(frozen=True, slots=True)
class Review:
    """The findings about one object, each list sorted and without repetitions."""

    errors: tuple[FieldError, ...] = ()
    """The errors for which it is refused; empty when it is accepted."""
    warnings: tuple[AdmissionWarning, ...] = ()

    @classmethod
    def of(cls, findings: Iterable[Finding]) -> Review:
        """Sort findings into errors and warnings; those after the first `_MOST_ERRORS` errors are dropped."""
        errors: set[FieldError] = set()
        warnings: set[AdmissionWarning] = set()
        for finding in findings:
            if isinstance(finding, AdmissionWarning):
                warnings.add(finding)
                continue
            errors.add(finding)
            if len(errors) == _MOST_ERRORS:
                break
        return cls(tuple(sorted(errors)), tuple(sorted(warnings))) if errors or warnings else _NOTHING


_NOTHING: Final = Review()
