"""What one container reports in its log, run by run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from trainer.api.trainjob_status import Checkpoint, TrainerStatus
from trainer.kube.podlogs.instant import Instant
from trainer.kube.podlogs.position import instant_of
from trainer.progress.kept_curve import KeptCurve
from trainer.progress.message_reader import MessageReader, TimedMessage
from trainer.progress.primary import ContainerState
from trainer.progress.protocol import RejectedMessageError
from trainer.progress.run import TrainingRun
from trainer.progress.train_jobs import NOTHING_SHOWN, ShownProgress

_ATTEMPTS = 4
"""Statuses to be written that are remembered."""


class Reports:
    """Merges the messages of the present run of a container, and begins anew after its restart.

    A restart is a matter of times: that of a message, and the start of the container in the status of its pod, which
    may be known only after the first messages of the new run.

    Args:
        state: that of the container.
        shown: the status that an earlier process has written; if it is of the present run, it is continued.
        on_rejected: takes tagged lines that are not a message, or stand behind text that no launcher writes. Default:
            they are left to the manager, which reports them in an event.
        with_plain_lines: see `MessageReader`.
        beside: what the TrainJob shows at the beginning, of any run. Default: nothing.
    """

    def __init__(
        self,
        state: ContainerState,
        shown: TrainerStatus | None = None,
        on_rejected: Callable[[RejectedMessageError], None] = lambda _: None,
        *,
        with_plain_lines: bool = False,
        beside: ShownProgress = NOTHING_SHOWN,
    ) -> None:
        self.state = state
        reported = Instant.parse(shown.last_updated_time) if shown is not None else None
        # A report from the second of the start may belong to the run before.
        goes_on = reported is not None and state.started is not None and reported > state.started
        self.since = reported if goes_on else None
        """The time of the status that is continued, from which the log is to be read; None: from its beginning."""
        self._began = self._resumed_run = state.started
        self._resumed = shown if goes_on else None
        self._run = TrainingRun(self._resumed)
        self._stream_run = TrainingRun() if goes_on else self._run
        """The reports since a stream last ended; they belong to one run, which the status of the pod may show later."""
        self._stream_began: Instant | None = None
        self._reader = MessageReader(on_rejected, with_plain_lines=with_plain_lines, shown=self._resumed)
        self._is_plain = False
        """Whether the present run is known by ordinary lines only."""
        self._resumes_any = goes_on and with_plain_lines
        """Whether it is not known yet if the status that is continued was made of ordinary lines."""
        self._last_state: Instant | None = None
        """When the last state of a line that went on was read."""
        self._own: tuple[ShownProgress, ...] = (beside,)
        """What was shown at the beginning, and what the last statuses that were to be written show."""
        self.checkpoint: Checkpoint | None = None
        """The last complete checkpoint that was read, of any run; it is not in `status`."""
        self.curve: KeptCurve | None = None
        """Takes the metrics of all messages, of any run; None: nobody wants them."""

    @property
    def resumed(self) -> TrainerStatus | None:
        """The status of an earlier process that is of the present run; None without one."""
        return self._resumed if self.state.started == self._resumed_run else None

    @property
    def status(self) -> TrainerStatus | None:
        """The status of the present run; None before its first message."""
        return self._run.status

    def observe(self, state: ContainerState) -> Instant | None:
        """Update the state of the container.

        Returns the time of the first message of a new run if that was read before its start was known, since the status
        changes then; None otherwise.
        """
        self.state = state
        started, began = state.started, self._stream_began
        if started in {None, self._began} or began is None or began < started:
            return None
        was_mixed = self._run is not self._stream_run
        self._began, self._run = started, self._stream_run
        return began if was_mixed else None

    def read(self, block: bytes) -> Iterator[TimedMessage]:
        """The messages in whole lines of the log, with errors of all their values that break a rule."""
        for timed in map(self._dated, self._reader.read(block)):
            message, time, is_plain = timed
            if is_plain and self._is_repeated(time):
                self._keep(timed)
                continue
            if (saved := message.checkpoint) is not None:
                self.checkpoint = Checkpoint(step=saved.step, time=time.second, path=saved.path or None)
            if message.is_checkpoint_only:
                yield timed
                continue
            if not message.is_all_dropped:
                self._turn_to_new_run(time)
            if not is_plain and (self._is_plain or self._resumes_plain(time)):
                self._run = self._stream_run = TrainingRun()
            self._is_plain = is_plain
            dropped = self._run.take(message, time, adds_metrics=is_plain)
            if self._stream_run is not self._run:
                self._stream_run.take(message, time, adds_metrics=is_plain)
            self._stream_began = self._stream_began or time
            self._keep(timed)
            yield timed._replace(message=replace(message, dropped=message.dropped + dropped)) if dropped else timed

    def read_state(self, line: bytes, now: Instant) -> Iterator[TimedMessage]:
        """The message in the last state of a line that is written over, see `ContainerLog`, which was read now."""
        text = line if instant_of(line) is None else line.partition(b" ")[2]
        self._last_state = now
        yield from self.read(b"%b %b\n" % (str(now).encode(), text))

    def leave_plain_lines(self) -> None:
        """Read ordinary lines no more."""
        self._reader.leave_plain_lines()

    def is_posted(self, shown: ShownProgress) -> bool:
        """Whether what a TrainJob shows was posted and counts: ordinary lines give way to it, messages if newer."""
        if not shown.time or shown in self._own:
            return False
        return self._is_plain or self.status is None or shown.is_later_than(self.status)

    def give_way(self) -> None:
        """Read ordinary lines no more and forget what they said, since the training has reported elsewhere."""
        self._reader.leave_plain_lines()
        if self._is_plain:
            self._run = self._stream_run = TrainingRun()

    def status_beside(self, shown: ShownProgress) -> TrainerStatus | None:
        """The status to write where a TrainJob shows this; None where that was posted and counts."""
        if self.is_posted(shown):
            self.give_way()
            return None
        if (status := self.status) is not None:
            # An attempt may fail, or succeed and lose its answer: the last ones are all ours.
            written = ShownProgress(status.last_updated_time, status.progress_percentage)
            self._own = (*self._own[-_ATTEMPTS:], shown, written)
        return status

    def _keep(self, timed: TimedMessage) -> None:
        if self.curve is not None:
            self.curve.take(timed, self._run.position)

    def _dated(self, timed: TimedMessage) -> TimedMessage:
        """With the time of the last state, where the timestamp is that of the beginning of a line with states."""
        last = self._last_state
        return timed._replace(time=last) if timed.is_plain and last is not None and timed.time < last else timed

    def _is_repeated(self, time: Instant) -> bool:
        """Whether the status may have a message of this second already, from an earlier process."""
        return self.since is not None and time.seconds <= self.since.seconds

    def _resumes_plain(self, time: Instant) -> bool:
        """Whether the status that is continued was made of ordinary lines: no message is of its second."""
        is_first, self._resumes_any = self._resumes_any, False
        return is_first and self.since is not None and time.seconds > self.since.seconds

    def end_stream(self) -> None:
        """Note that a stream of the log was read to its end, as happens when the container ends."""
        self._stream_run, self._stream_began = TrainingRun(), None

    def _turn_to_new_run(self, time: Instant) -> None:
        """Start a new run at the first message after a restart of the container."""
        started = self.state.started
        if started is not None and started != self._began and time >= started:
            self._began, self._stream_began = started, None
            self._run = self._stream_run = TrainingRun()
            self._reader.restart()
