"""The progress messages in the log of a training: tagged lines with one JSON object each (KEP-2779).

A tagged line without exactly one JSON object is rejected. A value of the object that breaks a rule is dropped, with an
error that names the field and the rule, and all other values count.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final, NamedTuple

from pydantic.alias_generators import to_camel

from trainer.api.progress_tags import TAG_END, TaggedText
from trainer.api.trainjob_status import TrainerStatus
from trainer.kube.field_errors import FieldError, duplicate, forbidden, too_long, too_many
from trainer.kube.podlogs.instant import Instant
from trainer.kube.podlogs.position import instant_of
from trainer.progress.checkpoints import path_problem
from trainer.progress.json_values import Members, NotANumber, Number, decode_values, integer, invalid_value, shown

PAYLOAD_LIMIT: Final = 64 * 1024
"""Most bytes of a payload (KEP-2779, "reading trainer status"); longer lines are skipped before."""
LINE_LIMIT: Final = PAYLOAD_LIMIT + 64
"""Bytes of the longest line of a log in which a message is looked for: its payload and the timestamp before it."""
METRICS_LIMIT: Final = 256
"""Most metrics in each of the two maps."""
TEXT_LIMIT: Final = 64
"""Most characters of a metric's name, and of the text of its value."""
DROPPED_LIMIT: Final = 16
"""Most errors of dropped values that are kept of one message."""


class TaggedLine(NamedTuple):
    """A line of a log that has a tag."""

    time: Instant
    """When the training printed it, by the clock of its node."""
    payload: bytes
    """The bytes after the tag."""
    ranks: tuple[int, ...] = ()
    """The ranks by which a launcher has labelled it, see `LauncherPrefix`."""
    unknown_prefix: bytes | None = None
    """The text before a tag that does not count because of it."""


def tagged_lines(block: bytes) -> Iterator[TaggedLine]:
    r"""Find the tags in whole lines of a log, each `<RFC 3339 timestamp> <text>\n`.

    Lines without a timestamp are ordinary text. The cost is one search of the block when there is no tag.
    """
    found = block.find(TAG_END)
    start = 0  # of the lines that have not been looked at
    while found >= 0:
        start = block.rfind(b"\n", start, found) + 1 or start
        end = block.find(b"\n", found)
        line = block[start : end if end >= 0 else len(block)]
        tagged = TaggedText.of(line.partition(b" ")[2])
        if tagged is not None and (time := instant_of(line)) is not None:
            yield TaggedLine(time, tagged.payload, tagged.ranks, None if tagged.is_message else tagged.before)
        if end < 0:
            return
        start = end + 1
        found = block.find(TAG_END, start)


class SavedCheckpoint(NamedTuple):
    """A checkpoint that is complete; the time of its line says since when."""

    step: int
    """0 to 2^31-1."""
    path: str = ""
    """Its path within the directory of all checkpoints. Default: "", it is not known."""


@dataclass(frozen=True, slots=True)
class Message:
    """The content of one tagged line; None for a field that it lacks."""

    progress_percentage: int | None = None
    """0 to 100."""
    estimated_remaining_seconds: int | None = None
    """0 to 2^63-1."""
    current_step: int | None = None
    """0 to 2^31-1, as the next three fields."""
    total_steps: int | None = None
    current_epoch: int | None = None
    total_epochs: int | None = None
    train_metrics: Mapping[str, str] | None = None
    """Numbers by name, with the digits as they were printed."""
    eval_metrics: Mapping[str, str] | None = None
    """Like `train_metrics`, measured on the evaluation data."""
    checkpoint: SavedCheckpoint | None = None
    """No progress, and not of a run: it holds until the next one. Null does not clear it."""
    is_checkpoint_only: bool = False
    """Whether the line is about a checkpoint and nothing else, so that it is no report of progress."""
    cleared: frozenset[str] = frozenset()
    """The fields that it has as null: their last value does not hold any more."""
    dropped: tuple[FieldError, ...] = ()
    """Errors of the values that break a rule, at most `DROPPED_LIMIT`; each has at most a few hundred characters, all
    printable."""

    @classmethod
    def of_status(cls, status: TrainerStatus) -> Message:
        """The message that reports what a status shows."""
        return cls(**{name: getattr(status, name) for name in _REPORTED})

    def merged(self, newer: Message) -> Message:
        """What is known after a newer message: a field that it lacks keeps its value, and a null clears one.

        Metrics are replaced as a whole. Whatever shows the progress of a training follows this rule.
        """
        news: dict[str, Any] = dict.fromkeys(newer.cleared)
        news |= {name: value for name in _REPORTED if (value := getattr(newer, name)) is not None}
        return replace(self, **news)

    @property
    def is_all_dropped(self) -> bool:
        """Whether it had values and each of them broke a rule, so that nothing was measured."""
        if not self.dropped or self.cleared:
            return False
        return all(getattr(self, name) in (None, {}) for name in _REPORTED)


