"""Controller: turns changes of objects into keys, and keys into calls of one reconcile function."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, TypeAlias

import anyio
import structlog

from trainer.kube.client import EVERYTHING, Selection
from trainer.kube.clock import move_on_after
from trainer.kube.errors import ConflictError, KubeError, TerminalError
from trainer.kube.handlers import EnqueueMapped, controller_owner, own_key
from trainer.kube.metrics.controllers import ControllerSeries
from trainer.kube.objects import ObjectKey
from trainer.kube.workqueue import LOW_PRIORITY, ShutDown, WorkQueue

if TYPE_CHECKING:
    from trainer.kube.handlers import MapFunction, Predicate
    from trainer.kube.informer import Informer
    from trainer.kube.manager import Manager
    from trainer.kube.resource import Resource

__all__ = ["Controller", "Reconcile", "Result", "TerminalError"]

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Result:
    """What a reconcile asks for after a success."""

    requeue_after: float | None = None
    """Seconds until the key is looked at again even if nothing changes; default None: only when something changes."""


Reconcile: TypeAlias = Callable[[ObjectKey], Awaitable[Result | None]]
"""Brings the world closer to what the object under the key asks for, which may be gone; called again after failures."""

DONE = Result()


class Controller:
    """Calls `reconcile` for each key that a watched resource yields, never twice at once for the same key.

    Constructing it registers it with the manager, which starts its workers once all informers have synced. A reconcile
    that raises is logged, counted and repeated with a backoff of 5 ms to 1000 s per key, unless by
    `TerminalError`. Log events of a reconcile carry controller, namespace, name and reconcile_id.

    Args:
        name: unique in the manager; label of metrics and log events.
        manager: provides informers, clock and metrics, and runs the controller.
        reconcile: see `Reconcile`.
        max_concurrent_reconciles: number of workers.
        reconcile_timeout: seconds after which a reconcile is cancelled and counted as failed; default None: never.
    """

    def __init__(
        self,
        name: str,
        manager: Manager,
        reconcile: Reconcile,
        *,
        max_concurrent_reconciles: int = 1,
        reconcile_timeout: float | None = None,
    ) -> None:
        if max_concurrent_reconciles < 1:
            raise ValueError(f"controller {name!r}: max_concurrent_reconciles must be at least 1")
        self.name = name
        self._manager = manager
        self._clock = manager.clock
        self._reconcile = reconcile
        self._workers = max_concurrent_reconciles
        self._timeout = reconcile_timeout
        self._queue: WorkQueue[ObjectKey] = WorkQueue(clock=manager.clock)
        self._for: Resource | None = None
        self._informers: list[Informer] = []
        manager.register(self)
        self._metrics = manager.metrics.series(ControllerSeries).for_controller(name)
        self._metrics.max_concurrent_reconciles.set(max_concurrent_reconciles)

    def reconciles(
        self, resource: Resource, *, selection: Selection = EVERYTHING, predicate: Predicate | None = None
    ) -> Self:
        """Reconcile the objects of this resource; changes for which `predicate` is false are ignored."""
        if self._for is not None:
            raise ValueError(f"controller {self.name!r} already reconciles {self._for.qualified_name}")
        self._for = resource
        return self._watch(resource, own_key, selection, predicate)

    def owns(self, resource: Resource, *, selection: Selection = EVERYTHING) -> Self:
        """Reconcile the controller owner of each changed object, if it is of the resource given to `reconciles`."""
        if self._for is None:
            raise ValueError(f"controller {self.name!r}: call reconciles() before owns()")
        return self._watch(resource, controller_owner(self._for), selection, None)

    def watches(self, resource: Resource, map_function: MapFunction, *, selection: Selection = EVERYTHING) -> Self:
        """Reconcile the keys that `map_function` gives for each changed object, before and after the change."""
        return self._watch(resource, map_function, selection, None)

    def enqueue(self, key: ObjectKey, *, after: float = 0) -> None:
        """Reconcile a key soon, or after so many seconds."""
        self._queue.add_after(key, after)

    async def run(self) -> None:
        """Wait until the watched resources have synced, then reconcile until cancelled (called by the manager)."""
        for informer in self._informers:
            await informer.wait_for_sync()
        log.info("started controller", controller=self.name, workers=self._workers)
        async with anyio.create_task_group() as tasks:
            for number in range(self._workers):
                tasks.start_soon(self._work, name=f"controller {self.name} worker {number}")

    def _watch(
        self, resource: Resource, map_function: MapFunction, selection: Selection, predicate: Predicate | None
    ) -> Self:
        informer = self._manager.informer(resource, selection)
        informer.add_handler(EnqueueMapped(self._enqueue_changed, map_function, predicate))
        self._informers.append(informer)
        return self

    def _enqueue_changed(self, key: ObjectKey, initial: bool) -> None:
        self._queue.add(key, LOW_PRIORITY if initial else 0)

    async def _work(self) -> None:
        while True:
            try:
                key = await self._queue.get()
            except ShutDown:
                return
            try:
                with structlog.contextvars.bound_contextvars(
                    controller=self.name, namespace=key.namespace, name=key.name, reconcile_id=str(uuid.uuid4())
                ):
                    await self._process(key)
            finally:
                self._queue.done(key)

    async def _process(self, key: ObjectKey) -> None:
        started = self._clock.monotonic()
        self._metrics.active_workers.inc()
        try:
            result = await self._call(key)
        except TerminalError as error:
            self._queue.forget(key)
            self._metrics.terminal_errors.inc()
            self._count_error()
            log.error("reconcile failed for good", error=str(error))  # noqa: TRY400 - the message is for people
        except ConflictError as error:
            self._retry(key)
            log.info("reconcile met a conflict, will retry", error=str(error))
        except KubeError as error:
            # The message says it all: where in the reconcile the API server refused helps nobody.
            self._retry(key)
            failures = self._queue.failures(key)
            log.warning("reconcile failed, will retry", error=str(error), failures=failures)
        except Exception:
            self._retry(key)
            log.exception("reconcile failed, will retry", failures=self._queue.failures(key))
        else:
            self._succeed(key, result)
        finally:
            self._metrics.active_workers.dec()
            self._metrics.seconds.observe(self._clock.monotonic() - started)

    async def _call(self, key: ObjectKey) -> Result:
        result: Result | None = None
        try:
            async with move_on_after(self._clock, self._timeout) as limit:
                result = await self._reconcile(key)
        except asyncio.CancelledError as error:
            if _is_being_cancelled():
                raise
            # The reconcile awaited something that others cancelled; unanswered, this would end the worker unnoticed.
            raise RuntimeError("the reconcile was cancelled from within") from error
        if limit.cancelled_caught:
            self._metrics.timeouts.inc()
            raise TimeoutError(f"the reconcile took longer than {self._timeout} s")
        return result or DONE

    def _succeed(self, key: ObjectKey, result: Result) -> None:
        self._queue.forget(key)
        if result.requeue_after is None:
            self._metrics.results["success"].inc()
            return
        self._metrics.results["requeue_after"].inc()
        self._queue.add_after(key, result.requeue_after)

    def _retry(self, key: ObjectKey) -> None:
        self._count_error()
        self._queue.add_rate_limited(key)

    def _count_error(self) -> None:
        self._metrics.errors.inc()
        self._metrics.results["error"].inc()


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
