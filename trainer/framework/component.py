"""Components: the objects that a TrainJob becomes, and how each may still change once it exists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainer.kube.objects import Object
    from trainer.kube.resource import Resource


@dataclass(frozen=True, slots=True)
class Revision:
    """What to apply to an object that exists."""

    object: Object
    refused: tuple[str, ...] = ()
    """Paths of fields that differ from what the TrainJob asks for, but can no longer change."""


@dataclass(frozen=True, slots=True)
class Component:
    """One object to create; the deployer adds the owner reference."""

    resource: Resource
    object: Object
    revise: Callable[[Object], Revision | None] | None = None
    """For kinds with immutable fields: given the object that exists, what to apply to it, or None to leave it alone.
    Without this function the object is applied as it is."""
    plugin: str = ""
    """Name of the plugin that builds it, for what goes wrong with it later; the pipeline fills it in."""