_NO_PROGRESS: Final = {"checkpoint", "is_checkpoint_only", "cleared", "dropped"}
_REPORTED: Final = [field.name for field in fields(Message) if field.name not in _NO_PROGRESS]


class RejectedMessageError(ValueError):
    """A tagged line does not have exactly one JSON object; the text is short and printable."""


class UnknownPrefixError(RejectedMessageError):
    """A line with a message has text before its tag that no launcher writes."""

    @classmethod
    def of(cls, text: bytes) -> UnknownPrefixError:
        """For a line that begins so."""
        before = shown(text.decode(errors="replace"))
        return cls(
            f"the tag stands behind {before}, which no known launcher writes: print it at the beginning of a line"
        )


def parse(payload: bytes) -> Message:
    """Parse the bytes after the tag: whitespace and one JSON object.

    Unknown keys are ignored for later versions of the protocol. Integers may be written as `45.0`. A value that breaks
    a rule is dropped.

    Raises:
        RejectedMessageError: the payload is anything else.
    """
    reader = _Reader(_decode(payload))
    return Message(
        progress_percentage=reader.percentage(),
        estimated_remaining_seconds=reader.integer("estimatedRemainingSeconds"),
        current_step=reader.integer("currentStep"),
        total_steps=reader.integer("totalSteps"),
        current_epoch=reader.integer("currentEpoch"),
        total_epochs=reader.integer("totalEpochs"),
        train_metrics=reader.metrics("trainMetrics"),
        eval_metrics=reader.metrics("evalMetrics"),
        checkpoint=reader.checkpoint(),
        is_checkpoint_only=reader.is_checkpoint_only,
        cleared=reader.cleared,
        dropped=tuple(reader.dropped),
    )


_COUNTS: Final = dict.fromkeys(("currentStep", "totalSteps", "currentEpoch", "totalEpochs"), 2**31 - 1)
_MOST: Final = _COUNTS | {
    "progressPercentage": 100,
    "progressPercent": 100,  # as the KEP's example writes it
    "estimatedRemainingSeconds": 2**63 - 1,
}
"""The greatest value of each integer."""
_CHECKPOINT: Final = "checkpoint"
_ATTRIBUTES: Final = {to_camel(name): name for name in _REPORTED} | {"progressPercent": "progress_percentage"}
"""The fields, with the attributes of a message that have them."""


def _decode(payload: bytes) -> Members:
    if len(payload) > PAYLOAD_LIMIT:
        raise RejectedMessageError(str(too_long("", PAYLOAD_LIMIT)))
    if not payload[:1].isspace():
        raise _rejected(payload.decode(errors="replace"), "the tag must be followed by whitespace and a JSON object")
    try:
        text = payload.decode().strip(" \t\r\n\v\f")
    except UnicodeDecodeError as error:
        detail = f"must be UTF-8: {error.reason} at byte {error.start + 1}"
        raise _rejected(payload.decode(errors="replace"), detail) from None
    try:
        value = decode_values(text)
    except json.JSONDecodeError as error:
        reason = error.msg.removesuffix(" at").rstrip(": ")
        raise _rejected(text, f"must be one JSON object: {reason} at character {error.pos + 1}") from None
    except RecursionError:
        raise _rejected(text, "must be one JSON object: it is nested too deeply") from None
    if not isinstance(value, tuple):
        raise _rejected(text, "must be one JSON object")
    return value


def _rejected(text: str, rule: str) -> RejectedMessageError:
    return RejectedMessageError(str(invalid_value("", text, rule)))


