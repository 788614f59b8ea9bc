"""Event sender: brings the events of a process to the API server, one after the other, so that nobody waits for it.

Namespaces take turns and share the queue: see `trainer.kube.queue.fair_queue`.

An event that repeats while it waits is written once, with its latest count. A write that got no answer is tried again
up to eleven times, every 10 s; its name makes sure that it is not stored twice. What the server refuses is dropped.
Events are a service to people and never worth a failed reconcile: nothing here raises.
"""

from __future__ import annotations

import anyio

from trainer.kube.backoff import Backoff
from trainer.kube.client import Client
from trainer.kube.clock import Clock, SystemClock, move_on_after
from trainer.kube.errors import (
    AlreadyExistsError,
    KubeError,
    NamespaceTerminatingError,
    NotFoundError,
    ServerTimeoutError,
    ServiceUnavailableError,
    TooManyRequestsError,
    TransportError,
)
from trainer.kube.events.correlator import CountedEvent, EventCorrelator, Occurrence
from trainer.kube.logger import get_logger
from trainer.kube.metrics import Metrics
from trainer.kube.metrics.processes import EventSeries
from trainer.kube.queue.fair_queue import FairQueue
from trainer.kube.resource import EVENTS

log = get_logger(__name__)

_OUTAGE = (TransportError, TooManyRequestsError, ServiceUnavailableError, ServerTimeoutError)
"""Errors that say nothing about the event."""

_ATTEMPTS = 12
"""How often a write is tried while the API server does not answer, as in client-go."""
_PAUSE = Backoff(initial=10, maximum=10, jitter=0.25)
"""10 to 12.5 s between attempts, so that clients do not return together, as in client-go."""
QUEUE_SIZE = 1000
"""Events that may wait, as in client-go; beyond that the namespace with most loses its latest."""


class EventSender:
    """Writes the events of all recorders of a process; `run` it, and `stop` it after everything that records.

    Give it a client whose writes are not bound to leadership: events tell of a lost lease, too.

    Args:
        client: needs create and patch on events in all namespaces whose objects are reported about.
        clock: default: that of the machine.
        metrics: default: none that anybody sees.
    """

    def __init__(self, client: Client, *, clock: Clock | None = None, metrics: Metrics | None = None) -> None:
        self._client = client
        self._clock = clock or SystemClock()
        self._metrics = (metrics or Metrics()).series(EventSeries)
        self._correlator = EventCorrelator(self._clock)
        self._pending: FairQueue[CountedEvent] = FairQueue(lambda event: event.latest.regarding.namespace, QUEUE_SIZE)
        self._overflow = 0
        self._arrived = anyio.Event()
        self._stopping = anyio.Event()
        self._ended = False

    def submit(self, occurrence: Occurrence) -> None:
        """Have an occurrence written soon; returns at once. Not thread-safe: call it on the event loop."""
        self._metrics.recorded.inc()
        event = self._correlator.observe(occurrence)
        if event in self._pending:
            return
        if self._ended:
            self._drop(event, "stopped")
        elif not self._correlator.may_write(event):
            self._drop(event, "limited")
        else:
            self._wait(event)

    def stop(self) -> None:
        """Have `run` return when what waits is written; it does not wait for a server that does not answer."""
        self._stopping.set()
        self._arrived.set()

    async def run(self) -> None:
        """Write events until `stop` was called and none waits any more, or until cancelled."""
        try:
            while True:
                while self._pending:
                    await self._deliver(self._next())
                self._report_overflow()
                if self._stopping.is_set():
                    return
                self._arrived = anyio.Event()
                await self._arrived.wait()
        finally:
            self._ended = True
            self._abandon()

    def _wait(self, event: CountedEvent) -> None:
        """Put an event into the queue, for which another one has to go if that is full."""
        self._metrics.pending.inc()
        if self._pending.put(event) is not None:
            self._metrics.pending.dec()
            self._metrics.dropped["queue_full"].inc()
            self._overflow += 1
            if self._overflow == 1:
                log.warning("dropping events, too many wait to be written", waiting=len(self._pending))
        self._arrived.set()

    def _next(self) -> CountedEvent:
        event = self._pending.take()
        self._metrics.pending.dec()
        return event

    async def _deliver(self, event: CountedEvent) -> None:
        """Write an event; try again during an outage, unless the sender shall stop."""
        failures = 0
        while True:
            try:
                await self._write(event)
            except _OUTAGE as error:
                failures += 1
                if self._stopping.is_set() or failures >= _ATTEMPTS:
                    self._drop(event, "unreachable", error)
                    break
                log.debug("could not write event, will retry", error=str(error), **_names(event))
            except KubeError as error:
                self._drop(event, "refused", error)
                return
            except Exception:
                self._metrics.dropped["refused"].inc()
                log.exception("failed to write event", **_names(event))
                return
            else:
                return
            async with move_on_after(self._clock, _PAUSE.pause(failures - 1)):
                await self._stopping.wait()
        if self._stopping.is_set():
            self._abandon()

    async def _write(self, event: CountedEvent) -> None:
        count = event.count
        if event.stored == count:
            return
        if event.stored:
            try:
                await self._patch(event)
            except NotFoundError:
                # The API server deletes events after an hour.
                await self._create(event)
        else:
            await self._create(event)
        event.stored = count

    async def _create(self, event: CountedEvent) -> None:
        try:
            await self._client.create(EVENTS, event.body())
        except AlreadyExistsError:
            # An earlier attempt was carried out although its answer got lost.
            await self._patch(event)
        else:
            self._metrics.created.inc()

    async def _patch(self, event: CountedEvent) -> None:
        await self._client.patch(EVENTS, event.name, event.change(), event.namespace)
        self._metrics.patched.inc()

    def _drop(self, event: CountedEvent, reason: str, error: Exception | None = None) -> None:
        self._metrics.dropped[reason].inc()
        # The namespace of the event is being deleted, or is gone.
        if error is None or isinstance(error, NamespaceTerminatingError | NotFoundError):
            log.debug("dropped event", why=reason, **_names(event))
        else:
            log.warning("could not write event", error=str(error), **_names(event))

    def _abandon(self) -> None:
        """Give up what waits."""
        self._report_overflow()
        if self._pending:
            log.warning("stopped before all events were written", dropped=len(self._pending))
        while self._pending:
            self._next()
            self._metrics.dropped["stopped"].inc()

    def _report_overflow(self) -> None:
        if self._overflow:
            log.warning("dropped events, too many waited to be written", dropped=self._overflow)
            self._overflow = 0


def _names(event: CountedEvent) -> dict[str, str]:
    """What identifies an event in a log line."""
    about = event.latest.regarding
    return {"reason": event.latest.reason, "kind": about.kind, "namespace": about.namespace, "name": about.name}
