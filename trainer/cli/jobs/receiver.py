"""Informer handlers of commands, which need only present and deleted objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from anyio.abc import TaskGroup

from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.cache.informer import Informer
from trainer.kube.client import Client
from trainer.kube.clock import Clock
from trainer.kube.objects import Object, key_of
from trainer.kube.resource import Resource
from trainer.kube.selection import Selection

_CHECK_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Receiver:
    """Passes on the present state of each object, and the last state of deleted ones.

    An informer logs what its handlers raise; here it ends the command, as if a task had raised it.
    """

    tasks: TaskGroup
    """Errors of the functions below are raised here."""
    see: Callable[[Object], None]
    """Called with each object, and again with each change."""
    lose: Callable[[Object], None] | None = None
    """Called with each deleted object. Default: nothing."""

    def on_add(self, obj: CachedObject, *, initial: bool) -> None:  # noqa: ARG002
        """See `Handler`."""
        self._call(self.see, obj)

    def on_update(self, old: CachedObject, new: CachedObject) -> None:  # noqa: ARG002
        """See `Handler`."""
        self._call(self.see, new)

    def on_delete(self, obj: CachedObject, *, stale: bool) -> None:  # noqa: ARG002
        """See `Handler`."""
        if self.lose is not None:
            self._call(self.lose, obj)

    def _call(self, receive: Callable[[Object], None], obj: CachedObject) -> None:
        try:
            receive(obj.decode())
        except Exception as error:
            self.tasks.start_soon(_raise, error)


def watch_for(
    receiver: Receiver,
    client: Client,
    resource: Resource,
    selection: Selection,
    clock: Clock,
    *,
    known: Iterable[Object] = (),
) -> Informer:
    """Pass the selected objects to the receiver until its task group is cancelled; broken watches are resumed.

    The receiver loses those of the `known` objects that were deleted before the watch began.
    """
    informer = Informer(client, resource, selection, clock=clock)
    informer.add_handler(receiver)
    receiver.tasks.start_soon(informer.run)
    receiver.tasks.start_soon(_lose_missing, receiver, informer, list(known))
    return informer


async def _lose_missing(receiver: Receiver, informer: Informer, known: list[Object]) -> None:
    await informer.wait_for_sync()
    for obj in known:
        if informer.lister.peek(key_of(obj)) is None and receiver.lose is not None:
            receiver.lose(obj)


async def report_errors(informer: Informer, watched: str, report: Callable[[str], None], clock: Clock) -> None:
    """Report a lasting error of a watch, once; `watched` are the objects in words."""
    before, reported = "", ""
    while True:
        await clock.sleep(_CHECK_SECONDS)
        error = str(informer.last_error or "")
        if error and error == before != reported:
            report(f"{watched} cannot be watched, trying again: {error}")
            reported = error
        before = error


async def _raise(error: Exception) -> None:
    raise error