class _Reader:
    """Reads the fields of one message and collects the errors of dropped values."""

    def __init__(self, members: Members) -> None:
        self.dropped: list[FieldError] = []
        self._fields: dict[str, object] = {}
        for name, value in members:
            if name not in _ATTRIBUTES and name != _CHECKPOINT:
                continue
            if name in self._fields:
                self._drop(forbidden(name, "it occurs twice, and the first one counts"))
            else:
                self._fields[name] = value

    @property
    def cleared(self) -> frozenset[str]:
        """The attributes of the fields that are null."""
        names = [(name, value) for name, value in self._fields.items() if name != _CHECKPOINT]
        stated = {_ATTRIBUTES[name] for name, value in names if value is not None}
        return frozenset(_ATTRIBUTES[name] for name, value in names if value is None) - stated

    @property
    def is_checkpoint_only(self) -> bool:
        """Whether a checkpoint is all that the message is about."""
        return self._fields.keys() == {_CHECKPOINT}

    def checkpoint(self) -> SavedCheckpoint | None:
        """The checkpoint, if its step is one; a path that is wrong is left out."""
        members = self._fields.get(_CHECKPOINT)
        if members is None:
            return None
        if not isinstance(members, tuple):
            self._drop(invalid_value(_CHECKPOINT, members, "must be an object with step and path"))
            return None
        values = dict(reversed(members))  # of two the first one counts
        step, path = values.get("step"), values.get("path")
        try:
            number = integer(step, _COUNTS["currentStep"])
        except ValueError as rule:
            self._drop(invalid_value(f"{_CHECKPOINT}.step", step, str(rule)))
            return None
        if (error := _path_error(path)) is None:
            return SavedCheckpoint(number, str(path or ""))
        self._drop(error)
        return SavedCheckpoint(number)

    def percentage(self) -> int | None:
        """The percentage, from either of its two names."""
        percentage, short = self.integer("progressPercentage"), self.integer("progressPercent")
        if percentage is None or short is None:
            return short if percentage is None else percentage
        self._drop(forbidden("progressPercent", "it is another name of progressPercentage, which is there, too"))
        return percentage

    def integer(self, name: str) -> int | None:
        """An integer from 0 to its greatest value."""
        value = self._fields.get(name)
        if value is None:
            return None
        try:
            return integer(value, _MOST[name])
        except ValueError as rule:
            self._drop(invalid_value(name, value, str(rule)))
            return None

    def metrics(self, field: str) -> Mapping[str, str] | None:
        """The first `METRICS_LIMIT` numbers by name."""
        members = self._fields.get(field)
        if members is None:
            return None
        if not isinstance(members, tuple):
            self._drop(invalid_value(field, members, "must be an object with a number for each name"))
            return None
        if len(members) > METRICS_LIMIT:
            self._drop(too_many(field, len(members), METRICS_LIMIT))
        metrics: dict[str, str] = {}
        for name, value in members[:METRICS_LIMIT]:
            error = _name_error(name, field) or _metric_error(value, f"{field}[{name}]")
            if error is None and name in metrics:
                error = duplicate(field, name)
            if error is None:
                metrics[name] = str(value)
            else:
                self._drop(error)
        return metrics

    def _drop(self, error: FieldError) -> None:
        if len(self.dropped) < DROPPED_LIMIT:
            self.dropped.append(error)


def _name_error(name: str, field: str) -> FieldError | None:
    if not name:
        return invalid_value(field, name, "the name of a metric must not be empty")
    if len(name) > TEXT_LIMIT:
        return invalid_value(field, name, f"the name of a metric must be no more than {TEXT_LIMIT} characters")
    if not name.isprintable():
        return invalid_value(field, name, "the name of a metric must consist of printable characters")
    return None


def _path_error(path: object) -> FieldError | None:
    if path is None:
        return None
    is_text = isinstance(path, str) and not isinstance(path, (Number, NotANumber))
    rule = path_problem(str(path)) if is_text else "must be a string"
    return None if rule is None else invalid_value(f"{_CHECKPOINT}.path", path, rule)


def _metric_error(value: object, path: str) -> FieldError | None:
    if isinstance(value, NotANumber):
        return invalid_value(path, value, "must be a finite number")
    if not isinstance(value, Number):
        return invalid_value(path, value, "must be a number")
    if len(value) > TEXT_LIMIT:
        return invalid_value(path, value, f"must be no more than {TEXT_LIMIT} characters")
    if not math.isfinite(float(value)):
        return invalid_value(path, value, "must be a finite number")
    return None
