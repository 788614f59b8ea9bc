"""The metrics that a training has reported in its log, as samples."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from trainer.progress.message_reader import MessageReader
from trainer.progress.protocol import Message

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trainer.kube.podlogs.instant import Instant
    from trainer.progress.protocol import RejectedMessageError


class Sample(NamedTuple):
    """One value of one metric."""

    time: Instant
    name: str
    value: str
    """The number, digit by digit as it was printed."""
    is_eval: bool
    """Whether it was measured on the evaluation data."""
    step: int | None
    """The step in the same message, else the last one before."""
    epoch: int | None
    """Likewise."""


class MetricId(NamedTuple):
    """Identity of a metric: training and evaluation may have metrics of the same name."""

    is_eval: bool
    name: str


@dataclass(slots=True)
class MetricSamples:
    """Collects samples from a log, line by line."""

    series: dict[MetricId, list[Sample]] = field(default_factory=dict)
    """The samples by metric, in the order of the log."""
    messages: int = 0
    """Number of messages, those without metrics included."""
    rejected: int = 0
    """Number of invalid messages."""
    rejection: str = ""
    """The reason for the last one; printable."""
    dropped: int = 0
    """Number of values that break a rule."""
    last_dropped: str = ""
    """The last of them, with the rule; printable."""
    _reported: Message = field(default_factory=Message)
    _reader: MessageReader = field(init=False)

    def __post_init__(self) -> None:
        self._reader = MessageReader(self._reject)

    def take(self, block: bytes) -> list[Sample]:
        """Read whole lines of a log; returns the new samples."""
        new: list[Sample] = []
        for message, time in self._reader.read(block):
            self.messages += 1
            if message.dropped:
                self.dropped += len(message.dropped)
                self.last_dropped = str(message.dropped[-1])
            self._reported = self._reported.merged(message)
            new += self._samples(time, message.train_metrics or {}, is_eval=False)
            new += self._samples(time, message.eval_metrics or {}, is_eval=True)
        for sample in new:
            self.series.setdefault(MetricId(sample.is_eval, sample.name), []).append(sample)
        return new

    def _reject(self, error: RejectedMessageError) -> None:
        self.rejected += 1
        self.rejection = str(error)

    def _samples(self, time: Instant, metrics: Mapping[str, str], *, is_eval: bool) -> Iterator[Sample]:
        step, epoch = self._reported.current_step, self._reported.current_epoch
        for name, value in metrics.items():
            yield Sample(time, name, value, is_eval, step, epoch)
