from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from trainer_devcluster.apiserver.kinds.jobs.success_policy import validate_success_policy

if TYPE_CHECKING:
    from trainer.kube.objects import Object

RULES = "spec.successPolicy.rules"
INDEXES = f"{RULES}[0].succeededIndexes: Invalid value:"
COUNT = f"{RULES}[0].succeededCount: Invalid value:"


@pytest.mark.parametrize(
    "rule",
    [
        {"succeededCount": 1},
        {"succeededCount": 5},
        {"succeededIndexes": "0"},
        {"succeededIndexes": "0,2-4"},
        {"succeededIndexes": "0-3", "succeededCount": 2},
    ],
)
def test_good_rules(rule: Object) -> None:
    """So many successes, or these ones, or so many of these."""
    assert validate_success_policy({"rules": [rule]}, 5) == []


@pytest.mark.parametrize(
    ("policy", "complaint"),
    [
        pytest.param({}, f"{RULES}: Required value: at least one rules must be specified", id="no rule"),
        pytest.param(
            {"rules": [{"succeededCount": 1}] * 21},
            f"{RULES}: Too many: 21: must have at most 20 items",
            id="many rules",
        ),
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
            {"succeededCount": 6},
            f"{COUNT} 6: must be less than or equal to 5 (the number of specified completions)",
            id="more than there are",
        ),
        pytest.param(
            {"succeededCount": 3, "succeededIndexes": "0-1"},
            f"{COUNT} 3: must be less than or equal to 2 "
            "(the number of indexes in the specified succeededIndexes field)",
            id="more than listed",
        ),
        pytest.param(
            {"succeededIndexes": "5"},
            f'{INDEXES} "5": error parsing succeededIndexes: too large index: "5"',
            id="large",
        ),
        pytest.param(
            {"succeededIndexes": "2,1"},
            f'{INDEXES} "2,1": error parsing succeededIndexes: non-increasing order, previous: 2, current: 1',
            id="unordered",
        ),
        pytest.param(
            {"succeededIndexes": "x"},
            f'{INDEXES} "x": error parsing succeededIndexes: cannot convert string to integer for index: "x"',
            id="no number",
        ),
        pytest.param(
            {"succeededIndexes": "0-1-2"},
            f'{INDEXES} "0-1-2": error parsing succeededIndexes: the fragment "0-1-2" violates the requirement that an '
            "index interval can have at most two parts separated by '-'",
            id="three limits",
        ),
    ],
)
def test_bad_rules(rule: Object, complaint: str) -> None:
    """In the words of Kubernetes."""
    assert [str(cause) for cause in validate_success_policy({"rules": [rule]}, 5)] == [complaint]


def test_a_job_may_have_no_policy() -> None:
    """Then all of its pods have to succeed."""
    assert validate_success_policy(None, 5) == []
