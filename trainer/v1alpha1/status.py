"""The status of a TrainJob in the form of v1alpha1.

Clients of v1alpha1 know the conditions Suspended, Complete and Failed, `jobsStatus` and a part of `trainerStatus`. Any
other condition would make the SDK report "Created" until the end, and so would Suspended with the status False, which
is therefore shown with the end only. All else of the model's status is the extension: it stands in optional fields of
the status where the CRD has them, and in an annotation where the CRD is upstream's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from trainer.api.invalid_object import InvalidObjectError
from trainer.api.trainjob_status import STEP_FIELDS, ConditionType, TrainJobStatus
from trainer.kube.json_text import decode_json
from trainer.kube.objects import Object, annotations_of, is_condition_true, uid_of

EXTENSION: Final = "trainer.kubeflow.org/status-extension-of-"
"""Prefix of the annotations of a TrainJob of v1alpha1 that hold what the CRD of Kubeflow Trainer (Go) does not keep of
its status, as JSON; a field manager follows. Not written where the CRDs are those of config/v1alpha1."""
FURTHER_CONDITIONS: Final = "furtherConditions"
"""The optional field of the status with the conditions that clients of v1alpha1 do not know."""

_SHARED_CONDITIONS: Final = frozenset({ConditionType.SUSPENDED, ConditionType.COMPLETE, ConditionType.FAILED})
_ENDS: Final = (ConditionType.COMPLETE, ConditionType.FAILED)
_SHARED_FIELDS: Final = frozenset({"jobsStatus"})
_SHARED_PROGRESS: Final = frozenset({"progressPercentage", "estimatedRemainingSeconds", "lastUpdatedTime"})
_METRICS: Final = frozenset({"trainMetrics", "evalMetrics"})
_ANNOTATED: Final = frozenset(
    {"state", "startTime", "observedGeneration", "scale", "restarts", "trainerStatus", FURTHER_CONDITIONS}
    | {*STEP_FIELDS.values()}
)
"""The fields that an annotation may hold. Not runtimeDigest: it decides which snapshot is used, and whoever may write
the TrainJob may write its annotations as well."""
_json: Final = msgspec.json.Decoder(Any)
_INT32: Final = (1 << 31) - 1
_MOST_METRICS, _LONGEST_METRIC = 256, 64


def encode_status(status: Object, *, shows_resumed: bool = False) -> tuple[Object, Object]:
    """A status, or the part of one that a field manager owns, as v1alpha1 has it, and its extension.

    Args:
        status: converted to v2alpha1; it is not changed.
        shows_resumed: whether Suspended with the status False appears before the end. Default: no.
    """
    shared: Object = {name: value for name, value in status.items() if name in _SHARED_FIELDS}
    extension = {
        name: value for name, value in status.items() if name not in _SHARED_FIELDS | {"conditions", "trainerStatus"}
    }
    conditions = status.get("conditions") or []
    has_ended = any(is_condition_true({"status": status}, end) for end in _ENDS)
    known: list[Object] = []
    others: list[Object] = []
    for each in conditions:
        is_known = each["type"] in _SHARED_CONDITIONS and (has_ended or shows_resumed or not is_resumed(each))
        (known if is_known else others).append(each)
    if known:
        shared["conditions"] = [{"message": "", **each} for each in known]
    if others:
        extension[FURTHER_CONDITIONS] = others
    if progress := status.get("trainerStatus"):
        shared["trainerStatus"] = _shared_progress(progress)
        if further := {name: value for name, value in progress.items() if name not in _SHARED_PROGRESS}:
            extension["trainerStatus"] = further
    return shared, extension


def is_resumed(condition: Object) -> bool:
    """Whether a condition says that the TrainJob was suspended and is no more."""
    return condition.get("type") == ConditionType.SUSPENDED and condition.get("status") == "False"


def with_extension(shared: Object, extension: Object) -> Object:
    """Both parts as one status, for a CRD that has the optional fields."""
    whole = shared | extension
    if "trainerStatus" in shared:
        whole["trainerStatus"] = shared["trainerStatus"] | extension.get("trainerStatus", {})
    return whole


def extension_annotation(field_manager: str, uid: str, extension: Object) -> tuple[str, str]:
    """Name and value of the annotation that keeps an extension, for a CRD without the optional fields."""
    kept = {name: value for name, value in extension.items() if name in _ANNOTATED}
    return EXTENSION + field_manager, msgspec.json.encode({"uid": uid, "status": kept}, order="sorted").decode()


def decode_status(obj: Object, *, reads_annotations: bool = True) -> Object | None:
    """The status of a TrainJob of v1alpha1 converted to v2alpha1; None if it has none.

    An annotation counts only if it was written for this TrainJob and fits the status; it never overrides what the
    status itself says. Without `reads_annotations` none counts.
    """
    status = obj.get("status")
    extensions = [*_annotated(obj)] if reads_annotations else []
    if not isinstance(status, dict):
        status = {} if extensions else None
    if status is None:
        return None
    decoded = _decoded(status)
    for extension in extensions:
        extended = _merged(extension, decoded)
        try:
            state = TrainJobStatus.from_object(extended).state
        except InvalidObjectError:
            continue
        # One that a later version has written is none.
        decoded = extended if state else {name: value for name, value in extended.items() if name != "state"}
    return decoded


def _annotated(obj: Object) -> Iterator[Object]:
    """The extensions in the annotations of a TrainJob."""
    for name, value in annotations_of(obj).items():
        if not name.startswith(EXTENSION):
            continue
        try:
            content = decode_json(_json, value)
        except (msgspec.DecodeError, TypeError):
            continue
        if isinstance(content, dict) and content.get("uid") == uid_of(obj) and isinstance(content.get("status"), dict):
            yield {member: each for member, each in content["status"].items() if member in _ANNOTATED}


def _decoded(status: Object) -> Object:
    decoded = {name: value for name, value in status.items() if name != FURTHER_CONDITIONS}
    if further := status.get(FURTHER_CONDITIONS):
        conditions = status.get("conditions") or []
        known = {each["type"] for each in conditions}
        decoded["conditions"] = [*conditions, *(each for each in further if each["type"] not in known)]
    progress = status.get("trainerStatus")
    if isinstance(progress, dict) and "metrics" in progress:
        decoded["trainerStatus"] = {name: value for name, value in progress.items() if name != "metrics"}
        if not progress.keys() & _METRICS:
            # Pushed by the training, or copied from another cluster.
            decoded["trainerStatus"]["trainMetrics"] = {each["name"]: each["value"] for each in progress["metrics"]}
    return decoded


def _merged(extension: Object, status: Object) -> Object:
    """A status with an extension; where both say something, the status wins."""
    merged = {name: value for name, value in extension.items() if name != FURTHER_CONDITIONS} | status
    further = extension.get(FURTHER_CONDITIONS)
    if isinstance(further, list):
        conditions = status.get("conditions") or []
        known = {each.get("type") for each in conditions}
        new = [
            each
            for each in further
            if isinstance(each, dict)
            and each.get("type") not in known
            and (each.get("type") not in _SHARED_CONDITIONS or is_resumed(each))
        ]
        if new:
            merged["conditions"] = [*conditions, *new]
    progress, more = status.get("trainerStatus"), extension.get("trainerStatus")
    if isinstance(progress, dict) and isinstance(more, dict):
        is_split = bool(more.keys() & _METRICS)
        own = {name: value for name, value in progress.items() if not is_split or name not in _METRICS}
        merged["trainerStatus"] = more | own
    elif not isinstance(progress, dict):
        merged.pop("trainerStatus", None)
    return merged


def _shared_progress(progress: Mapping[str, Any]) -> Object:
    shared = {name: value for name, value in progress.items() if name in _SHARED_PROGRESS}
    if "estimatedRemainingSeconds" in shared:
        shared["estimatedRemainingSeconds"] = min(shared["estimatedRemainingSeconds"], _INT32)
    if metrics := [*_metrics(progress)][:_MOST_METRICS]:
        shared["metrics"] = metrics
    return shared


def _metrics(progress: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """Both kinds of metrics in one list; a name that both have gets the prefix `eval_` for the evaluation."""
    train: Mapping[str, str] = progress.get("trainMetrics") or {}
    evaluation: Mapping[str, str] = progress.get("evalMetrics") or {}
    named = [*train.items(), *((f"eval_{name}" if name in train else name, each) for name, each in evaluation.items())]
    for name, value in named:
        if 0 < len(name) <= _LONGEST_METRIC and 0 < len(value) <= _LONGEST_METRIC:
            yield {"name": name, "value": value}
