"""Follows the log of one primary pod, and keeps what the training in it has reported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import anyio
import structlog

from trainer.kube.errors import ForbiddenError, UnauthorizedError
from trainer.kube.podlogs.container_log import ContainerLog, ContainerLogOptions
from trainer.kube.podlogs.instant import Instant
from trainer.kube.podlogs.interruption import Interruption
from trainer.progress.protocol import PAYLOAD_LIMIT, RejectedMessageError, parse, tagged_lines
from trainer.progress.run import TrainingRun

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trainer.api.trainjob_status import TrainerStatus
    from trainer.kube.client import Client
    from trainer.kube.clock import Clock
    from trainer.kube.field_errors import FieldError
    from trainer.progress.metrics import ProgressSeries
    from trainer.progress.primary_pod import ContainerState
    from trainer.progress.protocol import Message

log = structlog.get_logger(__name__)

LINE_LIMIT = PAYLOAD_LIMIT + 64
"""Bytes of the longest line that is read (KEP-2779): 64 KiB, and some for the timestamp before it."""

IDLE_TIMEOUT = 300.0
"""Seconds of silence after which the log is asked for anew: whatever stands between may have forgotten the stream."""

ABSENCE_PAUSE = 5.0
"""Seconds until a log is asked for again of a pod that was not found, though nobody has told that it is gone."""

REFUSAL_PAUSE = 60.0
"""Seconds until a log is asked for again that we had no right to read."""


class Listener(Protocol):
    """What a follower tells, on the event loop; the calls must not block."""

    def on_message(self, message: Message, time: Instant) -> None:
        """The training has reported something."""

    def on_rejected(self, error: RejectedMessageError) -> None:
        """The log has a tagged line that is no message."""

    def on_dropped(self, values: Sequence[FieldError]) -> None:
        """A message of the log has values that break a rule; the rest of it comes by `on_message`."""

    def on_end(self) -> None:
        """A stream of the log was read to its end, as when the container ends: what it has told may have been all."""


@dataclass(frozen=True, slots=True)
class FollowerContext:
    """What all followers share."""

    client: Client
    clock: Clock
    series: ProgressSeries
    pace: float
    """Seconds between two reads of a log."""


class Follower:
    """One container's log, over all runs of the container.

    Args:
        context: what all followers share.
        state: the container, which has started.
        shown: the progress that the TrainJob shows; what follows it is read if it is of the present run.
        listener: is told what the log says.
    """

    def __init__(
        self, context: FollowerContext, state: ContainerState, shown: TrainerStatus | None, listener: Listener
    ) -> None:
        self._context = context
        self._listener = listener
        self._state = state
        self._began = state.started
        reported = Instant.parse(shown.last_updated_time) if shown is not None else None
        # What was reported in the second of the start may be of the run before.
        goes_on = reported is not None and state.started is not None and reported > state.started
        self._resumed = shown if goes_on else None
        self._resumed_run = state.started
        self._run = TrainingRun(self._resumed)
        self._since = reported if goes_on else None
        self._stream_run = TrainingRun() if goes_on else self._run
        """What has been reported since a stream last ended: of one run, be it the known one or the next."""
        self._stream_began: Instant | None = None
        self._is_gone = False
        self._stream: anyio.CancelScope | None = None
        self.is_done = False
        """Whether the log is read to its end."""

    @property
    def place(self) -> tuple[str, str]:
        """Uid of the pod, and container."""
        return self._state.place

    @property
    def resumed(self) -> TrainerStatus | None:
        """What an earlier manager has written about the run that the container is in now; None if it has not."""
        return self._resumed if self._state.started == self._resumed_run else None

    @property
    def status(self) -> TrainerStatus | None:
        """What the present run has reported; None before its first message."""
        return self._run.status

    def see(self, state: ContainerState) -> Instant | None:
        """Take note of what the container is doing now.

        Returns:
            Since when the status is another one by that: a new run may be heard before it is known to have started.
        """
        self._state = state
        if state.has_ended and not state.is_leaving and self._stream is not None:
            # Nothing more comes, so the rest need not be waited for. A stream whose pod goes may be all there is left.
            self._stream.cancel()
        started, began = state.started, self._stream_began
        if started in {None, self._began} or began is None or began < started:
            return None
        was_mixed = self._run is not self._stream_run
        self._began, self._run = started, self._stream_run
        return began if was_mixed else None

    def lose(self) -> None:
        """Take note that the pod is gone."""
        self._is_gone = True

    async def run(self) -> None:
        """Read the log until the container has ended for good and nothing is left to be read."""
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
                    tell = log.debug if was_refused else log.warning
                    tell("cannot read the log of a training: may the manager get pods/log?", error=str(error))
                    was_refused = True
                    await self._context.clock.sleep(REFUSAL_PAUSE)
                else:
                    if self._is_finished():
                        break
                    self._listener.on_end()
                    await self._context.clock.sleep(ABSENCE_PAUSE)
            self.is_done = True

    async def _follow(self, container_log: ContainerLog) -> None:
        """Read until the container has ended, and then what is left."""
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
        for line in tagged_lines(block):
            try:
                message = parse(line.payload)
            except RejectedMessageError as error:
                self._context.series.rejected_messages.inc()
                self._listener.on_rejected(error)
                continue
            self._context.series.messages.inc()
            if message.dropped:
                self._context.series.dropped_values.inc(len(message.dropped))
                self._listener.on_dropped(message.dropped)
            self._turn_to_new_run(line.time)
            self._run.take(message, line.time)
            if self._stream_run is not self._run:
                self._stream_run.take(message, line.time)
            self._stream_began = self._stream_began or line.time
            self._listener.on_message(message, line.time)

    def _turn_to_new_run(self, time: Instant) -> None:
        """A container that was started again begins anew, once it says something."""
        started = self._state.started
        if started is not None and started != self._began and time >= started:
            self._began, self._stream_began = started, None
            self._run = self._stream_run = TrainingRun()

    def _on_stream_end(self) -> None:
        self._stream_run, self._stream_began = TrainingRun(), None
        self._listener.on_end()


class _Observer:
    """Counts what is read of a log."""

    def __init__(self, series: ProgressSeries, on_end: Callable[[], None]) -> None:
        self._series = series
        self._on_end = on_end

    def lines(self, count: int) -> None:
        """So many lines were read."""
        self._series.lines.inc(count)

    def skipped(self) -> None:
        """A line was too long."""
        self._series.skipped_lines.inc()

    def reconnected(self, reason: str) -> None:
        """The log will be asked for again."""
        self._series.reconnects.labels(reason).inc()
        if reason == Interruption.ENDED:
            self._on_end()

    def connected(self) -> None:
        """A stream was opened."""
        self._series.active_streams.inc()

    def disconnected(self) -> None:
        """A stream has ended."""
        self._series.active_streams.dec()
