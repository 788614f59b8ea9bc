"""What the dashboard shows of a TrainJob: a row of the list, and all of it on its page."""

from __future__ import annotations

from trainer.api.trainjob_status import STEP_FIELDS, State
from trainer.kube.objects import Object, mapping_at, metadata_of, objects_in, resource_version_of
from trainer.view.row import ENDS, TrainJobRow
from trainer_dashboard.sweep.trials import membership_of

_LONGEST_TEXT = 200
"""Characters of a text that others have written."""
_NOTHING_REMAINS = (*ENDS, State.STOPPING)
"""States in which what was said of the remaining time holds no more."""


def row_of(row: TrainJobRow) -> Object:
    """A TrainJob in the list."""
    return {
        "uid": row.uid,
        "namespace": row.namespace,
        "name": row.name,
        "state": row.state,
        "message": _shortened(row.message),
        "progress": row.progress.percentage,
        "remaining": None if row.state in _NOTHING_REMAINS else row.progress.remaining_seconds,
        "remainingText": "" if row.state in _NOTHING_REMAINS else row.progress.remaining or row.progress.silence,
        "runtime": row.runtime,
        "runtimeKind": row.runtime_kind,
        "nodes": row.nodes,
        "devicesPerNode": row.devices_per_node,
        "owner": _shortened(row.owner),
        "created": row.created,
        "since": row.since,
        "ended": row.ended,
        "isSuspended": row.is_suspended,
        "isDeleted": row.is_being_deleted,
    }


def page_of(job: Object, recipe: Object) -> Object:
    """A TrainJob on its page, with what it runs."""
    status, row = mapping_at(job, "status"), TrainJobRow.of(job)
    checkpoint = row.progress.checkpoint
    return row_of(row) | {
        "resourceVersion": resource_version_of(job),
        "generation": metadata_of(job).get("generation"),
        "conditions": objects_in(status.get("conditions")),
        "started": status.get("startTime"),
        "restarts": row.restarts,
        "bounds": _bounds(mapping_at(status, "scale")),
        "trainerStatus": mapping_at(status, "trainerStatus") or None,
        "unsaved": checkpoint.unsaved_in(row.state) if checkpoint is not None else "",
        "steps": [
            {"name": name} | mapping_at(status, field) for name, field in STEP_FIELDS.items() if status.get(field)
        ],
        "jobs": objects_in(status.get("jobsStatus")),
        "trial": membership_of(job),
        "recipe": recipe,
    }


def _shortened(text: str) -> str:
    """The beginning of a text, whose last word is whole where dots stand for the rest."""
    if len(text) <= _LONGEST_TEXT:
        return text
    beginning = text[: _LONGEST_TEXT - 3]
    return f"{beginning.rpartition(' ')[0] or beginning}..."


def _bounds(scale: Object) -> Object | None:
    """How many nodes an elastic training may have; None for any other."""
    least, most = scale.get("minNodes"), scale.get("maxNodes")
    return None if least is None or most is None else {"least": least, "most": most}
