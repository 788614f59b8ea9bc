"""Why a TrainJob cannot become Jobs."""

from __future__ import annotations

from trainer.kube.field_errors import FieldError


class BuildError(Exception):
    """A TrainJob and its runtime do not fit together; each error names a field and the remedy.

    Retrying is useless until the TrainJob or the runtime changes.
    """

    def __init__(self, *errors: FieldError) -> None:
        super().__init__("; ".join(str(error) for error in errors))
        self.errors = errors

    @classmethod
    def at(cls, field: str, message: str) -> BuildError:
        """One error at one field."""
        return cls(FieldError(field, message))


class ForeignObjectError(Exception):
    """An object that we would create exists and belongs to somebody else; it is left alone. The work queue retries."""
