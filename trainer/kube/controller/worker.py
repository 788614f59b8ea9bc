"""Worker: takes keys from a work queue, calls the reconcile function, and handles the outcome.

| outcome | then | `controller_runtime_reconcile_total` |
|---|---|---|
| `TerminalError` | nothing until something changes | error |
| one of `NAMESPACE_ERRORS` | nothing: its object goes with its namespace | success |
| any other exception | again, with the backoff of the key and the priority of the round | error |
| `LeadershipLostError` | nothing: the process ends | not counted |
| cancelled because everything stops | nothing | not counted |
| cancelled by itself or by what it awaited | as any other exception | error |
| `Result(error=...)` | as if raised; with `requeue_after` at the latest after this time | error |
| `Result(requeue_after=...)` | again after this time; failures are forgotten | requeue_after |
| `Result(requeue=True)` | again, with the backoff of the key | requeue |
| None, `Result()` | failures are forgotten | success |

An exception that is no `KubeError` is a mistake in the reconcile, as a panic is in Go: it is logged with its traceback,
counted in `controller_runtime_reconcile_panics_total` as well, and ends neither the worker nor the process.

Log events of a reconcile, those of its own code included, carry `controller`, `controller_group`, `controller_kind`,
`namespace`, `name` and `reconcile_id`: controller-runtime's keys in snake case, without namespace and name once more
under the kind.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Mapping

import anyio
import structlog

from trainer.kube.clock import Clock
from trainer.kube.controller.reconcile import Reconcile, Result
from trainer.kube.errors import (
    NAMESPACE_ERRORS,
    ConflictError,
    KubeError,
    LeadershipLostError,
    TerminalError,
    causes_of,
)
from trainer.kube.logger import get_logger
from trainer.kube.metrics.controllers import ControllerMetrics
from trainer.kube.objects import ObjectKey
from trainer.kube.queue.workqueue import ShutDown, WorkQueue

log = get_logger(__name__)

_DONE = Result()


class Worker:
    """Reconciles one key after the other; `run` may be called several times, for as many keys at once.

    Args:
        reconcile: what to call for each key.
        queue: where the keys come from.
        clock: for durations.
        metrics: series of the controller.
        identity: keys of log events that say which controller this is.
    """

    def __init__(
        self,
        reconcile: Reconcile,
        queue: WorkQueue[ObjectKey],
        *,
        clock: Clock,
        metrics: ControllerMetrics,
        identity: Mapping[str, str],
    ) -> None:
        self._reconcile = reconcile
        self._queue = queue
        self._clock = clock
        self._metrics = metrics
        self._identity = identity
        self._active = 0
        metrics.active_workers.set_function(lambda: self._active)

    async def run(self) -> None:
        """Reconcile until the queue is shut down or this is cancelled."""
        # Bound once and overwritten for each key: nothing is logged in between, and unbinding takes longer than a
        # small reconcile.
        structlog.contextvars.bind_contextvars(**self._identity)
        task = asyncio.current_task()
        assert task is not None
        while True:
            try:
                key = await self._queue.get()
            except ShutDown:
                return
            structlog.contextvars.bind_contextvars(
                namespace=key.namespace,
                name=key.name,
                reconcile_id=f"{random.getrandbits(128):032x}",
            )
            # Logged when the event loop is blocked: whose code blocks it, and with which object.
            task.set_name(f"controller {self._queue.name} reconciling {key}")
            try:
                await self._process(key)
            finally:
                self._queue.done(key)
            if task.cancelling():
                await _wait_despite_cancellation(task)

    async def _process(self, key: ObjectKey) -> None:
        started = self._clock.monotonic()
        self._active += 1
        try:
            result = await self._call(key)
        except Exception as error:
            self._fail(key, error)
        else:
            self._finish(key, result)
        finally:
            self._active -= 1
            self._metrics.seconds.observe(self._clock.monotonic() - started)

    async def _call(self, key: ObjectKey) -> Result:
        try:
            answer: object = await self._reconcile(key)
        except asyncio.CancelledError as error:
            if _is_stopping():
                raise
            # Unanswered, this would end the worker unnoticed.
            raise RuntimeError("the reconcile was cancelled from within") from error
        if answer is None:
            return _DONE
        if not isinstance(answer, Result):
            raise TypeError(f"the reconcile returned {type(answer).__name__} instead of Result or None")
        return answer

    def _finish(self, key: ObjectKey, result: Result) -> None:
        if result.error is not None:
            self._fail(key, result.error)
            if result.requeue_after is not None:
                self._queue.add_after(key, result.requeue_after, result.priority)
        elif result.requeue_after is not None:
            self._queue.forget(key)
            self._queue.add_after(key, result.requeue_after, result.priority)
            self._metrics.requeues_after.inc()
        elif result.requeue:
            self._queue.add_rate_limited(key, result.priority)
            self._metrics.requeues.inc()
        else:
            self._queue.forget(key)
            self._metrics.successes.inc()

    def _fail(self, key: ObjectKey, error: Exception) -> None:
        causes = causes_of(error)
        text = "; ".join(map(str, causes))
        if any(isinstance(cause, LeadershipLostError) for cause in causes):
            log.info("gave up the reconcile", error=text)
            return
        if all(isinstance(cause, NAMESPACE_ERRORS) for cause in causes):
            self._queue.forget(key)
            self._metrics.successes.inc()
            log.info("gave up the reconcile, its namespace is being deleted", error=text)
            return
        self._metrics.count_error()
        if all(isinstance(cause, TerminalError) for cause in causes):
            self._queue.forget(key)
            self._metrics.terminal_errors.inc()
            log.error("reconcile failed for good", error=text)
            return
        self._queue.add_rate_limited(key)
        failures = self._queue.failures(key)
        if not all(isinstance(cause, KubeError) for cause in causes):
            self._metrics.panics.inc()
            log.error("reconcile failed, will retry", exc_info=error, failures=failures)
        elif all(isinstance(cause, ConflictError) for cause in causes):
            log.info("reconcile met a conflict, will retry", error=text)
        else:
            # The message says it all: where in the reconcile the API server refused helps nobody.
            log.warning("reconcile failed, will retry", error=text, failures=failures)


def _is_stopping() -> bool:
    """Whether a scope around this task was cancelled, and not the task alone, by its own reconcile."""
    return anyio.current_effective_deadline() == -math.inf


async def _wait_despite_cancellation(task: asyncio.Task[object]) -> None:
    """Take a cancellation that a reconcile has left behind, which would end the worker at its next wait."""
    try:
        await asyncio.sleep(0)
    except asyncio.CancelledError:
        if _is_stopping():
            raise
    while task.cancelling():
        task.uncancel()
