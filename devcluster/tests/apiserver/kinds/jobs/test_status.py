from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from trainer_devcluster.apiserver.kinds.jobs.status import validate_job_status

if TYPE_CHECKING:
    from trainer.kube.objects import Object

TIME, LATER = "2026-11-21T12:00:00Z", "2026-11-21T12:00:01Z"
COMPLETE: dict[str, Any] = {"startTime": TIME, "completionTime": TIME}
MET = ("SuccessCriteriaMet", "Complete")
FAILED = ("FailureTarget", "Failed")
CONDITIONS = "status.conditions: Invalid value:"


def make_job(*true: str, spec: Object | None = None, suspend: bool = False, **status: Any) -> Object:
    conditions = [{"type": kind, "status": "True"} for kind in true]
    return {"spec": {"suspend": suspend, **(spec or {})}, "status": {"conditions": conditions, **status}}


INDEXED: Object = {"completionMode": "Indexed", "completions": 5, "parallelism": 2}
PER_INDEX: Object = {**INDEXED, "backoffLimitPerIndex": 1}


@pytest.mark.parametrize(
    ("new", "old"),
    [
        pytest.param(make_job(active=2), make_job(), id="counters"),
        pytest.param(make_job(*MET, **COMPLETE), make_job(), id="complete"),
        pytest.param(make_job(*FAILED, startTime=TIME), make_job(), id="failed"),
        pytest.param(make_job(suspend=True), make_job(startTime=TIME, suspend=True), id="start time while suspended"),
        pytest.param(
            make_job(startTime=LATER), make_job("Suspended", startTime=TIME), id="start time of a resumed Job"
        ),
        pytest.param(
            make_job(*MET, spec={"completions": 0}, suspend=True, completionTime=TIME),
            make_job(),
            id="nothing to do, and suspended",
        ),
        pytest.param(
            make_job(spec={**INDEXED, "parallelism": 5}, succeeded=1, completedIndexes="1"),
            make_job(succeeded=2, completedIndexes="1,6"),
            id="scaled down",
        ),
        pytest.param(
            make_job(spec=INDEXED, completedIndexes="9"), make_job(completedIndexes="9"), id="left over from before"
        ),
        pytest.param(make_job(spec=PER_INDEX, completedIndexes="1", failedIndexes=""), make_job(), id="indexes"),
    ],
)
def test_good_changes(new: Object, old: Object) -> None:
    """What controllers do."""
    assert validate_job_status(new, old) == []


@pytest.mark.parametrize(
    ("new", "old", "complaint"),
    [
        pytest.param(
            make_job(terminating=-1),
            make_job(),
            "status.terminating: Invalid value: -1: must be greater than or equal to 0",
            id="negative counter",
        ),
        pytest.param(
            make_job(active=1, ready=2),
            make_job(),
            "status.ready: Invalid value: 2: cannot set more ready pods than active",
            id="more ready than active",
        ),
        pytest.param(
            make_job(uncountedTerminatedPods={"succeeded": ["a"], "failed": ["a"]}),
            make_job(),
            'status.uncountedTerminatedPods.failed[0]: Duplicate value: "a"',
            id="a pod twice",
        ),
        pytest.param(
            make_job("Complete", **COMPLETE),
            make_job(),
            f"{CONDITIONS} cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
            id="complete without interim",
        ),
        pytest.param(
            make_job("Failed", startTime=TIME),
            make_job(),
            f"{CONDITIONS} cannot set Failed=True condition without the FailureTarget=true condition",
            id="failed without interim",
        ),
        pytest.param(
            make_job("SuccessCriteriaMet", "FailureTarget"),
            make_job(),
            f"{CONDITIONS} cannot set SuccessCriteriaMet=True and FailureTarget=true conditions",
            id="about to be both",
        ),
        pytest.param(
            make_job(*FAILED, startTime=TIME, active=1),
            make_job(),
            "status.active: Invalid value: 1: active>0 is invalid for finished job",
            id="failed but active",
        ),
        pytest.param(
            make_job(*FAILED, startTime=TIME, terminating=1),
            make_job(),
            "status.terminating: Invalid value: 1: terminating>0 is invalid for finished job",
            id="failed but terminating",
        ),
        pytest.param(
            make_job(*FAILED, startTime=TIME, uncountedTerminatedPods={"failed": ["a"]}),
            make_job(),
            'status.uncountedTerminatedPods: Invalid value: {"failed":["a"]}: uncountedTerminatedPods needs to be '
            "empty for finished job",
            id="failed but not counted",
        ),
        pytest.param(
            make_job(*FAILED),
            make_job(),
            "status.startTime: Required value: startTime is required for finished job",
            id="failed before it started",
        ),
        pytest.param(
            make_job(*MET, startTime=TIME),
            make_job(),
            "status.completionTime: Required value: completionTime is required for Complete jobs",
            id="completion time forgotten",
        ),
        pytest.param(
            make_job(completionTime=TIME),
            make_job(),
            f'status.completionTime: Invalid value: "{TIME}": cannot set completionTime when there is no Complete=True '
            "condition",
            id="completion time too early",
        ),
        pytest.param(
            make_job(*MET, startTime=LATER, completionTime=TIME),
            make_job(),
            f'status.completionTime: Invalid value: "{TIME}": completionTime cannot be set before startTime',
            id="completed before it started",
        ),
        pytest.param(
            make_job(*MET, startTime=TIME, completionTime=LATER),
            make_job(*MET, **COMPLETE),
            f'status.completionTime: Invalid value: "{LATER}": completionTime cannot be mutated',
            id="completed twice",
        ),
        pytest.param(
            make_job("FailureTarget"),
            make_job(*FAILED),
            f"{CONDITIONS} cannot disable the terminal Failed=True condition",
            id="a terminal condition stays",
        ),
        pytest.param(
            make_job(),
            make_job("SuccessCriteriaMet"),
            f"{CONDITIONS} cannot disable the SuccessCriteriaMet=True condition",
            id="a success stays",
        ),
        pytest.param(
            make_job(failed=1),
            make_job(failed=2),
            "status.failed: Invalid value: 1: cannot decrease the failed counter",
            id="failures are not forgotten",
        ),
        pytest.param(
            make_job(),
            make_job(startTime=TIME),
            "status.startTime: Required value: startTime cannot be removed for unsuspended job",
            id="start time of a running Job",
        ),
        pytest.param(
            make_job(spec=INDEXED, completedIndexes="9"),
            make_job(),
            'status.completedIndexes: Invalid value: "9": error parsing completedIndexes: too large index: "9"',
            id="an index that there is not",
        ),
        pytest.param(
            make_job(spec={"completions": 3}, completedIndexes="1"),
            make_job(),
            'status.completedIndexes: Invalid value: "1": cannot set non-empty completedIndexes when non-indexed '
            "completion mode",
            id="pods without index",
        ),
        pytest.param(
            make_job(spec=INDEXED, failedIndexes=""),
            make_job(),
            'status.failedIndexes: Invalid value: "": cannot set non-null failedIndexes when backoffLimitPerIndex is '
            "null",
            id="indexes are not counted",
        ),
        pytest.param(
            make_job(spec=PER_INDEX, completedIndexes="0-2", failedIndexes="2,4"),
            make_job(),
            'status.failedIndexes: Invalid value: "2,4": failedIndexes and completedIndexes overlap at index: 2',
            id="an index that did both",
        ),
    ],
)
def test_bad_changes(new: Object, old: Object, complaint: str) -> None:
    """A controller with a bug is told so instead of leaving a Job that is both complete and failed."""
    assert [str(cause) for cause in validate_job_status(new, old)] == [complaint]
