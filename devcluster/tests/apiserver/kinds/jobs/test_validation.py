from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING

import pytest

from devcluster.tests.apiserver.kinds.context import created
from devcluster.tests.apiserver.kinds.jobs.builders import make_indexed_job, make_job
from trainer_devcluster.apiserver.kinds.jobs.job import JobStrategy

if TYPE_CHECKING:
    from trainer.kube.objects import Object

STRATEGY = JobStrategy()
MANY = "when completions are above 100000 and used with backoff limit per index"


def complaints(job: Object) -> list[str]:
    return [str(cause) for cause in created(STRATEGY, deepcopy(job))[1]]


@pytest.mark.parametrize(
    ("job", "complaint"),
    [
        pytest.param(
            make_job(completions=-1),
            "spec.completions: Invalid value: -1: must be greater than or equal to 0",
            id="negative",
        ),
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
            make_indexed_job(parallelism=100_001),
            "spec.parallelism: Invalid value: 100001: must be less than or equal to 100000 when completion mode is "
            "Indexed",
            id="too many pods at once",
        ),
        pytest.param(
            make_job(backoffLimitPerIndex=1),
            "spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode",
            id="limit per index without indexes",
        ),
        pytest.param(
            make_indexed_job(maxFailedIndexes=1),
            "spec.backoffLimitPerIndex: Required value: when maxFailedIndexes is specified",
            id="most failed indexes without a limit for each",
        ),
        pytest.param(
            make_indexed_job(maxFailedIndexes=3, backoffLimitPerIndex=1),
            "spec.maxFailedIndexes: Invalid value: 3: must be less than or equal to completions",
            id="more failed indexes than there are",
        ),
        pytest.param(
            make_indexed_job(completions=100_001, backoffLimitPerIndex=1),
            "spec.maxFailedIndexes: Required value: must be specified when completions is above 100000",
            id="many completions",
        ),
        pytest.param(
            make_indexed_job(completions=100_001, backoffLimitPerIndex=1, maxFailedIndexes=1, parallelism=10_001),
            f"spec.parallelism: Invalid value: 10001: must be less than or equal to 10000 {MANY}",
            id="many completions at once",
        ),
        pytest.param(
            make_indexed_job(completions=100_001, backoffLimitPerIndex=1, maxFailedIndexes=10_001),
            f"spec.maxFailedIndexes: Invalid value: 10001: must be less than or equal to 10000 {MANY}",
            id="many failures",
        ),
        pytest.param(
            make_job(successPolicy={"rules": [{"succeededCount": 1}]}),
            'spec.successPolicy: Invalid value: {"rules":[{"succeededCount":1}]}: requires indexed completion mode',
            id="success policy without indexes",
        ),
        pytest.param(
            make_job(podReplacementPolicy="Always"),
            'spec.podReplacementPolicy: Unsupported value: "Always": supported values: "Failed", "TerminatingOrFailed"',
            id="replacement policy",
        ),
        pytest.param(
            make_job(podReplacementPolicy="TerminatingOrFailed", podFailurePolicy={"rules": []}),
            'spec.podReplacementPolicy: Unsupported value: "TerminatingOrFailed": supported values: "Failed"',
            id="replacement policy that a failure policy does not allow",
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
        pytest.param(
            make_job(managedBy="me"),
            'spec.managedBy: Invalid value: "me": must be a domain-prefixed path (such as "acme.io/foo")',
            id="manager",
        ),
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


def test_names_of_other_jobs_may_be_longer() -> None:
    """Their pods are called by a cut name and random letters."""
    job = make_job()
    job["metadata"]["name"] = "a" * 63
    assert complaints(job) == []


@pytest.mark.parametrize(
    ("manager", "complaint"),
    [
        pytest.param("example.com/a/b", None, id="a longer path"),
        pytest.param("", "Required value", id="nothing"),
        pytest.param("/x", 'Invalid value: "/x": must be a domain-prefixed path (such as "acme.io/foo")', id="no host"),
        pytest.param("example.com/a b", 'Invalid value: "a b": Invalid path (regex used', id="a space"),
        pytest.param("example.com/" + "a" * 63, "Too long: may not be more than 63 bytes", id="long"),
    ],
)
def test_managers_are_domain_prefixed_paths(manager: str, complaint: str | None) -> None:
    """So that controllers of different people do not share a name."""
    found = complaints(make_job(managedBy=manager))
    assert [text.startswith(f"spec.managedBy: {complaint}") for text in found] == ([] if complaint is None else [True])
