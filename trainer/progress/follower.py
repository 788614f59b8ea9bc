"""The follower of one container's log, which keeps the last status that its training has reported."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass

import anyio
import structlog

from trainer.api.trainjob_status import TrainerStatus
from trainer.kube.client import Client
from trainer.kube.clock import Clock
from trainer.kube.logger import get_logger
from trainer.kube.podlogs.container_log import ContainerLog, ContainerLogOptions, Interrupted, Interruption
from trainer.kube.podlogs.instant import Instant
from trainer.progress.message_reader import TimedMessage
from trainer.progress.metrics import ProgressSeries
from trainer.progress.primary import ContainerState
from trainer.progress.protocol import LINE_LIMIT, RejectedMessageError
from trainer.progress.reports import Reports
from trainer.progress.train_jobs import NOTHING_SHOWN, ShownProgress

log = get_logger(__name__)

REFUSAL_PAUSE = 60.0
"""Seconds until the log is requested again after the API server refused it."""


@dataclass(frozen=True, slots=True)
class Listener:
    """The callbacks of a follower; they run on the event loop and must not block."""

    on_message: Callable[[TimedMessage], None]
    on_rejected: Callable[[RejectedMessageError], None]
    """The log has a tagged line that is not a message, or one behind text that no launcher writes."""
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
        self,
        context: FollowerContext,
        state: ContainerState,
        shown: TrainerStatus | None,
        listener: Listener,
        *,
        with_plain_lines: bool = False,
        beside: ShownProgress = NOTHING_SHOWN,
    ) -> None:
        self._series = context.series
        self._listener = listener
        self.reports = Reports(state, shown, self._reject, with_plain_lines=with_plain_lines, beside=beside)
        options = ContainerLogOptions(
            since=self.reports.since, line_limit=LINE_LIMIT, pace=context.pace, refusal_pause=REFUSAL_PAUSE
        )
        place = state.namespace, state.pod, state.container
        self._clock = context.clock
        self._log = ContainerLog(
            context.client,
            *place,
            clock=context.clock,
            options=options,
            observer=context.series,
            on_state=self._read_state if with_plain_lines else None,
        )
        self._is_gone = self._was_refused = False
        self._scope = anyio.CancelScope()
        self._stream: anyio.CancelScope | None = None
        self.is_done = False
        """Whether the log has been read to its end."""

    @property
    def place(self) -> tuple[str, str]:
        """Uid of the pod, and container."""
        return self.reports.state.place

    @property
    def status(self) -> TrainerStatus | None:
        """The status of the present run; None before its first message."""
        return self.reports.status

    def observe(self, state: ContainerState) -> Instant | None:
        """Update the state of the container; see `Reports.observe`."""
        has_just_ended = state.has_ended and not self.reports.state.has_ended
        if has_just_ended and not state.is_leaving and self._stream is not None:
            # Nothing more is printed, so the stream need not end by itself. While the pod is being deleted the stream
            # stays, because the log cannot be requested again.
            self._stream.cancel()
        return self.reports.observe(state)

    def mark_pod_gone(self) -> None:
        """Stop requesting the log again, since its pod no longer exists."""
        self._is_gone = True

    def stop(self) -> None:
        """End `run` at once."""
        self._scope.cancel()

    async def run(self) -> None:
        """Read the log until the container has ended, will not restart, and the log is read to its end."""
        state = self.reports.state
        with self._scope, structlog.contextvars.bound_contextvars(pod=state.pod, container=state.container):
            while not self.is_done:
                with anyio.CancelScope() as self._stream:
                    async with aclosing(self._log.follow(self._is_finished)) as events:
                        async for event in events:
                            if not isinstance(event, Interrupted):
                                self._hand_on(self.reports.read(event))
                            elif self._is_last(event):
                                break
                            del event  # not kept while nothing comes
                    self.is_done = True

    def _is_finished(self) -> bool:
        return self._is_gone or self.reports.state.has_ended

    def _read_state(self, line: bytes) -> None:
        self._hand_on(self.reports.read_state(line, Instant.of(self._clock.now())))

    def _hand_on(self, messages: Iterable[TimedMessage]) -> None:
        for timed in messages:
            self._series.messages.inc()
            self._series.dropped_values.inc(len(timed.message.dropped))
            self._listener.on_message(timed)

    def _is_last(self, interrupted: Interrupted) -> bool:
        """Whether to request the log no more, since the container has ended and its log may not be read."""
        reason = interrupted.reason
        self._series.reconnects.labels(reason).inc()
        if reason is Interruption.REFUSED:
            log_event = log.debug if self._was_refused else log.warning
            log_event("cannot read the log of a training: may the manager get pods/log?", error=interrupted.problem)
            self._was_refused = True
            return self._is_finished()
        if reason in {Interruption.ENDED, Interruption.ABSENT}:
            self.reports.end_stream()
            self._listener.on_end()
        return False

    def _reject(self, error: RejectedMessageError) -> None:
        self._series.rejected_messages.inc()
        self._listener.on_rejected(error)
