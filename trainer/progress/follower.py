"""The follower of one container's log, which keeps the last status that its training has reported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio
import structlog

from trainer.kube.errors import ForbiddenError, UnauthorizedError
from trainer.kube.logger import get_logger
from trainer.kube.podlogs.container_log import ContainerLog, ContainerLogOptions, Interruption, LogObserver
from trainer.kube.podlogs.instant import Instant
from trainer.progress.message_reader import MessageReader
from trainer.progress.protocol import PAYLOAD_LIMIT
from trainer.progress.run import TrainingRun

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trainer.api.trainjob_status import TrainerStatus
    from trainer.kube.client import Client
    from trainer.kube.clock import Clock
    from trainer.kube.field_errors import FieldError
    from trainer.progress.metrics import ProgressSeries
    from trainer.progress.primary_pod import ContainerState
    from trainer.progress.protocol import Message, RejectedMessageError

log = get_logger(__name__)

LINE_LIMIT = PAYLOAD_LIMIT + 64
"""Bytes of the longest line that is read (KEP-2779): 64 KiB and the timestamp before it."""

IDLE_TIMEOUT = 300.0
"""Seconds of silence after which the log is requested again: a proxy may have dropped the stream without closing it."""

ABSENCE_PAUSE = 5.0
"""Seconds until the log is requested again after the API server answered that the pod does not exist."""

REFUSAL_PAUSE = 60.0
"""Seconds until the log is requested again after the API server refused it."""


@dataclass(frozen=True, slots=True)
class Listener:
    """The callbacks of a follower; they run on the event loop and must not block."""

    on_message: Callable[[Message, Instant], None]
    on_rejected: Callable[[RejectedMessageError], None]
    """The log has a tagged line that is not a message, or one behind text that no launcher writes."""
    on_dropped: Callable[[Sequence[FieldError]], None]
    """A message has values that break a rule; `on_message` gets the rest of it."""
    on_end: Callable[[], None]
    """A stream of the log was read to its end, as happens when the container ends."""


@dataclass(frozen=True, slots=True)
class FollowerContext:
    """The dependencies that all followers share."""

    client: Client
    clock: Clock
    series: ProgressSeries
    pace: float
    """Seconds between two reads of a log."""


class Follower:
    """Follows the log of a container that has started, through all of its runs.

    If `shown`, the trainerStatus of the TrainJob, is of the present run, the log is read from its time on.
    """

    def __init__(
        self, context: FollowerContext, state: ContainerState, shown: TrainerStatus | None, listener: Listener
    ) -> None:
        self._context = context
        self._listener = listener
        self._state = state
        self._began = state.started
        reported = Instant.parse(shown.last_updated_time) if shown is not None else None
        # A report from the second of the start may belong to the run before.
        goes_on = reported is not None and state.started is not None and reported > state.started
        self._resumed = shown if goes_on else None
        self._resumed_run = state.started
        self._run = TrainingRun(self._resumed)
        self._since = reported if goes_on else None
        self._stream_run = TrainingRun() if goes_on else self._run
        """The reports since a stream last ended; they belong to one run, which the status of the pod may show later."""
        self._stream_began: Instant | None = None
        self._reader = MessageReader(self._reject)
        self._is_gone = False
        self._stream: anyio.CancelScope | None = None
        self.is_done = False
        """Whether the log has been read to its end."""

    @property
    def place(self) -> tuple[str, str]:
        """Uid of the pod, and container."""
        return self._state.place

    @property
    def resumed(self) -> TrainerStatus | None:
        """The status that an earlier manager wrote about the present run; None without one."""
        return self._resumed if self._state.started == self._resumed_run else None

    @property
    def status(self) -> TrainerStatus | None:
        """The status of the present run; None before its first message."""
        return self._run.status

    def observe(self, state: ContainerState) -> Instant | None:
        """Update the state of the container.

        Returns the time of the first message of a new run if that was read before its start was known, since the status
        changes then; None otherwise.
        """
        self._state = state
        if state.has_ended and not state.is_leaving and self._stream is not None:
            # Nothing more is printed, so the stream need not end by itself. While the pod is being deleted the stream
            # stays, because the log cannot be requested again.
            self._stream.cancel()
        started, began = state.started, self._stream_began
        if started in {None, self._began} or began is None or began < started:
            return None
        was_mixed = self._run is not self._stream_run
        self._began, self._run = started, self._stream_run
        return began if was_mixed else None

    def mark_pod_gone(self) -> None:
        """Stop requesting the log again, since its pod no longer exists."""
        self._is_gone = True

    async def run(self) -> None:
        """Read the log until the container has ended, will not restart, and the log is read to its end."""
        state, series = self._state, self._context.series
        with structlog.contextvars.bound_contextvars(pod=state.pod, container=state.container):
            container_log = ContainerLog(
                self._context.client,
                *(state.namespace, state.pod, state.container),
                clock=self._context.clock,
                options=ContainerLogOptions(
                    since=self._since, line_limit=LINE_LIMIT, pace=self._context.pace, idle_timeout=IDLE_TIMEOUT
                ),
                observer=_Observer(series, self._on_stream_end),
            )
            was_refused = False
            while True:
                try:
                    await self._follow(container_log)
                except (UnauthorizedError, ForbiddenError) as error:
                    if self._is_finished():
                        break
                    log_event = log.debug if was_refused else log.warning
                    log_event("cannot read the log of a training: may the manager get pods/log?", error=str(error))
                    was_refused = True
                    await self._context.clock.sleep(REFUSAL_PAUSE)
                else:
                    if self._is_finished():
                        break
                    self._listener.on_end()
                    await self._context.clock.sleep(ABSENCE_PAUSE)
            self.is_done = True

    async def _follow(self, container_log: ContainerLog) -> None:
        """Read until the container has ended, and then the rest of its log."""
        if not self._is_finished():
            with anyio.CancelScope() as self._stream:
                await container_log.follow(self._receive, is_finished=self._is_finished)
            was_cut, self._stream = self._stream.cancelled_caught, None
            if not was_cut:
                return
        await container_log.follow(self._receive, is_finished=self._is_finished)

    def _is_finished(self) -> bool:
        return self._is_gone or self._state.has_ended

    def _receive(self, block: bytes) -> None:
        for message, time in self._reader.read(block):
            self._context.series.messages.inc()
            if not message.is_all_dropped:
                self._turn_to_new_run(time)
            dropped = message.dropped + self._run.take(message, time)
            if dropped:
                self._context.series.dropped_values.inc(len(dropped))
                self._listener.on_dropped(dropped)
            if self._stream_run is not self._run:
                self._stream_run.take(message, time)
            self._stream_began = self._stream_began or time
            self._listener.on_message(message, time)

    def _reject(self, error: RejectedMessageError) -> None:
        self._context.series.rejected_messages.inc()
        self._listener.on_rejected(error)

    def _turn_to_new_run(self, time: Instant) -> None:
        """Start a new run at the first message after a restart of the container."""
        started = self._state.started
        if started is not None and started != self._began and time >= started:
            self._began, self._stream_began = started, None
            self._run = self._stream_run = TrainingRun()
            self._reader.restart()

    def _on_stream_end(self) -> None:
        self._stream_run, self._stream_began = TrainingRun(), None
        self._listener.on_end()


class _Observer(LogObserver):
    """Counts lines, skipped lines, reconnects and open streams."""

    def __init__(self, series: ProgressSeries, on_end: Callable[[], None]) -> None:
        self._series = series
        self._on_end = on_end

    def lines(self, count: int) -> None:
        """Count lines that were read."""
        self._series.lines.inc(count)

    def skipped(self) -> None:
        """Count a line that was too long."""
        self._series.skipped_lines.inc()

    def reconnected(self, reason: str) -> None:
        """Count a reconnect by its reason."""
        self._series.reconnects.labels(reason).inc()
        if reason == Interruption.ENDED:
            self._on_end()

    def connected(self) -> None:
        """Count an open stream."""
        self._series.active_streams.inc()

    def disconnected(self) -> None:
        """Count a closed stream."""
        self._series.active_streams.dec()
