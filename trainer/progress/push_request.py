"""The body with which a pod posts its progress, as Kubeflow Trainer (Go) defines it.

{"trainerStatus": {"progressPercentage": 42, "estimatedRemainingSeconds": 120,
"metrics": [{"name": "loss", "value": "0.12"}], "lastUpdatedTime": "2026-01-02T10:00:00Z"}}

It may have our `"checkpoint": {"step": 1200, "path": "step-1200"}` as well: a server written in Go ignores members that
it does not know.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any, Final, NamedTuple

import msgspec
from pydantic import Field

from trainer.api.invalid_object import InvalidObjectError
from trainer.api.model import ApiModel, Int32, Time
from trainer.api.submitted_object import text_errors
from trainer.api.trainjob_status import Checkpoint, TrainerStatus
from trainer.kube.field_errors import FieldError, invalid, too_many, type_invalid
from trainer.kube.json_text import decode_json
from trainer.kube.objects import Object
from trainer.kube.podlogs.instant import Instant
from trainer.progress.checkpoints import path_problem
from trainer.progress.json_values import with_constants
from trainer.progress.pace import summarize
from trainer.progress.protocol import METRICS_LIMIT, TEXT_LIMIT

BODY_LIMIT: Final = 64 * 1024
"""Most bytes of a body, as in Kubeflow Trainer (Go)."""

_json = msgspec.json.Decoder(Any)


class PushedMetric(ApiModel):
    """A metric of the training."""

    name: Annotated[str, Field(min_length=1, max_length=TEXT_LIMIT)]
    """Its name."""
    value: Annotated[str, Field(min_length=1, max_length=TEXT_LIMIT)]
    """Its value as text."""


class PushedCheckpoint(ApiModel):
    """The last complete checkpoint; posts may repeat it."""

    step: Annotated[Int32, Field(ge=0)]
    """Steps that were done when it was saved."""
    path: str | None = None
    """Where it is in the directory of all checkpoints."""
    time: Time | None = None
    """When it was complete. Default: lastUpdatedTime."""


class PushedStatus(ApiModel):
    """The progress as the training posts it."""

    progress_percentage: Annotated[Int32, Field(ge=0, le=100)] | None = None
    """How much of the training is done, in percent."""
    estimated_remaining_seconds: Annotated[Int32, Field(ge=0, le=2**31 - 1)] | None = None
    """Estimated seconds until it ends."""
    metrics: list[PushedMetric] | None = None
    """Metrics of training and evaluation."""
    checkpoint: PushedCheckpoint | None = None
    """Absent: the TrainJob keeps the one that it shows."""
    last_updated_time: Time
    """When this was measured."""

    def status(self, now: Instant) -> TrainerStatus:
        """The value of `status.trainerStatus`; a time in the future, by a clock that is ahead, becomes `now`."""
        time = _passed(self.last_updated_time, now)
        checkpoint = None
        if (saved := self.checkpoint) is not None:
            checkpoint = Checkpoint(step=saved.step, time=_passed(saved.time or time, now), path=saved.path)
        return TrainerStatus(
            progress_percentage=self.progress_percentage,
            estimated_remaining_seconds=self.estimated_remaining_seconds,
            estimated_remaining_time_summary=summarize(self.estimated_remaining_seconds or 0),
            train_metrics={each.name: each.value for each in self.metrics} if self.metrics else None,
            checkpoint=checkpoint,
            last_updated_time=time,
        )


class Push(ApiModel):
    """The body of a request."""

    trainer_status: PushedStatus | None = None
    """Absent: nothing is written."""


class ParsedPush(NamedTuple):
    """A body that was read."""

    push: Push
    """The values that are used."""
    dropped: tuple[FieldError, ...] = ()
    """Errors of the metrics and numbers that are not finite, which do not count."""


def parse_push(body: bytes | bytearray) -> ParsedPush:
    """Read a body; unknown members are ignored, and so is NaN in place of a number.

    Raises:
        InvalidObjectError: it is anything else; names the fields.
    """
    obj = _decode(body)
    if not isinstance(obj, dict):
        raise InvalidObjectError("the body", (type_invalid("", obj, "must be one JSON object"),))
    status = obj.get("trainerStatus")
    dropped: tuple[FieldError, ...] = ()
    if isinstance(status, dict):
        if isinstance(metrics := status.get("metrics"), list) and len(metrics) > METRICS_LIMIT:
            # Before each of them is described.
            error = too_many("trainerStatus.metrics", len(metrics), METRICS_LIMIT)
            raise InvalidObjectError("the body", (error,))
        dropped = tuple(_drop_constants(status))
    push = Push.from_object(obj)
    if push.trainer_status is not None and (errors := [*_text_errors(push.trainer_status)]):
        raise InvalidObjectError("the body", tuple(errors))
    return ParsedPush(push, dropped)


def _text_errors(status: PushedStatus) -> Iterator[FieldError]:
    for index, metric in enumerate(status.metrics or ()):
        if not metric.name.isprintable():
            yield invalid(f"trainerStatus.metrics[{index}].name", metric.name, "must consist of printable characters")
    saved = status.checkpoint
    if saved is not None and saved.path is not None and (rule := path_problem(saved.path)) is not None:
        yield invalid("trainerStatus.checkpoint.path", saved.path, rule)
    times = {"lastUpdatedTime": status.last_updated_time, "checkpoint.time": saved.time if saved is not None else None}
    for name, time in times.items():
        if time is not None and Instant.parse(time) is None:
            rule = "must be a time such as 2026-01-02T10:00:00Z (RFC 3339)"
            yield invalid(f"trainerStatus.{name}", time, rule)


def _passed(time: str, now: Instant) -> str:
    """A time that was posted, or now where it is in the future."""
    instant = Instant.parse(time)
    assert instant is not None, "parse_push has checked it"
    return min(instant, now).second


class _Constant(str):
    """NaN, Infinity or -Infinity, which Python writes although JSON lacks them."""

    __slots__ = ()


def _decode(body: bytes | bytearray) -> object:
    try:
        return decode_json(_json, body)
    except msgspec.DecodeError as error:
        refusal = InvalidObjectError("the body", (FieldError("", f"must be one JSON object: {error}"),))
    try:
        obj = json.loads(with_constants(body.decode()), parse_constant=_Constant)
        errors = tuple(text_errors(obj))
    except (ValueError, RecursionError):
        raise refusal from None
    if errors:
        raise InvalidObjectError("the body", errors)
    return obj


def _drop_constants(status: Object) -> Iterator[FieldError]:
    """Remove what is not finite from a status."""
    for name in ("progressPercentage", "estimatedRemainingSeconds"):
        if isinstance(value := status.get(name), _Constant):
            del status[name]
            yield _not_finite(f"trainerStatus.{name}", value)
    kept = []
    metrics = status.get("metrics")
    for index, each in enumerate(metrics if isinstance(metrics, list) else ()):
        if isinstance(each, dict) and isinstance(value := each.get("value"), _Constant):
            yield _not_finite(f"trainerStatus.metrics[{index}].value", value)
        else:
            kept.append(each)
    if isinstance(metrics, list):
        status["metrics"] = kept


def _not_finite(field: str, value: _Constant) -> FieldError:
    return FieldError(field, f"Invalid value: {value}: must be a finite number")
