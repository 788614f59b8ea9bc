"""Validation of new Jobs, in the order and the words of the real server (batch/v1, KEP-3329 and KEP-3998)."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from packages.devcluster.tests.apiserver.kinds.context import created
from packages.devcluster.tests.apiserver.kinds.jobs.builders import make_indexed_job, make_job
from trainer.kube.objects import Object
from trainer_devcluster.apiserver.kinds.jobs.job import JobStrategy

RULES = "spec.podFailurePolicy.rules"
CODES = {"operator": "In", "values": [1, 42]}


def complaints_of(*rules: Object, **spec: Any) -> list[str]:
    job = make_indexed_job(podFailurePolicy={"rules": list(rules)}, **spec)
    return [str(cause) for cause in created(JobStrategy(), job)[1]]


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
    assert complaints_of(rule) == [f"{RULES}{complaint}"]


STRATEGY = JobStrategy()


def complaints(job: Object) -> list[str]:
    return [str(cause) for cause in created(STRATEGY, deepcopy(job))[1]]


@pytest.mark.parametrize(
    ("job", "complaint"),
    [
        pytest.param(
            make_job(completionMode="Sorted"),
            'spec.completionMode: Unsupported value: "Sorted": supported values: "NonIndexed", "Indexed"',
            id="unknown mode",
        ),
        pytest.param(
            make_job(completionMode="Indexed", parallelism=1),
            "spec.completions: Required value: when completion mode is Indexed",
            id="indexed needs completions",
        ),
        pytest.param(
            make_job(successPolicy={"rules": [{"succeededCount": 1}]}),
            'spec.successPolicy: Invalid value: {"rules":[{"succeededCount":1}]}: requires indexed completion mode',
            id="success policy without indexes",
        ),
        pytest.param(
            make_job({"restartPolicy": "Always"}),
            'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"',
            id="pods that never end",
        ),
        pytest.param(
            make_job({"restartPolicy": "OnFailure"}, podFailurePolicy={"rules": []}),
            'spec.template.spec.restartPolicy: Invalid value: "OnFailure": only "Never" is supported when '
            "podFailurePolicy is specified",
            id="failure policy needs Never",
        ),
        pytest.param(make_job({"containers": []}), "spec.template.spec.containers: Required value", id="no containers"),
    ],
)
def test_wrong_jobs_are_refused(job: Object, complaint: str) -> None:
    """In the words of the real server."""
    assert complaints(job) == [complaint]


def test_indexed_hostnames_must_fit() -> None:
    """`<job>-<last index>` is a DNS label."""
    job = make_job(completionMode="Indexed", completions=1000)
    name = job["metadata"]["name"] = "a" * 60
    assert complaints(job) == [
        f'metadata.name: Invalid value: "{name}": will not able to create pod with invalid DNS label: {name}-999'
    ]


@pytest.mark.parametrize(
    ("manager", "complaint"),
    [
        pytest.param("", "Required value", id="nothing"),
        pytest.param("/x", 'Invalid value: "/x": must be a domain-prefixed path (such as "acme.io/foo")', id="no host"),
        pytest.param("example.com/a b", 'Invalid value: "a b": Invalid path (regex used', id="a space"),
    ],
)
def test_managers_are_domain_prefixed_paths(manager: str, complaint: str | None) -> None:
    """So that controllers of different people do not share a name."""
    found = complaints(make_job(managedBy=manager))
    assert [text.startswith(f"spec.managedBy: {complaint}") for text in found] == ([] if complaint is None else [True])
