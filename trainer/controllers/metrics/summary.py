"""The few fields of a cached TrainJob that metrics need; decoding all of it for each event takes five times as long."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - msgspec reads the annotation
from sys import intern
from typing import TYPE_CHECKING

import msgspec

from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOB_CONTROLLER
from trainer.api.trainjob_status import ConditionType, State
from trainer.kube.objects import ObjectKey

if TYPE_CHECKING:
    from trainer.kube.cache.cached_object import CachedObject

UNKNOWN = "Unknown"
"""State of a TrainJob without status."""
EXTERNAL = "External"
"""State of a TrainJob without status that another controller manages (`spec.managedBy`)."""


class _RuntimeRef(msgspec.Struct, gc=False):
    name: str = ""
    kind: str | None = None


class _Spec(msgspec.Struct, gc=False, rename="camel"):
    runtime_ref: _RuntimeRef | None = None
    suspend: bool | None = None
    managed_by: str | None = None


class _Condition(msgspec.Struct, gc=False):
    type: str
    status: str
    reason: str = ""


class _Status(msgspec.Struct, gc=False):
    state: str | None = None
    conditions: msgspec.Raw = msgspec.Raw(b"[]")
    """Decoded only if the state is Pending."""


class _Metadata(msgspec.Struct, gc=False, rename="camel"):
    creation_timestamp: datetime | None = None


class _TrainJob(msgspec.Struct, gc=False):
    metadata: _Metadata
    spec: _Spec | None = None
    status: _Status | None = None


_decoder = msgspec.json.Decoder(_TrainJob)
_conditions: msgspec.json.Decoder[list[_Condition] | None] = msgspec.json.Decoder(list[_Condition] | None)


class Summary(msgspec.Struct, frozen=True, gc=False):
    """What metrics count of a TrainJob."""

    runtime: str
    """Key of the runtime as text; "" if it cannot be read."""
    state: str
    is_suspended: bool
    created: datetime | None
    """None if it cannot be read."""
    pending: str = ""
    """Reason of the condition Pending; "" if no pod waits."""

    @classmethod
    def of(cls, obj: CachedObject) -> Summary:
        """Read a TrainJob; fields that an older schema accepted and that cannot be decoded count as absent."""
        try:
            seen = _decoder.decode(obj.raw)
        except msgspec.ValidationError:
            return cls("", UNKNOWN, is_suspended=False, created=None)
        spec, status = seen.spec or _Spec(), seen.status or _Status()
        runtime = "" if spec.runtime_ref is None else _key(spec.runtime_ref, obj.key.namespace)
        is_ours = (spec.managed_by or TRAIN_JOB_CONTROLLER) == TRAIN_JOB_CONTROLLER
        state = intern(status.state or (UNKNOWN if is_ours else EXTERNAL))
        pending = intern(_pending_reason(status)) if state == State.PENDING else ""
        return cls(intern(runtime), state, bool(spec.suspend), seen.metadata.creation_timestamp, pending)


def _pending_reason(status: _Status) -> str:
    try:
        conditions = _conditions.decode(status.conditions) or ()
    except msgspec.ValidationError:
        return ""
    for condition in conditions:
        if condition.type == ConditionType.PENDING and condition.status == "True":
            return condition.reason
    return ""


def _key(ref: _RuntimeRef, namespace: str) -> str:
    is_for_all = (ref.kind or CLUSTER_TRAINING_RUNTIMES.kind) == CLUSTER_TRAINING_RUNTIMES.kind
    return str(ObjectKey("" if is_for_all else namespace, ref.name))
