"""Informer handlers of commands, which need to know only what is there and what is gone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainer.kube.cache.informer import Informer

if TYPE_CHECKING:
    from collections.abc import Callable

    from anyio.abc import TaskGroup

    from trainer.kube.cache.cached_object import CachedObject
    from trainer.kube.client import Client
    from trainer.kube.clock import Clock
    from trainer.kube.objects import Object
    from trainer.kube.resource import Resource
    from trainer.kube.selection import Selection


_PATIENCE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Receiver:
    """Passes on the present state of each object, and the last one of those that are gone.

    An informer logs what its handlers raise and goes on; here it ends the command, as if a task had raised it.
    """

    tasks: TaskGroup
    """Where an error of the functions below is raised."""
    see: Callable[[Object], None]
    """Called with each object that there is, and again with each change."""
    lose: Callable[[Object], None] | None = None
    """Called with each object that is gone. Default: nobody is told."""

    def on_add(self, obj: CachedObject, *, initial: bool) -> None:  # noqa: ARG002 - a late look sees the same
        """See `Handler`."""
        self._tell(self.see, obj)

    def on_update(self, old: CachedObject, new: CachedObject) -> None:  # noqa: ARG002
        """See `Handler`."""
        self._tell(self.see, new)

    def on_delete(self, obj: CachedObject, *, stale: bool) -> None:  # noqa: ARG002 - gone either way
        """See `Handler`."""
        if self.lose is not None:
            self._tell(self.lose, obj)

    def _tell(self, receive: Callable[[Object], None], obj: CachedObject) -> None:
        try:
            receive(obj.decode())
        except Exception as error:
            self.tasks.start_soon(_raise, error)


def watch_for(receiver: Receiver, client: Client, resource: Resource, selection: Selection, clock: Clock) -> Informer:
    """Let the receiver know of the selected objects, over broken connections, until its task group is cancelled."""
    informer = Informer(client, resource, selection, clock=clock)
    informer.add_handler(receiver)
    receiver.tasks.start_soon(informer.run)
    return informer


async def tell_errors(informer: Informer, watched: str, tell: Callable[[str], None], clock: Clock) -> None:
    """Say once why nothing new comes, when that lasts; `watched` is what people call the objects."""
    before, told = "", ""
    while True:
        await clock.sleep(_PATIENCE_SECONDS)
        error = str(informer.last_error or "")
        if error and error == before != told:
            tell(f"{watched} cannot be watched, trying again: {error}")
            told = error
        before = error


async def _raise(error: Exception) -> None:
    raise error
