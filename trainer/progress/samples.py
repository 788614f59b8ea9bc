"""The metrics that a training reports in its log, as samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from trainer.kube.podlogs.instant import Instant
from trainer.progress.message_reader import MessageReader
from trainer.progress.protocol import Message, RejectedMessageError
from trainer.progress.reported_parameters import with_more


class MetricId(NamedTuple):
    """Identity of a metric: training and evaluation may have metrics of the same name."""

    is_eval: bool
    """Whether it is measured on the evaluation data."""
    name: str

    @property
    def kind(self) -> str:
        """`eval` or `train`."""
        return "eval" if self.is_eval else "train"


class Sample(NamedTuple):
    """One value of one metric."""

    metric: MetricId
    time: Instant
    value: str
    """The number, digit by digit as it was printed."""
    step: int | None
    """The step in the same message, else the last one before."""
    epoch: int | None
    """Likewise."""


class SampleReader:
    """Reads samples from a log, block by block, and counts what else there was.

    The samples of ordinary lines give way to the first message: `on_message` is called before its samples come.

    Args:
        on_message: called once if there were samples of ordinary lines before. Default: nothing.
        with_plain_lines: whether ordinary lines of a training without messages count. Default: yes, as for a TrainJob.
    """

    def __init__(self, on_message: Callable[[], None] = lambda: None, *, with_plain_lines: bool = True) -> None:
        self.messages = 0
        """Number of messages, those without metrics included."""
        self.rejected = 0
        """Number of invalid messages."""
        self.rejection = ""
        """The reason for the last one; printable."""
        self.dropped = 0
        """Number of values that break a rule."""
        self.last_dropped = ""
        """The last of them, with the rule; printable."""
        self._reported = Message()
        self.parameters: dict[str, str] = {}
        """What the training was started with, of which the reporter may have found only a part."""
        self._reader = MessageReader(
            self._reject, with_plain_lines=with_plain_lines, on_parameters=self._take_parameters
        )
        self._is_plain = False
        self._on_message = on_message

    def read(self, block: bytes) -> Iterator[Sample]:
        """The samples in whole lines of a log."""
        for message, time, is_plain in self._reader.read(block):
            if message.is_checkpoint_only:
                continue
            if self._is_plain and not is_plain:
                self._reported = Message()
                self._on_message()
            self._is_plain = is_plain
            self.messages += 1
            if message.dropped:
                self.dropped += len(message.dropped)
                self.last_dropped = str(message.dropped[-1])
            self._reported = self._reported.merged(message)
            step, epoch = self._reported.current_step, self._reported.current_epoch
            for is_eval, metrics in ((False, message.train_metrics), (True, message.eval_metrics)):
                for name, value in (metrics or {}).items():
                    yield Sample(MetricId(is_eval, name), time, value, step, epoch)

    def _take_parameters(self, parameters: Mapping[str, str]) -> None:
        self.parameters = with_more(self.parameters, parameters)

    def _reject(self, error: RejectedMessageError) -> None:
        self.rejected += 1
        self.rejection = str(error)
