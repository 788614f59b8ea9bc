from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.devcluster.apiserver.kinds.context import fields
from trainer.devcluster.apiserver.kinds.job_status import validate_job_status

if TYPE_CHECKING:
    from trainer.kube.objects import Object

TIME = "2026-11-21T12:00:00Z"
COMPLETE: dict[str, Any] = {"startTime": TIME, "completionTime": TIME}


def make_job(*true: str, suspend: bool = False, **status: Any) -> Object:
    conditions = [{"type": kind, "status": "True"} for kind in true]
    return {"spec": {"suspend": suspend}, "status": {"conditions": conditions, **status}}


@pytest.mark.parametrize(
    ("new", "old", "refused"),
    [
        pytest.param(make_job(active=2), make_job(), [], id="counters"),
        pytest.param(make_job(active=-1), make_job(), ["status.active"], id="negative counter"),
        pytest.param(make_job("SuccessCriteriaMet", "Complete", **COMPLETE), make_job(), [], id="complete"),
        pytest.param(
            make_job("Complete", **COMPLETE), make_job(), ["status.conditions"], id="complete without interim"
        ),
        pytest.param(
            make_job("SuccessCriteriaMet", "Complete", "FailureTarget", "Failed", **COMPLETE),
            make_job(),
            ["status.conditions"],
            id="complete and failed",
        ),
        pytest.param(
            make_job("FailureTarget", "Failed", startTime=TIME, active=1),
            make_job(),
            ["status.active"],
            id="failed but active",
        ),
        pytest.param(
            make_job("FailureTarget"),
            make_job("FailureTarget", "Failed"),
            ["status.conditions"],
            id="a terminal condition stays",
        ),
        pytest.param(
            make_job(completionTime=TIME), make_job(), ["status.completionTime"], id="completion time too early"
        ),
        pytest.param(make_job(), make_job(startTime=TIME), ["status.startTime"], id="start time of a running job"),
        pytest.param(
            make_job(suspend=True), make_job(startTime=TIME, suspend=True), [], id="start time of a suspended job"
        ),
    ],
)
def test_status_of_a_job_is_consistent(new: Object, old: Object, refused: list[str]) -> None:
    """A controller with a bug is told so instead of leaving a Job that is both complete and failed."""
    assert fields(validate_job_status(new, old)) == refused
