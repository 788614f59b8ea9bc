from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from devcluster.tests.apiserver.kinds.context import created
from devcluster.tests.apiserver.kinds.jobs.builders import make_indexed_job
from trainer_devcluster.apiserver.kinds.jobs.job import JobStrategy

if TYPE_CHECKING:
    from trainer.kube.objects import Object

RULES = "spec.podFailurePolicy.rules"
CODES = {"operator": "In", "values": [1, 42]}


def complaints(*rules: Object, **spec: Any) -> list[str]:
    job = make_indexed_job(podFailurePolicy={"rules": list(rules)}, **spec)
    return [str(cause) for cause in created(JobStrategy(), job)[1]]


@pytest.mark.parametrize("action", ["Count", "FailJob", "Ignore"])
def test_good_rules(action: str) -> None:
    """Exit codes of one container or of any, or conditions of the pod."""
    by_code = {"action": action, "onExitCodes": {"containerName": "c", "operator": "NotIn", "values": [0, 1]}}
    by_condition = {"action": action, "onPodConditions": [{"type": "DisruptionTarget"}]}
    assert complaints(by_code, by_condition, {"action": action, "onExitCodes": CODES}) == []


@pytest.mark.parametrize(
    ("rule", "complaint"),
    [
        pytest.param(
            {"onExitCodes": CODES},
            '[0].action: Required value: valid values: ["Count" "FailIndex" "FailJob" "Ignore"]',
            id="no action",
        ),
        pytest.param(
            {"action": "Retry", "onExitCodes": CODES},
            '[0].action: Unsupported value: "Retry": supported values: "Count", "FailIndex", "FailJob", "Ignore"',
            id="unknown action",
        ),
        pytest.param(
            {"action": "FailIndex", "onExitCodes": CODES},
            "[0].action: Forbidden: the dev cluster counts failures for the Job as a whole: use FailJob",
            id="indexes are not counted",
        ),
        pytest.param(
            {"action": "Count"},
            "[0]: Invalid value: specifying one of OnExitCodes and OnPodConditions is required",
            id="matches nothing",
        ),
        pytest.param(
            {"action": "Count", "onExitCodes": CODES, "onPodConditions": [{"type": "A"}]},
            "[0]: Invalid value: specifying both OnExitCodes and OnPodConditions is not supported",
            id="matches two things",
        ),
        pytest.param(
            {"action": "Count", "onPodConditions": [{"status": "True"}]},
            "[0].onPodConditions[0].type: Required value",
            id="no condition",
        ),
        pytest.param(
            {"action": "Count", "onExitCodes": {"values": [1]}},
            '[0].onExitCodes.operator: Required value: valid values: ["In" "NotIn"]',
            id="no operator",
        ),
        pytest.param(
            {"action": "Count", "onExitCodes": {**CODES, "containerName": "x"}},
            '[0].onExitCodes.containerName: Invalid value: "x": must be one of the container or initContainer names in '
            "the pod template",
            id="no such container",
        ),
        pytest.param(
            {"action": "Count", "onExitCodes": {"operator": "In", "values": []}},
            "[0].onExitCodes.values: Invalid value: []: at least one value is required",
            id="no codes",
        ),
        pytest.param(
            {"action": "Count", "onExitCodes": {"operator": "In", "values": [0, 1]}},
            "[0].onExitCodes.values[0]: Invalid value: 0: must not be 0 for the In operator",
            id="success is no failure",
        ),
    ],
)
def test_bad_rules(rule: Object, complaint: str) -> None:
    """In the words of the real server."""
    assert complaints(rule) == [f"{RULES}{complaint}"]
