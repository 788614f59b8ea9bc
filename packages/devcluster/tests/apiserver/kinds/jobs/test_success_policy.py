from __future__ import annotations

from typing import Any

import pytest

from trainer.kube.objects import Object
from trainer_devcluster.apiserver.kinds.jobs.validation import validate_success_policy

RULES = "spec.successPolicy.rules"
INDEXES = f"{RULES}[0].succeededIndexes: Invalid value:"
COUNT = f"{RULES}[0].succeededCount: Invalid value:"


@pytest.mark.parametrize(
    ("policy", "complaint"),
    [
        pytest.param({}, f"{RULES}: Required value: at least one rules must be specified", id="no rule"),
        pytest.param({"rules": [{}]}, f"{RULES}[0]: Required value: at least one of succeededCount", id="empty rule"),
    ],
)
def test_bad_policies(policy: dict[str, Any], complaint: str) -> None:
    """The cause names the list or the rule."""
    [cause] = validate_success_policy(policy, 5)
    assert str(cause).startswith(complaint)


@pytest.mark.parametrize(
    ("rule", "complaint"),
    [
        pytest.param({"succeededCount": -1}, f"{COUNT} -1: must be greater than or equal to 0", id="negative"),
        pytest.param(
            {"succeededIndexes": "x"},
            f'{INDEXES} "x": must be indexes and intervals such as 0,2-5',
            id="no number",
        ),
    ],
)
def test_bad_rules(rule: Object, complaint: str) -> None:
    """In the words of Kubernetes."""
    assert [str(cause) for cause in validate_success_policy({"rules": [rule]}, 5)] == [complaint]
