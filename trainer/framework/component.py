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
    fallback: Revision | None = None
    """What to apply instead where the API server does not accept `object`, because not every cluster allows as much.
    Defaults to nothing: it is an error."""
    remedy: str = ""
    """With a fallback: why the cluster may not accept `object`, and what its administrator can do. Defaults to nothing.
    """


@dataclass(frozen=True, slots=True)
class Component:
    """One object to create; the deployer adds the owner reference."""

    resource: Resource
    object: Object
    revise: Callable[[Object], Revision | None] | None = None
    """For kinds with immutable fields: given the object that exists, what to apply to it, or None to leave it alone.
    Without this function the object is applied as it is."""
    generated: Callable[[], Object] | None = None
    """For what must not be the same each time, such as keys: the rest of the object, members like `data` by name. It is
    asked for once, when the object is created; the object is never changed or made again, nor need its kind be watched.
    The manager must be allowed to create and get the kind."""
    runs_pods: bool = False
    """Whether pods come of it: it is applied after everything that they may need. Defaults to false."""
    lives_on: bool = True
    """Whether it stays when the TrainJob has ended, as what tells how it went does; otherwise it is deleted then."""
    plugin: str = ""
    """Name of the plugin that builds it, for what goes wrong with it later; the pipeline fills it in."""
