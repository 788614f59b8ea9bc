"""What a conversion has made of one object, and how the user reads it."""

from __future__ import annotations

from dataclasses import dataclass

from trainer.cli.console import note, printable
from trainer.kube.field_errors import FieldError
from trainer.kube.objects import Object
from trainer.kubernetes_yaml import dump, join


@dataclass(frozen=True, slots=True)
class Converted:
    """What one object has become."""

    place: str
    """Where it was read, such as `job.yaml, document 2`."""
    objects: tuple[Object, ...]
    """A runtime comes before the TrainJob that refers to it."""
    losses: tuple[FieldError, ...] = ()
    """What is lost, with what to do instead; fields are paths in the object that was converted."""

    def to_yaml(self) -> str:
        """The objects as YAML documents, the first after a comment for each loss."""
        comments = "".join(f"# {printable(str(loss))}\n" for loss in self.losses)
        return comments + join(dump(obj) for obj in self.objects)

    def report(self) -> None:
        """Print each loss to standard error."""
        for loss in self.losses:
            note(f"{self.place}: {loss}", kind="warning")
