"""What the dashboard shows of a TrainJob: a row of the list, and all of it on its page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainer.api.trainjob_status import STEP_FIELDS, ConditionType
from trainer.framework.plugin_api.devices import USUAL_DEVICES
from trainer.framework.status.status import state_word
from trainer.kube.objects import (
    annotations_of,
    controller_of,
    find_condition,
    is_being_deleted,
    labels_of,
    mapping_at,
    metadata_of,
    name_of,
    namespace_of,
    objects_in,
    owner_references_of,
    resource_version_of,
    uid_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainer.kube.objects import Object

_ENDS = (ConditionType.FAILED, ConditionType.COMPLETE)
_LONGEST_MESSAGE = 200
_CLUSTER_WIDE = "ClusterTrainingRuntime"
_CREATED_BY = "app.kubernetes.io/created-by"


def row_of(job: Object) -> Object:
    """A TrainJob in the list."""
    spec, status = mapping_at(job, "spec"), mapping_at(job, "status")
    progress = mapping_at(status, "trainerStatus")
    state = state_word(job)
    end = state if state in _ENDS else None
    return {
        "uid": uid_of(job),
        "namespace": namespace_of(job),
        "name": name_of(job),
        "state": state,
        "message": _message(job, state)[:_LONGEST_MESSAGE],
        "progress": progress.get("progressPercentage"),
        "remaining": None if end else progress.get("estimatedRemainingSeconds"),
        "remainingText": "" if end else str(progress.get("estimatedRemainingTimeSummary") or ""),
        "runtime": str(mapping_at(spec, "runtimeRef").get("name") or ""),
        "runtimeKind": mapping_at(spec, "runtimeRef").get("kind") or _CLUSTER_WIDE,
        "nodes": mapping_at(status, "scale").get("nodes") or mapping_at(spec, "trainer").get("numNodes"),
        "devicesPerNode": _devices(mapping_at(spec, "trainer", "resourcesPerNode")),
        "owner": _owner(job),
        "created": metadata_of(job).get("creationTimestamp"),
        "ended": (find_condition(job, end) or {}).get("lastTransitionTime") if end else None,
        "isSuspended": spec.get("suspend") is True,
        "isDeleted": is_being_deleted(job),
    }


def page_of(job: Object) -> Object:
    """A TrainJob on its page."""
    status = mapping_at(job, "status")
    return row_of(job) | {
        "resourceVersion": resource_version_of(job),
        "generation": metadata_of(job).get("generation"),
        "conditions": objects_in(status.get("conditions")),
        "started": status.get("startTime"),
        "bounds": _bounds(mapping_at(status, "scale")),
        "trainerStatus": mapping_at(status, "trainerStatus") or None,
        "steps": [
            {"name": name} | mapping_at(status, field) for name, field in STEP_FIELDS.items() if status.get(field)
        ],
        "jobs": objects_in(status.get("jobsStatus")),
    }


def _bounds(scale: Object) -> Object | None:
    """How many nodes an elastic training may have; None for any other."""
    least, most = scale.get("minNodes"), scale.get("maxNodes")
    return None if least is None or most is None else {"least": least, "most": most}


def _devices(resources: Object) -> int | None:
    """GPUs and the like that a TrainJob asks for on each node; None where it leaves that to its runtime."""
    amounts = {**mapping_at(resources, "limits"), **mapping_at(resources, "requests")}
    try:
        count = USUAL_DEVICES.devices_of({"requests": amounts}, {}, "").count
    except ValueError:  # an amount that no number of devices can be, of an object that no webhook has seen
        return None
    return count if count or any(map(USUAL_DEVICES.is_device, amounts)) else None


def _owner(job: Object) -> str:
    """What has made a TrainJob, such as an Experiment of Katib; else who, by its label or annotation."""
    reference = controller_of(job) or next(iter(owner_references_of(job)), None)
    if reference is not None:
        return f"{reference.get('kind') or ''} {reference.get('name') or ''}"
    said = labels_of(job).get(_CREATED_BY) or annotations_of(job).get(_CREATED_BY) or ""
    return str(said)[:_LONGEST_MESSAGE]


def _message(job: Mapping[str, Any], state: str) -> str:
    """The first line of the condition that explains the state."""
    kind, status = (ConditionType.CREATED.value, "False") if state == "Blocked" else (state, "True")
    condition = find_condition(job, kind) or {}
    if condition.get("status") != status:
        return ""
    return next(iter(str(condition.get("message") or "").splitlines()), "")
