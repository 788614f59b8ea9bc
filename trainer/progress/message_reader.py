"""The messages in the log of one container, as all that shows progress or metrics reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from trainer.kube.podlogs.instant import Instant
from trainer.progress.protocol import Message, RejectedMessageError, UnknownPrefixError, parse, tagged_lines


class TimedMessage(NamedTuple):
    """A message and when it was printed."""

    message: Message
    time: Instant


class MessageReader:
    """Reads messages, and names tagged lines that are none.

    Where a launcher brings the lines of several ranks into the log, those of the lowest rank that has reported count:
    they differ in what they measure, and which rank reports is up to the training. Lines without a rank always count.
    """

    def __init__(self, on_rejected: Callable[[RejectedMessageError], None]) -> None:
        self._on_rejected = on_rejected
        self._lowest: tuple[int, ...] = ()

    def restart(self) -> None:
        """Begin with another run, in which other ranks may report."""
        self._lowest = ()

    def read(self, block: bytes) -> Iterator[TimedMessage]:
        """The messages in whole lines of the log."""
        for line in tagged_lines(block):
            if line.ranks and self._lowest and line.ranks > self._lowest:
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
