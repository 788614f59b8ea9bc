"""The messages in the log of one container, as all that shows progress or metrics reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from trainer.api.trainjob_status import TrainerStatus
from trainer.kube.podlogs.instant import Instant
from trainer.progress.lines.plain_lines import PlainLines
from trainer.progress.protocol import Message, RejectedMessageError, UnknownPrefixError, parse, tagged_lines
from trainer.progress.reported_parameters import parameters_in


class TimedMessage(NamedTuple):
    """A message and when it was printed."""

    message: Message
    time: Instant
    is_plain: bool = False
    """Whether it was recognised in ordinary lines, see `PlainLines`. Default: false, it has a tag."""


class MessageReader:
    """Reads messages, and names tagged lines that are none.

    Where a launcher brings the lines of several ranks into the log, those of the lowest rank that has reported count:
    they differ in what they measure, and which rank reports is up to the training. Lines without a rank always count.

    Args:
        on_rejected: takes tagged lines that are none.
        with_plain_lines: whether ordinary lines are read, too, until the first message, which replaces what they said.
            Default: no.
        shown: the status of the present run that an earlier process has written. Default: none.
        on_parameters: takes what the reporter says that the training was started with. Default: nobody does.
    """

    def __init__(
        self,
        on_rejected: Callable[[RejectedMessageError], None],
        *,
        with_plain_lines: bool = False,
        shown: TrainerStatus | None = None,
        on_parameters: Callable[[Mapping[str, str]], None] = lambda _: None,
    ) -> None:
        self._on_parameters = on_parameters
        self._on_rejected = on_rejected
        self._lowest: tuple[int, ...] = ()
        self._plain = PlainLines(shown) if with_plain_lines else None

    def restart(self) -> None:
        """Begin with another run, in which other ranks may report."""
        self._lowest = ()
        self._plain = PlainLines() if self._plain is not None else None

    def leave_plain_lines(self) -> None:
        """Read ordinary lines no more, as a better source has reported."""
        self._plain = None

    def read(self, block: bytes) -> Iterator[TimedMessage]:
        """The messages in whole lines of the log."""
        for timed in self._tagged(block):
            if not timed.message.is_checkpoint_only:
                self._plain = None
            yield timed
        if self._plain is not None:
            for message, time in self._plain.read(block):
                yield TimedMessage(message, time, is_plain=True)

    def _tagged(self, block: bytes) -> Iterator[TimedMessage]:
        for line in tagged_lines(block):
            if line.ranks and self._lowest and line.ranks > self._lowest:
                continue
            if line.unknown_prefix is None and (parameters := parameters_in(line.payload)) is not None:
                self._on_parameters(parameters)
                continue
            try:
                message = parse(line.payload)
            except RejectedMessageError as error:
                if line.unknown_prefix is None:
                    self._on_rejected(error)
                continue
            if line.unknown_prefix is None:
                self._lowest = line.ranks or self._lowest
                yield TimedMessage(message, line.time)
            elif message != Message():
                self._on_rejected(UnknownPrefixError.of(line.unknown_prefix))
