"""The status of v1alpha1 from that of the model, and back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trainer.kube.objects import Object
from trainer.v1alpha1.status import EXTENSION, decode_status, encode_status, extension_annotation, with_extension

TIME = "2026-01-01T00:00:00Z"


def condition(type_: str, status: str = "True", **members: Any) -> Object:
    """A condition."""
    return {"type": type_, "status": status, "reason": "R", "message": "m", "lastTransitionTime": TIME, **members}


JOBS = [{"name": "node", "ready": 1, "succeeded": 0, "failed": 0, "active": 1, "suspended": 0}]
CREATED, PENDING = condition("Created"), condition("Pending", "False")
SUSPENDED, COMPLETE, FAILED = condition("Suspended", "False"), condition("Complete"), condition("Failed")
PROGRESS = {"progressPercentage": 7, "estimatedRemainingSeconds": 60, "lastUpdatedTime": TIME}

STATUSES = [
    pytest.param({}, {}, id="empty"),
    pytest.param({"conditions": [CREATED], "state": "Created"}, {}, id="a condition of the model alone"),
    pytest.param(
        {"conditions": [CREATED, SUSPENDED, PENDING, COMPLETE]},
        {"conditions": [SUSPENDED, COMPLETE]},
        id="conditions of both",
    ),
    pytest.param(
        {"conditions": [CREATED, condition("Suspended")]}, {"conditions": [condition("Suspended")]}, id="suspended"
    ),
    pytest.param({"conditions": [CREATED, SUSPENDED]}, {}, id="resumed"),
    pytest.param(
        {"conditions": [FAILED], "jobsStatus": JOBS, "startTime": TIME, "observedGeneration": 3},
        {"conditions": [FAILED], "jobsStatus": JOBS},
        id="counts of Jobs",
    ),
    pytest.param({"trainerStatus": PROGRESS}, {"trainerStatus": PROGRESS}, id="progress"),
    pytest.param(
        {"trainerStatus": PROGRESS | {"checkpoint": {"step": 7, "time": TIME, "path": "step-7"}}},
        {"trainerStatus": PROGRESS},
        id="checkpoint",
    ),
    pytest.param(
        {"dataInitializerStatus": {"state": "Complete"}, "exporterStatus": PROGRESS | {"state": "Running"}},
        {},
        id="steps",
    ),
    pytest.param(
        {"trainerStatus": PROGRESS | {"currentStep": 1, "trainMetrics": {"loss": "1"}, "evalMetrics": {"loss": "2"}}},
        {
            "trainerStatus": PROGRESS
            | {"metrics": [{"name": "loss", "value": "1"}, {"name": "eval_loss", "value": "2"}]}
        },
        id="metrics of equal names",
    ),
    pytest.param(
        {"trainerStatus": PROGRESS | {"trainMetrics": {"a" * 65: "1", "b": "1" * 65, "c": "", "d": "1"}}},
        {"trainerStatus": PROGRESS | {"metrics": [{"name": "d", "value": "1"}]}},
        id="metrics that do not fit",
    ),
    pytest.param(
        {"trainerStatus": PROGRESS | {"estimatedRemainingSeconds": 1 << 40}},
        {"trainerStatus": PROGRESS | {"estimatedRemainingSeconds": (1 << 31) - 1}},
        id="more seconds than 32 bits hold",
    ),
]


@pytest.mark.parametrize(("status", "shared"), STATUSES)
def test_what_clients_see(status: Object, shared: Object) -> None:
    """Clients of v1alpha1 find conditions that they know, and fields that fit their types."""
    assert encode_status(status)[0] == shared


@pytest.mark.parametrize(("status", "_shared"), STATUSES[:-1])
@pytest.mark.parametrize("is_extended", [True, False], ids=["our CRDs", "upstream's CRDs"])
def test_both_ways(is_extended: bool, status: Object, _shared: Object) -> None:
    """A status is read as it was written, from optional fields and from an annotation."""
    shared, extension = encode_status(status)
    stored: Object = {"metadata": {"uid": "u"}, "status": with_extension(shared, extension)}
    if not is_extended:
        name, value = extension_annotation("trainer", "u", extension)
        stored = {"metadata": {"uid": "u", "annotations": {name: value}}, "status": shared}

    read = decode_status(stored) or {}

    assert read | {"conditions": None} == status | {"conditions": None}
    found, written = ({each["type"]: each for each in side.get("conditions", [])} for side in (read, status))
    assert found == written


@pytest.mark.parametrize(
    ("status", "decoded"),
    [
        pytest.param(None, None, id="none"),
        pytest.param({"conditions": [COMPLETE]}, {"conditions": [COMPLETE]}, id="of the Go manager"),
        pytest.param(
            {"conditions": [condition("Suspended")], "furtherConditions": [CREATED, SUSPENDED]},
            {"conditions": [condition("Suspended"), CREATED]},
            id="suspended by another",
        ),
        pytest.param(
            {"trainerStatus": PROGRESS | {"metrics": [{"name": "loss", "value": "1"}]}},
            {"trainerStatus": PROGRESS | {"trainMetrics": {"loss": "1"}}},
            id="metrics that the training has pushed",
        ),
    ],
)
def test_statuses_of_others(status: Object | None, decoded: Object | None) -> None:
    """A status without extension is read as well."""
    obj: Object = {"metadata": {"uid": "u"}} | ({} if status is None else {"status": status})
    assert decode_status(obj) == decoded


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("", id="empty"),
        pytest.param("{", id="no JSON"),
        pytest.param("[]", id="no object"),
        pytest.param('{"uid":"u"}', id="no status"),
        pytest.param('{"uid":"another","status":{"state":"Failed"}}', id="of another TrainJob"),
        pytest.param('{"uid":"u","status":{"state":"Wrong"}}', id="a wrong value"),
        pytest.param('{"uid":"u","status":{"conditions":[1]}}', id="conditions beside those of the status"),
        pytest.param('{"uid":"u","status":{"furtherConditions":[COMPLETE]}}', id="the end"),
        pytest.param('{"uid":"u","status":{"furtherConditions":[SUSPENDED]}}', id="suspended"),
        pytest.param('{"uid":"u","status":{"conditions":[COMPLETE]}}', id="the end as the status says it"),
        pytest.param('{"uid":"u","status":{"runtimeDigest":"abc"}}', id="the digest of the snapshot"),
        pytest.param('{"uid":"u","status":{"jobsStatus":[]}}', id="counts"),
        pytest.param('{"uid":"u","status":{"unknown":1}}', id="an unknown field"),
    ],
)
def test_annotations_of_others(value: str) -> None:
    """Who may write the TrainJob may write its annotations: they can only say what the status leaves open."""
    status = {"conditions": [SUSPENDED], "jobsStatus": JOBS}
    value = value.replace("COMPLETE", json.dumps(COMPLETE)).replace("SUSPENDED", json.dumps(condition("Suspended")))
    obj = {"metadata": {"uid": "u", "annotations": {EXTENSION + "trainer": value}}, "status": status}

    assert decode_status(obj) == status
    assert decode_status({"metadata": obj["metadata"]}) in ({}, None)
